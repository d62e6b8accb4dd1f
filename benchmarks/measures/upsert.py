"""1,000 rows put into a table of 10 million by key: nine in ten are there, all over the table."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.data import numbered, numbers
from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, alike, at_least

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog


def _source(case: Case) -> pa.Table:
    rows, count = case.sizes["rows"], case.sizes["source"]
    there = count - count // 10
    known = pc.multiply(pa.arange(0, there), rows // there)
    ids = pa.concat_arrays([known, pa.arange(rows, rows + count // 10)])
    return pa.Table.from_batches([numbered(ids, add=1)])


class LakebedUpsert:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        rows = numbers(case.sizes["rows"])
        with lakebed.open(folder, create=True) as lake:
            lake.create_table("bench.numbers", rows.schema, primary_key=["id"]).append(rows)

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        lake = lakebed.open(folder)
        table = lake.table("bench.numbers")
        source = _source(case)

        def facts(_: object) -> dict[str, Fact]:
            return _facts(table.scan(columns=["value"]).to_arrow())

        return Call(lambda: table.upsert(source), facts)


class PyicebergUpsert:
    environment = "peers"
    owner = "pyiceberg"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        catalog = _catalog(folder)
        catalog.create_namespace("bench")
        rows = numbers(case.sizes["rows"])
        catalog.create_table("bench.numbers", rows.schema).append(rows.read_all())

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        table = _catalog(folder).load_table("bench.numbers")
        source = _source(case)

        def facts(_: object) -> dict[str, Fact]:
            return _facts(table.refresh().scan(selected_fields=("value",)).to_arrow())

        return Call(lambda: table.upsert(source, join_cols=["id"]), facts)


def _catalog(folder: Path) -> "SqlCatalog":
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")


def _facts(rows: pa.Table) -> dict[str, Fact]:
    return {"rows": rows.num_rows, "sum": pc.sum(rows.column(0)).as_py()}


def _cases(tiny: bool) -> Sequence[Case]:
    rows, source = (1_000, 100) if tiny else (10_000_000, 1_000)
    sizes = {"rows": rows, "source": source}
    return [Case(f"{source:,} rows into {rows:,}", "numbers", sizes)]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, systems in results.items():
        ours, theirs = systems["lakebed"], systems["pyiceberg"]
        same = ours.facts == theirs.facts
        yield alike(name, "the same rows come out", f"{ours.facts['rows']:,}", same)
        yield at_least(name, "CPU, times less than PyIceberg: >= 20", theirs.cpu_s / ours.cpu_s, 20)


MEASURE = Measure(
    "upsert",
    "Upsert 1,000 rows into 10 million",
    {"lakebed": LakebedUpsert(), "pyiceberg": PyicebergUpsert()},
    _cases,
    _judge,
    changes=True,
)
