"""Appending, merging and deleting rows of TPC-H lineitem on Spark."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import spark
from benchmarks.data import tpch
from benchmarks.measure import Call, Case, Fact, Figures, Measure, Results, Verdict, alike, at_most

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ON = "t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber"
_MERGE = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
_DELETED = "l_orderkey % 100 = 7"
_WARM = 5  # as of reads: a call is short, and what it runs is compiled over the first ones
_NEW_LINES = 100  # new rows have line numbers that no order has
_MORE_OF_ICEBERG = {
    "format-version": "3",
    "write.merge.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
}


def _make_source(data: Path, case: Case) -> Path:
    """Rows from all over the table with another tax, and rows that the table lacks."""
    thousandths, updates, inserts = (
        case.sizes[name] for name in ("thousandths", "updates", "inserts")
    )
    path = data / f"lineitem-{thousandths}-{updates}-and-{inserts}.parquet"
    if not path.exists():
        rows = tpch(data, thousandths, "lineitem").read_all()
        count = min(updates, rows.num_rows)
        known = rows.take(pc.multiply(pa.arange(0, count), rows.num_rows // count))
        tax = pa.array([0.99], pa.float64()).cast(pa.decimal128(15, 2))[0]
        known = _with(known, "l_tax", pa.repeat(tax, count))
        new = known.slice(0, inserts)
        lines = pc.add(new.column("l_linenumber"), pa.scalar(_NEW_LINES, pa.int32()))
        pq.write_table(pa.concat_tables([known, _with(new, "l_linenumber", lines)]), path)
    return path


def _with(rows: pa.Table, name: str, values: object) -> pa.Table:
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, rows.schema.field(at), values)


class _Writing:
    environment = "lakebed"
    owner: str

    def _begin(self, case: Case, data: Path) -> "DataFrame":
        """The rows a table is made of."""
        if "updates" in case.sizes:
            _make_source(data, case)
        rows = spark.lineitem(data, case.sizes["thousandths"])
        return rows.limit(0) if case.table == "empty" else rows

    def _call(
        self,
        case: Case,
        data: Path,
        acts: Mapping[str, Callable[["DataFrame"], object]],
        rows_after: Callable[[], "DataFrame"],
        end: Callable[[], object] = lambda: None,
    ) -> Call:
        session = spark.session()
        if "updates" in case.sizes:
            given = session.read.parquet(str(_make_source(data, case)))
        else:
            given = spark.lineitem(data, case.sizes["thousandths"])
        given.createOrReplaceTempView("source")

        def facts(_: object) -> dict[str, Fact]:
            found = spark.sums(rows_after())
            end()
            return found

        return Call(lambda: acts[case.text](given), facts)


class LakebedWriting(_Writing):
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        spark.make_lineitem(folder, self._begin(case, data))

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        lake = spark.open_lake(folder)
        sp = lake.spark(spark.session())

        def merge(source: "DataFrame") -> object:
            merging = sp.merge(spark.TABLE, source, _ON).when_matched_update_all()
            return merging.when_not_matched_insert_all().execute()

        acts = {
            "append": lambda rows: sp.append(rows, spark.TABLE),
            "merge": merge,
            "delete": lambda _: sp.delete(spark.TABLE, _DELETED),
        }
        return self._call(case, data, acts, lambda: sp.table(spark.TABLE), lake.close)


class ParquetWriting(_Writing):
    owner = "parquet"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        self._begin(case, data).write.parquet(str(folder / "rows"))

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        out = str(folder / "rows")

        def append(rows: "DataFrame") -> None:
            rows.write.mode("append").parquet(out)

        read = spark.session().read
        return self._call(case, data, {"append": append}, lambda: read.parquet(out))


class _SqlWriting(_Writing):
    def _sql_call(self, case: Case, data: Path, table: str) -> Call:
        session = spark.session()
        append = f"INSERT INTO {table} SELECT * FROM source"  # noqa: S608 - our own names
        merge = f"MERGE INTO {table} t USING source s ON {_ON} {_MERGE}"
        delete = f"DELETE FROM {table} WHERE {_DELETED}"  # noqa: S608 - as above
        acts = {
            "append": lambda _: session.sql(append),
            "merge": lambda _: session.sql(merge),
            "delete": lambda _: session.sql(delete),
        }
        return self._call(case, data, acts, lambda: session.table(table))


class IcebergWriting(_SqlWriting):
    owner = "iceberg"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        table = f"{spark.iceberg_catalog(folder)}.{spark.TABLE}"
        writer = self._begin(case, data).writeTo(table).using("iceberg")
        for name, value in _MORE_OF_ICEBERG.items():
            writer = writer.tableProperty(name, value)
        writer.create()

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        return self._sql_call(case, data, f"{spark.iceberg_catalog(folder)}.{spark.TABLE}")


class DeltaWriting(_SqlWriting):
    owner = "delta"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        writer = self._begin(case, data).write.format("delta")
        writer.option("delta.enableDeletionVectors", "true").save(str(folder / "table"))

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        spark.forget_delta()
        return self._sql_call(case, data, f"delta.`{folder / 'table'}`")


def _cases(tiny: bool) -> Sequence[Case]:
    changing = ("lakebed", "iceberg", "delta")
    one = {"thousandths": 1 if tiny else 1000}
    source = {"updates": 600 if tiny else 60_000, "inserts": 100 if tiny else 10_000}
    return [
        Case("append", "empty", {"thousandths": 1 if tiny else 2000}, "append"),
        Case("merge", "lineitem", {**one, **source}, "merge", changing, warm=_WARM),
        Case("delete 1 %", "lineitem", {**one, **source}, "delete", changing, warm=_WARM),
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, systems in results.items():
        facts = [figures.facts for figures in systems.values()]
        same = all(each == facts[0] for each in facts)
        yield alike(name, "the same rows come out", f"{facts[0]['rows']:,}", same)
        bars = {"append": {"parquet": 1.15, "iceberg": 1.0, "delta": 1.0}}
        for peer, bar in bars.get(name, {"iceberg": 1.0, "delta": 0.5}).items():
            yield _within(name, systems, peer, bar)


def _within(name: str, systems: Mapping[str, Figures], peer: str, bar: float) -> Verdict:
    ours, theirs = systems["lakebed"].median_cpu_s, systems[peer].median_cpu_s
    return at_most(name, f"median CPU, times that of {peer} <= {bar}", ours / theirs, bar)


MEASURE = Measure(
    "spark-write",
    "Writing TPC-H lineitem on Spark",
    {
        "lakebed": LakebedWriting(),
        "parquet": ParquetWriting(),
        "iceberg": IcebergWriting(),
        "delta": DeltaWriting(),
    },
    _cases,
    _judge,
    changes=True,
    warm=2,
)
