"""Reading lineitem of TPC-H on Spark: `sp.table` beside the same files read in other ways."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import spark
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
    files_below,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DELETED = "l_orderkey % 100 = 7"  # 1 % of the rows, in every file
_SELECTED = "SELECT * FROM lineitem WHERE l_orderkey = 1000"
_QUERIES = {
    "full scan": "SELECT * FROM lineitem",
    "Q1": (REPO / "benchmarks/tpch/q01.sql").read_text().rstrip().rstrip(";"),
    "Q6": (REPO / "benchmarks/tpch/q06.sql").read_text().rstrip().rstrip(";"),
    "count": "SELECT count(*) FROM lineitem",
    "selective": _SELECTED,
}
_SMALL_S = 1.0  # below it CPU times are too noisy for the bar
_SMALL_BAR = 1.3


@dataclass(slots=True)
class Reading:
    """`frame` is timed too: planning is a part of reading."""

    frame: Callable[[Path], Callable[[], "DataFrame"]]
    environment: str = "lakebed"
    owner: str = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        spark.make_lineitem(folder, spark.lineitem(data, case.sizes["thousandths"]))
        if case.table == "deleted":
            with spark.open_lake(folder) as lake:
                lake.spark(spark.session()).delete(spark.TABLE, _DELETED)

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        session, frame = spark.session(), self.frame(folder)

        def run() -> object:
            frame().createOrReplaceTempView("lineitem")
            found = session.sql(case.text)
            if case.text == _QUERIES["full scan"]:
                spark.run_all(found)
                return []
            return found.collect()

        def facts(rows: object) -> dict[str, Fact]:
            assert isinstance(rows, list)
            return {"answer": str(sorted(map(str, rows)))}

        return Call(run, facts)


def _lakebed(reader: str) -> Callable[[Path], Callable[[], "DataFrame"]]:
    def opened(folder: Path) -> Callable[[], "DataFrame"]:
        lake = spark.open_lake(folder)
        sp = lake.spark(spark.session())
        return lambda: sp.table(spark.TABLE, reader=reader)

    return opened


def _parquet(folder: Path) -> Callable[[], "DataFrame"]:
    """The files with all of their rows, those that are deleted too."""
    paths = sorted(map(str, files_below(folder)))
    return lambda: spark.session().read.parquet(*paths)


def _iceberg(folder: Path) -> Callable[[], "DataFrame"]:
    newest = max(folder.rglob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
    return lambda: spark.session().read.format("iceberg").load(str(newest))


def _delta(folder: Path) -> Callable[[], "DataFrame"]:
    (log,) = folder.rglob("_delta_log")
    return lambda: spark.session().read.format("delta").load(str(log.parent))


_BITMAP = "lakebed, reader=parquet"
_SYSTEMS = {
    "lakebed": Reading(_lakebed("auto")),
    "parquet": Reading(_parquet),
    "iceberg": Reading(_iceberg),
    "delta": Reading(_delta),
    _BITMAP: Reading(_lakebed("parquet")),
}


def _cases(tiny: bool) -> Sequence[Case]:
    sizes = {"thousandths": 1 if tiny else 2000}
    found = []
    for name in ("full scan",) if tiny else _QUERIES:
        systems = [s for s in _SYSTEMS if s != _BITMAP]
        found.append(Case(name, "lineitem", sizes, _QUERIES[name], systems))
    for name in ("Q6", "count") if tiny else _QUERIES:
        # Delta refuses to write rows without deleted ones to no place.
        systems = [s for s in _SYSTEMS if not (s == "delta" and name == "full scan")]
        found.append(Case(f"{name}, 1 % deleted", "deleted", sizes, _QUERIES[name], systems))
    return found


def _judge(results: Results) -> Iterator[Verdict]:
    for name, systems in results.items():
        losing = "deleted" in name
        answers = {s: f.facts["answer"] for s, f in systems.items() if not losing or s != "parquet"}
        same = len(set(map(str, answers.values()))) == 1
        yield alike(name, "the same rows come out", f"{len(answers)} readers", same)
        yield _within(name, systems, "parquet", 1.3 if losing else 1.15)
        if name.startswith(("count", "selective")):
            yield _within(name, systems, "iceberg", 1.0)


def _within(name: str, systems: Mapping[str, Figures], peer: str, bar: float) -> Verdict:
    ours, theirs = systems["lakebed"].median_cpu_s, systems[peer].median_cpu_s
    limit = max(bar, _SMALL_BAR) if ours < _SMALL_S else bar
    return at_most(name, f"median CPU, times that of {peer} <= {limit}", ours / theirs, limit)


MEASURE = Measure(
    "spark-read",
    "Reading TPC-H lineitem on Spark",
    _SYSTEMS,
    _cases,
    _judge,
    changes=False,
    warm=5,
)
