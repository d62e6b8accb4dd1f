"""MERGE into lineitem of TPC-H: some of its rows with new values, and a tenth as many new rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import tpch
from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, alike, at_most

_ON = "t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber"
_STEPS = {1: 100, 10: 10}  # by the part of the rows that is matched, in percent
_NEW_LINES = 100  # new rows have line numbers that no order has


def _make_sources(data: Path, thousandths: int) -> None:
    """In files, so that what it takes to make them is no memory of the process that is measured."""
    for step in _STEPS.values():
        path = _path(data, thousandths, step)
        if not path.exists():
            pq.write_table(_made(data, thousandths, step), path)


def _source(case: Case, data: Path) -> pa.Table:
    return pq.read_table(_path(data, case.sizes["thousandths"], case.sizes["step"]))


def _path(data: Path, thousandths: int, step: int) -> Path:
    return data / f"lineitem-{thousandths}-every-{step}.parquet"


def _made(data: Path, thousandths: int, step: int) -> pa.Table:
    """Every n-th order, all over the table; a tenth of the rows again as new lines."""
    pieces = []
    for batch in tpch(data, thousandths, "lineitem"):
        # Order keys come in runs of eight with gaps between them.
        order = pc.divide(batch.column("l_orderkey"), 4)
        chosen = batch.filter(pc.equal(pc.subtract(order, _times(order, step)), 1))
        at = chosen.schema.get_field_index("l_tax")
        tax = pa.array([0.99], pa.float64()).cast(pa.decimal128(15, 2))[0]
        taxed = pa.array([tax.as_py()] * chosen.num_rows, chosen.schema.field(at).type)
        changed = chosen.set_column(at, chosen.schema.field(at), taxed)
        pieces += [changed, _new_lines(changed)]
    return pa.Table.from_batches(pieces)


def _times(array: pa.Array, step: int) -> pa.Array:
    return pc.multiply(pc.divide(array, step), step)


def _new_lines(batch: pa.RecordBatch) -> pa.RecordBatch:
    some = batch.take(pa.arange(0, batch.num_rows // 10))
    at = some.schema.get_field_index("l_linenumber")
    lines = pc.add(some.column(at), pa.scalar(_NEW_LINES, pa.int32()))
    return some.set_column(at, some.schema.field(at), lines)


class LakebedMerge:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        _make_sources(data, case.sizes["thousandths"])
        rows = tpch(data, case.sizes["thousandths"], "lineitem")
        with lakebed.open(folder, create=True) as lake:
            lake.create_table("bench.lineitem", rows.schema).append(rows)

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        lake = lakebed.open(folder)
        table = lake.table("bench.lineitem")
        source = _source(case, data)

        def run() -> object:
            merge = table.merge(source, _ON).when_matched_update_all()
            return merge.when_not_matched_insert_all().execute()

        def facts(_: object) -> dict[str, Fact]:
            return _facts(table.scan(columns=["l_tax"]).to_arrow().column(0), source)

        return Call(run, facts)


class DeltalakeMerge:
    environment = "peers"
    owner = "deltalake"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import deltalake

        _make_sources(data, case.sizes["thousandths"])
        deltalake.write_deltalake(folder, tpch(data, case.sizes["thousandths"], "lineitem"))

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import deltalake

        table = deltalake.DeltaTable(folder)
        source = _source(case, data)

        def run() -> object:
            merge = table.merge(source, _ON, source_alias="s", target_alias="t")
            return merge.when_matched_update_all().when_not_matched_insert_all().execute()

        def facts(_: object) -> dict[str, Fact]:
            rows = deltalake.DeltaTable(folder).to_pyarrow_table(columns=["l_tax"])
            return _facts(rows.column(0), source)

        return Call(run, facts)


def _facts(taxes: pa.ChunkedArray, source: pa.Table) -> dict[str, Fact]:
    as_text = str(pc.sum(taxes).as_py())
    return {"rows": len(taxes), "sum": as_text, "source": source.num_rows}


def _cases(tiny: bool) -> Sequence[Case]:
    thousandths = 1 if tiny else 1000
    return [
        Case(f"{part} % matched", "lineitem", {"thousandths": thousandths, "step": step})
        for part, step in _STEPS.items()
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, systems in results.items():
        ours, theirs = systems["lakebed"], systems["deltalake"]
        same = ours.facts == theirs.facts
        yield alike(name, "the same rows come out", f"{ours.facts['rows']:,}", same)
        yield at_most(name, "CPU, part of deltalake's < 1", ours.cpu_s / theirs.cpu_s, 0.999)
        memory = ours.peak_bytes / theirs.peak_bytes
        yield at_most(name, "peak memory, part of deltalake's < 1", memory, 0.999)


MEASURE = Measure(
    "merge",
    "MERGE into TPC-H lineitem, scale factor 1",
    {"lakebed": LakebedMerge(), "deltalake": DeltalakeMerge()},
    _cases,
    _judge,
    changes=True,
)
