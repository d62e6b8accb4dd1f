"""Changes of rows on Spark give the rows, counts and files' rules of the embedded engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Protocol

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakebed.api.lake import Lake
from lakebed.api.merge import Merge
from lakebed.api.spark import Spark
from lakebed.api.table import Table
from lakebed.engines.arrow.partition import partition_folder
from lakebed.engines.spark import joining
from lakebed.model.errors import AmbiguousMerge
from lakebed.model.history import Commit
from lakebed.model.schema import Schema

COUNTS = (
    "inserted_rows",
    "updated_rows",
    "deleted_rows",
    "copied_rows",
    "vectored_files",
)
SCHEMA = "id long not null, k string, n int, price decimal(10,2), day date, at timestamp, x double"
Rows = Any  # pyarrow's tables have no types


class Engine(Protocol):
    def append(self, rows: Rows) -> Commit | None: ...
    def overwrite(self, rows: Rows, **how: Any) -> Commit | None: ...
    def delete(self, where: str) -> Commit | None: ...
    def update(self, set: Mapping[str, object], where: str | None = None) -> Commit | None: ...
    def upsert(self, rows: Rows) -> Commit | None: ...
    def merge(self, rows: Rows, on: str) -> Merge[Any]: ...


@dataclass
class Embedded:
    table: Table

    def append(self, rows: Rows) -> Commit | None:
        return self.table.append(rows)

    def overwrite(self, rows: Rows, **how: Any) -> Commit | None:
        return self.table.overwrite(rows, **how)

    def delete(self, where: str) -> Commit | None:
        return self.table.delete(where)

    def update(self, set: Mapping[str, object], where: str | None = None) -> Commit | None:
        return self.table.update(set, where)

    def upsert(self, rows: Rows) -> Commit | None:
        return self.table.upsert(rows)

    def merge(self, rows: Rows, on: str) -> Merge[Any]:
        return self.table.merge(rows, on)


@dataclass
class OnSpark:
    spark: Spark
    name: str

    def _frame(self, rows: Rows) -> Any:
        return self.spark.session.createDataFrame(rows)

    def append(self, rows: Rows) -> Commit | None:
        return self.spark.append(self._frame(rows), self.name)

    def overwrite(self, rows: Rows, **how: Any) -> Commit | None:
        return self.spark.overwrite(self._frame(rows), self.name, **how)

    def delete(self, where: str) -> Commit | None:
        return self.spark.delete(self.name, where)

    def update(self, set: Mapping[str, object], where: str | None = None) -> Commit | None:
        return self.spark.update(self.name, set, where)

    def upsert(self, rows: Rows) -> Commit | None:
        return self.spark.upsert(self._frame(rows), self.name)

    def merge(self, rows: Rows, on: str) -> Merge[Any]:
        return self.spark.merge(self.name, self._frame(rows), on)


def some(first: int, last: int, **changed: Any) -> Rows:
    rows = [
        {
            "id": n,
            "k": None if n % 7 == 0 else f"k{n % 3} ä/=%",
            "n": None if n % 5 == 0 else n,
            "price": Decimal(n) / 4,
            "day": date(2024, 1, 1 + n % 5),
            "at": datetime(2024, 1, 1 + n % 4, n % 24, tzinfo=UTC),
            "x": float("nan") if n % 11 == 0 else n / 2,
            **{name: make(n) if callable(make) else make for name, make in changed.items()},
        }
        for n in range(first, last)
    ]
    kinds = pa.schema(
        [
            ("id", pa.int64()),
            ("k", pa.string()),
            ("n", pa.int32()),
            ("price", pa.decimal128(10, 2)),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("x", pa.float64()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=kinds)


def start(table: Engine) -> None:
    table.append(some(0, 40))
    table.append(some(40, 60))


def delete_some(table: Engine) -> list[Commit | None]:
    return [table.delete("n % 3 = 0 OR k IS NULL"), table.delete("id < 10"), table.delete("id < 0")]


def update_some(table: Engine) -> list[Commit | None]:
    return [
        table.update({"n": "n + 1", "price": "price * 2"}, "id % 4 = 1"),
        table.update({"k": "'new'", "day": "'2024-02-03'", "x": None}, "id BETWEEN 5 AND 8"),
        table.update({"n": 7, "price": Decimal("1.25")}),
    ]


def merge_all(table: Engine) -> list[Commit | None]:
    merged = table.merge(some(50, 70, n=0), "t.id = s.id")
    return [merged.when_matched_update_all().when_not_matched_insert_all().execute()]


def merge_by_clauses(table: Engine) -> list[Commit | None]:
    merged = (
        table.merge(some(30, 80), "t.id = s.id AND t.id > 32")
        .when_matched_delete("s.id % 5 = 0")
        .when_matched_update({"n": "t.n + s.n", "k": "s.k"}, "t.n IS NOT NULL")
        .when_not_matched_insert({"id": "s.id + 1000", "k": "'in'"}, "s.id % 2 = 0")
        .when_not_matched_by_source_update({"k": "'old'"}, "t.id < 5")
        .when_not_matched_by_source_delete("id BETWEEN 5 AND 9")
    )
    return [merged.execute()]


def merge_nothing(table: Engine) -> list[Commit | None]:
    nothing = some(0, 0)
    return [table.merge(nothing, "t.id = s.id").when_matched_update_all().execute()]


def merge_with_null_condition(table: Engine) -> list[Commit | None]:
    merged = table.merge(some(0, 20), "t.k = s.k AND t.id = s.id")
    return [merged.when_matched_update({"n": "-1"}, "s.n > 3").execute()]


def upsert(table: Engine) -> list[Commit | None]:
    return [table.upsert(some(55, 65, k="u"))]


def overwrite_all(table: Engine) -> list[Commit | None]:
    return [table.overwrite(some(5, 15))]


def overwrite_some(table: Engine) -> list[Commit | None]:
    return [table.overwrite(some(100, 110, n=1), where="n < 30 AND n % 2 = 1")]


def changes_on_changes(table: Engine) -> list[Commit | None]:
    changed = [*delete_some(table), *update_some(table), *merge_all(table)]
    return [*changed, table.delete("n = 7 AND id % 3 = 1")]


def others(table: Engine) -> list[Commit | None]:
    steps = (merge_nothing, merge_with_null_condition, upsert, overwrite_all)
    return [commit for step in steps for commit in step(table)]


Operation = Callable[[Engine], list[Commit | None]]
EVERYWHERE: list[Operation] = [changes_on_changes, merge_by_clauses, overwrite_some]
PLAIN: list[Operation] = [others]
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "identity": {"partition_by": ["k"]},
    "hidden": {"partition_by": ["bucket(3, id)", "day(at)"]},
    "cow": {"properties": {"lakebed.upgrade": "never"}},
}
CASES = [(layout, operation) for layout in LAYOUTS for operation in EVERYWHERE]
CASES += [("plain", operation) for operation in PLAIN]


@pytest.mark.parametrize(("layout", "operation"), CASES, ids=lambda v: getattr(v, "__name__", v))
def test_rows_and_counts_are_the_same(
    layout: str, operation: Operation, lake: Lake, spark: SparkSession
) -> None:
    options = {"primary_key": ["id"], "formats": ["iceberg"], **LAYOUTS[layout]}
    embedded = lake.create_table("a.embedded", SCHEMA, **options)
    on_spark = lake.create_table("a.spark", SCHEMA, **options)
    start(Embedded(embedded))
    start(Embedded(on_spark))  # the same files: what follows is compared
    sp = OnSpark(lake.spark(spark), "a.spark")

    expected, found = operation(Embedded(embedded)), operation(sp)

    assert rows_of(on_spark) == rows_of(embedded)
    assert [counts(c) for c in found] == [counts(c) for c in expected]
    assert [c.changed for c in found if c] == [c.changed for c in expected if c]
    assert_layout(on_spark)
    assert not lake.check().findings


def test_a_source_too_large_to_be_sent_to_every_executor_gives_the_same(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def none_is_small(_: Schema, size_bytes: int) -> int:
        asked.append(size_bytes)
        return 0

    monkeypatch.setattr(joining, "rows_per_file", none_is_small)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")  # nor does Spark send it by itself
    tables = [
        lake.create_table(f"a.{name}", SCHEMA, primary_key=["id"], partition_by=["bucket(2, id)"])
        for name in ("embedded", "spark")
    ]
    for table in tables:
        start(Embedded(table))
    engines = Embedded(tables[0]), OnSpark(lake.spark(spark), "a.spark")

    expected, found = ([*merge_by_clauses(each), *upsert(each)] for each in engines)

    assert rows_of(tables[1]) == rows_of(tables[0])
    assert [counts(c) for c in found] == [counts(c) for c in expected]
    twice = pa.concat_tables([some(40, 50), some(46, 47)])
    with pytest.raises(AmbiguousMerge, match="46"):
        engines[1].merge(twice, "t.id = s.id").when_matched_update({"n": "s.n"}).execute()
    assert len(asked) >= 3


def counts(commit: Commit | None) -> dict[str, object]:
    assert commit is not None
    return {name: commit.summary.get(name) for name in COUNTS}


def rows_of(table: Table) -> list[str]:
    return sorted(map(repr, table.to_arrow().to_pylist()))


def assert_layout(table: Table) -> None:
    """Every file lies in the folder of its partition, and says so."""
    spec, schema = table.partitioning, table.schema
    for live in table.scan().plan().files:
        folder = partition_folder(spec, live.file.partition, schema)
        assert live.file.path.startswith(f"data/{folder}/" if folder else "data/")
        assert live.file.record_count > 0
