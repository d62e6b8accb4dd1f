"""Tables that engines read differently if they can, and filters to hand down to them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl

from lakebed import Lake, Table
from lakebed.core.plan import Plan
from lakebed.model.vectors import Positions
from tests.conformance.engines import Filter
from tests.interop.every_type import PARTITIONED, PLACES
from tests.interop.every_type import Case as TypeCase

Build = Callable[[Lake], Table]
col = pl.col


@dataclass(frozen=True)
class Case:
    """A table, plans over it (one condition each, `None` for all rows), filters to push."""

    name: str
    build: Build
    wheres: Sequence[str | None] = (None,)
    filters: Sequence[Filter] = ()
    columns: Sequence[Sequence[str] | None] = (None,)
    changed: Callable[[Plan], Plan] = field(default=lambda plan: plan)


def _deleted(lake: Lake) -> Table:
    """Three files of five row groups each."""
    small = {"write.parquet.row-group-rows": "100"}
    table = lake.create_table("c.deleted", "id long, n int, s string", properties=small)
    for first in (0, 500, 1000):
        table.append([{"id": i, "n": i % 7, "s": f"row {i}"} for i in range(first, first + 500)])
    return table


def _without_rows(plan: Plan) -> Plan:
    """A whole row group, none of the next, some here and there; the last file stays whole."""
    gone = [Positions([*range(100, 200), 300, 301, 399, 400, 499]), Positions(range(0, 500, 3))]
    return replace(plan, deleted={f.id: p for f, p in zip(plan.files, gone, strict=False)})


def _without_any_row(plan: Plan) -> Plan:
    return replace(plan, deleted={live.id: Positions(range(500)) for live in plan.files})


def _by_delete(lake: Lake) -> Table:
    table = _deleted(lake)
    table.delete("n = 3 OR id BETWEEN 600 AND 720")
    table.delete("id = 1499")
    return table


def _evolved(lake: Lake) -> Table:
    """Swapped, dropped, added again, widened, with a default, and NULL in old files."""
    table = lake.create_table(
        "c.evolved",
        "id long, a string, b string, gone long, w int, f float, q decimal(9,2)",
        formats="iceberg",  # Delta has no defaults of columns
    )
    old = {"a": "a1", "b": "b1", "gone": 1, "w": 5, "f": 0.5, "q": Decimal("1.25")}
    table.append([{"id": 1, **old}, {"id": 2, **old, "a": None, "w": None}])
    alter = table.alter().rename_column("a", "x").rename_column("b", "a").rename_column("x", "b")
    alter.drop_column("gone").add_column("gone", "string").widen_column("w", "long")
    alter.widen_column("f", "double").widen_column("q", "decimal(18,2)")
    alter.add_column("d", "int", default=7).add_column("late", "date").commit()
    new = {
        "a": "a2",
        "b": "b2",
        "gone": "text",
        "w": 2**40,
        "f": 0.1,
        "q": Decimal("12345678901.5"),
    }
    table.append([{"id": 3, **new, "d": 8, "late": date(2024, 1, 1)}, {"id": 4, **new, "d": None}])
    return table


def _nested(lake: Lake) -> Table:
    """Members renamed, exchanged, dropped and added, in structs, lists and maps."""
    table = lake.create_table(
        "c.nested",
        "id long, s struct<a: int, b: string, t: struct<x: int, y: int>>,"
        " l list<struct<a: int, b: string>>, m map<string, struct<a: int, b: int>>, p list<int>",
    )
    some = {
        "s": {"a": 1, "b": "b", "t": {"x": 1, "y": 2}},
        "l": [{"a": 1, "b": "b"}, None],
        "m": [("k", {"a": 1, "b": 2})],
        "p": [1, None],
    }
    table.append([{"id": 1, **some}, {"id": 2}, {"id": 3, "s": {"a": None}, "l": [], "m": []}])
    alter = table.alter()
    for path, name in (("s.t.x", "z"), ("s.t.y", "x"), ("s.t.z", "y"), ("l.element.a", "renamed")):
        alter.rename_column(path, name)
    alter.add_column("s.added", "string").drop_column("l.element.b")
    alter.add_column("m.value.c", "date").widen_column("p.element", "long").commit()
    later = {
        "s": {"a": 2, "b": "c", "t": {"y": 10, "x": 20}, "added": "new"},
        "l": [{"renamed": 7}],
        "m": [("k", {"a": 3, "b": 4, "c": date(2024, 2, 29)})],
        "p": [2**40],
    }
    table.append([{"id": 4, **later}, {"id": 5}])
    return table


def _partitioned(lake: Lake) -> Table:
    """Hidden partitions by day, bucket and truncate; then by month instead of day."""
    table = lake.create_table(
        "c.parts",
        "id long, at timestamp, k string, n long",
        partition_by=["day(at)", "bucket(4, k)", "truncate(100, n)"],
    )
    days = [datetime(2024, month, day, 12, tzinfo=UTC) for month in (1, 2) for day in (1, 2, 28)]
    table.append([{"id": i, "at": at, "k": f"k{i}", "n": i * 90} for i, at in enumerate(days)])
    table.append([{"id": 10, "at": None, "k": None, "n": None}])
    table.alter().set_partitioning(["month(at)"]).commit()
    table.append([{"id": 20 + i, "at": at, "k": "k1", "n": i} for i, at in enumerate(days)])
    return table


def _odd_numbers(lake: Lake) -> Table:
    table = lake.create_table("c.odd", "id long, x double, f float, i int, t boolean")
    values = [None, math.nan, -0.0, 0.0, 1.5, -math.inf, math.inf]
    for at, x in enumerate(values):  # a file each: a pruned one is missed
        table.append([{"id": at, "x": x, "f": x, "i": at - 3 if at else None, "t": at % 2 == 0}])
    rows = [{"id": 10 + at, "x": x, "f": x, "i": at, "t": None} for at, x in enumerate(values)]
    table.append(rows)
    return table


def _small_files(lake: Lake) -> Table:
    table = lake.create_table("c.small", "id long, n int")
    with lake.transaction() as tx:
        for i in range(60):
            tx.table("c.small").append([{"id": i, "n": i % 5}])
    return table


def _empty(lake: Lake) -> Table:
    return lake.create_table("c.empty", "id long, s struct<a: int>, l list<string>")


def _of_type(case: TypeCase) -> Case:
    return Case(f"type-{case.name}", case.build)


_PARTITION_TYPES = ("c_boolean", "c_double", "c_string", "c_timestamp", "c_uuid")
_JAN = datetime(2024, 1, 2, tzinfo=UTC)
_ODD = [
    f"{name} {sign} {value}"
    for name in ("x", "f")
    for sign in ("=", "!=", "<", "<=", ">", ">=")
    for value in ("0.0", "1.5", "'NaN'")
]
_NAN = Filter("x = CAST('NaN' AS DOUBLE)", col("x") == pl.lit(math.nan))
CASES: tuple[Case, ...] = (
    Case(
        "deleted",
        _deleted,
        (None, "n = 3", "id < 150 AND s LIKE 'row 1%'", "id >= 100 AND id < 200"),
        (
            Filter("id > 120 AND id < 460", (col("id") > 120) & (col("id") < 460)),
            Filter("id BETWEEN 100 AND 199", col("id").is_between(100, 199)),
            Filter("n IN (1, 2, 3, 4, 5)", col("n").is_in([1, 2, 3, 4, 5])),
        ),
        changed=_without_rows,
    ),
    Case("all deleted", _deleted, (None, "n = 3"), changed=_without_any_row),
    Case("deleted by condition", _by_delete, (None, "n = 4")),
    Case(
        "evolved",
        _evolved,
        (None, "a = 'b1'", "gone IS NULL", "d = 7", "w > 4", "f = 0.5"),
        (
            Filter("b = 'a1'", col("b") == "a1"),  # renamed
            Filter("late IS NULL", col("late").is_null()),  # NULL in old files
            Filter("late = DATE '2024-01-01'", col("late") == date(2024, 1, 1)),
            Filter("d = 7", col("d") == 7),  # the default of old files
            Filter("w >= 5", col("w") >= 5),  # widened
            Filter("q < 2", col("q") < 2),
            Filter("NOT (gone = 'text')", ~(col("gone") == "text")),
            Filter("a = 'b1' OR d IS NULL", (col("a") == "b1") | col("d").is_null()),
        ),
        columns=(None, ("gone", "a"), ("d",), ("late", "id")),
    ),
    Case(
        "nested",
        _nested,
        (None, "s.t.x = 20", "s.added IS NULL"),
        (Filter("s IS NOT NULL", col("s").is_not_null()),),
        columns=(None, ("l",), ("m", "id"), ("s", "p")),
    ),
    Case(
        "partitioned",
        _partitioned,
        (None, "at < TIMESTAMP '2024-01-02 00:00:00Z'", "k = 'k1'", "n = 90"),
        (
            Filter("\"at\" < TIMESTAMP '2024-01-02T00:00:00Z'", col("at") < _JAN),
            Filter("k = 'k1'", col("k") == "k1"),
            Filter("n BETWEEN 100 AND 199", col("n").is_between(100, 199)),
            Filter('"at" IS NULL', col("at").is_null()),
            Filter("k <> 'k1' AND n < 300", (col("k") != "k1") & (col("n") < 300)),
        ),
    ),
    Case(
        "odd numbers",
        _odd_numbers,
        (None, *_ODD, "x IN (0.0, 1.5)", "NOT x IN (1.5, NULL)", "NOT (x > 0 OR i < 2)", "t"),
        (
            _NAN,
            Filter("x > 1", col("x") > 1),
            Filter("x <= 0", col("x") <= 0),
            Filter("x <> 0", col("x") != 0),
            Filter("NOT (x > 0)", ~(col("x") > 0)),
            Filter("i NOT IN (0, 1, 2, 3, 4)", ~col("i").is_in([0, 1, 2, 3, 4])),
            Filter("t", col("t")),
            Filter("NOT t OR x > 1", ~col("t") | (col("x") > 1)),
            Filter("i IS NULL AND x IS NULL", col("i").is_null() & col("x").is_null()),
        ),
    ),
    Case("small files", _small_files, (None, "n = 3"), (Filter("id = 31", col("id") == 31),)),
    Case("empty", _empty, (None, "id = 1"), (Filter("id = 1", col("id") == 1),)),
    Case("pruned to nothing", _small_files, ("id = 1000",)),
    *map(_of_type, PLACES),
    *(_of_type(case) for case in PARTITIONED if case.name.endswith(_PARTITION_TYPES)),
    Case("zero columns", _deleted, (None, "n = 3"), columns=((),), changed=_without_rows),
)
