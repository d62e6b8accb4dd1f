"""The 22 queries of TPC-H through `lake.sql`, and by DuckDB over the same Parquet files.

Both read the same bytes. Where rows are deleted, DuckDB's time is that of the files with all their
rows, and its answers are taken again, untimed, over views that leave the deleted rows out.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.data import TPCH_TABLES, tpch
from benchmarks.measure import (
    REPO,
    Call,
    Case,
    Fact,
    Figures,
    Measure,
    Results,
    Verdict,
    alike,
    at_most,
)

QUERIES = REPO / "benchmarks" / "tpch"
_FILE_BYTES = 8 * 2**20  # so that a few files are a tenth of all bytes
# Every hundredth row of every table, or of the first file or two of the two largest.
_ALL_GONE = {
    "customer": "c_custkey % 100 = 7",
    "lineitem": "l_orderkey % 100 = 7",
    "nation": "n_nationkey = 7",
    "orders": "o_orderkey % 100 = 7",
    "part": "p_partkey % 100 = 7",
    "partsupp": "ps_partkey % 100 = 7",
    "region": "r_regionkey = 4",
    "supplier": "s_suppkey % 100 = 7",
}
_SOME_GONE = {
    "lineitem": "l_orderkey < 60000 AND l_orderkey % 100 = 7",
    "orders": "o_orderkey < 60000 AND o_orderkey % 100 = 7",
}
_GONE: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "clean": {},
    "some": _SOME_GONE,
    "all": _ALL_GONE,
}
_MOST = {"default": 1.15, "clean": 1.15, "some": 1.5, "all": 3.5}
_NAMES = {
    "default": "no rows deleted, files of the default size",
    "clean": "no rows deleted, files of 8 MiB",
    "some": "deleted rows in files of at most 10 % of the bytes",
    "all": "deleted rows in every file",
}


def _queries() -> list[str]:
    return [path.read_text() for path in sorted(QUERIES.glob("q*.sql"))]


class LakebedQueries:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        gone = _GONE[case.table]
        small = {"write.target-file-size-bytes": str(_FILE_BYTES)}
        size = {} if case.table == "default" else small
        files: dict[str, list[str]] = {}
        with lakebed.open(folder, create=True) as lake:
            for name in TPCH_TABLES:
                rows = tpch(data, case.sizes["thousandths"], name)
                table = lake.create_table(f"tpch.{name}", rows.schema, properties=size)
                table.append(rows)
                files[name] = [f"{table.location}/{f.path}" for f in table.files()]
                if name in gone:
                    table.delete(gone[name])
        (folder / "files.json").write_text(json.dumps(files))

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        lake = lakebed.open(folder)
        session = lake.sql_session()
        session.sql("USE tpch; SELECT 1").to_arrow()  # loads the engine, as the import of a peer
        texts = _queries()

        def facts(answers: object) -> dict[str, Fact]:
            assert isinstance(answers, list)
            files = [f for t in TPCH_TABLES for f in lake.table(f"tpch.{t}").files()]
            touched = sum(f.size_bytes for f in files if f.deleted_rows)
            part = touched / sum(f.size_bytes for f in files)
            return {"answers": [_rows(a) for a in answers], "touched": part}

        return Call(lambda: [session.sql(text).to_arrow() for text in texts], facts)


class DuckdbQueries:
    environment = "peers"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        raise AssertionError("it reads the files of lakebed's tables")

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import duckdb

        connection = duckdb.connect()
        files: dict[str, list[str]] = json.loads((folder / "files.json").read_text())
        for name, paths in files.items():
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet({paths})")
        texts = _queries()

        def run() -> list[pa.Table]:
            return [connection.sql(text).to_arrow_table() for text in texts]

        def facts(answers: object) -> dict[str, Fact]:
            gone = _GONE[case.table]
            for name, where in gone.items():
                scan = f"FROM read_parquet({files[name]}) WHERE NOT ({where})"
                connection.execute(f"CREATE OR REPLACE VIEW {name} AS {scan}")
            right = run() if gone else answers
            assert isinstance(right, list)
            return {"answers": [_rows(a) for a in right]}

        return Call(run, facts)


def _rows(answer: pa.Table) -> list[object]:
    return [[_plain(v) for v in row.values()] for row in answer.to_pylist()]


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else str(value)


def _equal(ours: object, theirs: object) -> bool:
    """Sums of floats differ in their last digits by the order of addition."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_equal, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-9)
    return ours == theirs


def _cases(tiny: bool) -> Sequence[Case]:
    sizes = {"thousandths": 1 if tiny else 1000}
    return [Case(_NAMES[table], table, sizes) for table in _GONE]


def _judge(results: Results) -> Iterator[Verdict]:
    for table, name in _NAMES.items():
        if name in results:
            yield from _judged(table, name, results[name])


def _judged(table: str, name: str, systems: Mapping[str, Figures]) -> Iterator[Verdict]:
    ours, theirs = systems["lakebed"], systems["duckdb"]
    pairs = zip(_answers(ours), _answers(theirs), strict=True)
    wrong = [str(n) for n, (a, b) in enumerate(pairs, start=1) if not _equal(a, b)]
    figure = f"{22 - len(wrong)} of 22" + (f", not {', '.join(wrong)}" if wrong else "")
    yield alike(name, "all answers equal", figure, not wrong)
    most = _MOST[table]
    yield at_most(name, f"CPU in total, times DuckDB's <= {most}", ours.cpu_s / theirs.cpu_s, most)
    part = ours.number("touched") * 100
    if table == "some":
        yield Verdict(name, "bytes touched: up to 10 %", f"{part:.1f} %", 0 < part <= 10)
    elif table == "all":
        yield Verdict(name, "bytes touched: all", f"{part:.1f} %", part > 99.9)


def _answers(figures: Figures) -> list[object]:
    answers = figures.facts["answers"]
    assert isinstance(answers, list)
    return answers


MEASURE = Measure(
    "tpch",
    "TPC-H, 22 queries, scale factor 1",
    {"lakebed": LakebedQueries(), "duckdb": DuckdbQueries()},
    _cases,
    _judge,
    changes=False,
)
