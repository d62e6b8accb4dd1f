"""posixlake's points (PL-…) about its API, with the holes its code had."""

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import orjson
import pyarrow as pa
import pytest

import lakebed
from lakebed.model import errors
from lakebed.model.types import PRIMITIVES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def ids(table: Any) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


def test_pl_40_what_the_first_example_shows_works(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "db", create=True) as lake:
        data = lake.create_table("s.data", "id long not null, name string", primary_key=["id"])
        with lake.transaction(message="first") as tx:
            tx.table("s.data").append([{"id": 1, "name": "Alice"}, {"id": 2, "name": "Bob"}])

        assert data.scan(where="id = 2").to_arrow().to_pylist() == [{"id": 2, "name": "Bob"}]

    with lakebed.open(tmp_path / "db") as again:
        assert again.table("s.data").row_count == 2


def test_pl_41_every_operation_on_rows_and_versions_is_there(orders: lakebed.Table) -> None:
    orders.append(pa.table({"id": range(10), "name": ["n"] * 10}))
    then = orders.history(limit=1)[0].time
    orders.delete("id >= 5")
    merge = orders.merge([{"id": 1, "name": "m"}, {"id": 9, "name": "i"}], "t.id = s.id")
    merge = merge.when_matched_update({"name": "s.name"}, "s.id = 1")
    merge.when_not_matched_insert({"id": "s.id", "name": "s.name"}, "s.id > 5").execute()

    assert ids(orders) == [0, 1, 2, 3, 4, 9]
    assert orders.scan(version=1).to_arrow().num_rows == 10
    assert orders.scan(timestamp=then).to_arrow().num_rows == 10
    assert orders.files(version=1)[0].record_count == 10


def test_pl_42_a_rollback_takes_deletes_back_and_reads_see_own_writes(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    orders.append([{"id": i} for i in range(5)])
    version = orders.version

    tx = lake.transaction()
    inside = tx.table("sales.orders")
    assert inside.delete("id < 3").deleted_rows == 3
    inside.append([{"id": 50}])
    orders.append([{"id": 99}])  # by somebody else, after our first look
    assert (ids(inside), ids(orders)) == ([3, 4, 50], [0, 1, 2, 3, 4, 99])
    tx.rollback()

    assert (ids(orders), orders.version) == ([0, 1, 2, 3, 4, 99], version + 1)


def test_pl_42_writes_to_the_same_rows_are_told_apart(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    orders.append([{"id": 1, "amount": 1.0}, {"id": 2, "amount": 1.0}])
    tx = lake.transaction()
    tx.table("sales.orders").update({"amount": 2.0}, "id = 1")
    orders.update({"amount": 3.0}, "id = 1")

    with pytest.raises(lakebed.CommitConflict):
        tx.commit()

    assert orders.scan(where="id = 1").to_arrow()["amount"].to_pylist() == [3.0]


def test_pl_43_a_delete_writes_a_deletion_vector_and_no_data(orders: lakebed.Table) -> None:
    orders.append([{"id": i} for i in range(100)])
    before = [f.path for f in orders.files()]

    orders.delete("id IN (3, 50)")

    assert [f.path for f in orders.files()] == before
    log = Path(orders.location, "_delta_log", f"{orders.version:020}.json").read_bytes()
    adds = [a["add"] for a in map(orjson.loads, log.splitlines()) if "add" in a]
    assert [a["deletionVector"]["cardinality"] for a in adds] == [2]
    assert ids(orders) == [i for i in range(100) if i not in (3, 50)]


def test_pl_44_statistics_leave_files_out_and_explain_tells_it(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    for first in range(0, 50, 10):
        orders.append([{"id": i} for i in range(first, first + 10)])

    plan = orders.scan(where="id = 33 OR (id > 45 AND name IS NULL)").plan()
    told = lake.sql("EXPLAIN SELECT * FROM sales.orders WHERE id = 33").to_arrow()

    assert (len(plan.files), plan.pruned) == (2, 3)
    assert told["plan"].to_pylist()[0] == "sales.orders version 5: 1 of 5 files kept"


def test_pl_45_a_handle_sees_a_new_column_at_once(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    orders.append([{"id": 1}])
    other = lake.table("sales.orders")

    orders.append([{"id": 2, "channel": "web"}], merge_schema=True)

    rows = sorted(other.to_arrow().to_pylist(), key=lambda r: int(r["id"]))
    assert [r["channel"] for r in rows] == [None, "web"]
    assert other.schema.fields[-1].name == "channel"


def test_pl_46_timestamps_keep_their_zone_or_have_none(lake: lakebed.Lake) -> None:
    moment = datetime(2024, 5, 6, 7, 8, 9, 123456, UTC)
    table = lake.create_table("s.t", "id long, z timestamp, n timestamp_ntz")
    table.append([{"id": 1, "z": moment, "n": moment.replace(tzinfo=None)}])

    fields = {f.name: str(f.type) for f in deltalake.DeltaTable(table.location).schema().fields}
    (row,) = deltalake.DeltaTable(table.location).to_pyarrow_table().to_pylist()

    assert "timestamp_ntz" in fields["n"]
    assert "timestamp_ntz" not in fields["z"]
    assert (row["z"], row["n"]) == (moment, moment.replace(tzinfo=None))


def test_pl_46_unsigned_numbers_are_taken_where_they_fit(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", pa.table({"id": pa.array([2**32 - 1], pa.uint32())}))
    assert ids(table) == [2**32 - 1]

    with pytest.raises(lakebed.InvalidInput):
        table.append(pa.table({"id": pa.array([2**64 - 1], pa.uint64())}))


def test_pl_50_rows_go_in_and_come_out_by_the_same_few_calls(orders: lakebed.Table) -> None:
    orders.append([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])

    commit = orders.apply_changes(
        [
            {"_op": "INSERT", "id": 3, "name": "c"},
            {"_op": "UPDATE", "id": 1, "name": "A"},
            {"_op": "DELETE", "id": 2},
        ],
        key="id",
    )

    counts = [commit.summary[f"{kind}_rows"] for kind in ("inserted", "updated", "deleted")]
    assert (counts, ids(orders)) == ([1, 1, 1], [1, 3])
    assert [f.name for f in orders.schema.fields] == ["id", "name", "amount"]
    assert Path(orders.location).is_dir()


def test_pl_51_no_row_beyond_the_first_batch_is_lost(orders: lakebed.Table) -> None:
    many: list[dict[str, Any]] = [{"id": i, "name": f"n{i}"} for i in range(5000)]

    first = orders.append(many)
    changes = [{**row, "_op": "D" if row["id"] % 2 else "U"} for row in many]
    second = orders.apply_changes(changes, key="id")
    third = orders.merge(many, "t.id = s.id").when_not_matched_insert(
        {"id": "s.id", "name": "s.name"}
    )

    assert first.summary["added_rows"] == 5000
    assert second.summary["deleted_rows"] == 2500
    assert orders.row_count == 2500
    assert third.execute().summary["inserted_rows"] == 2500
    assert ids(orders) == list(range(5000))


def test_pl_52_a_query_returns_values_and_not_their_pictures(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    orders.append([{"id": 1, "name": "one", "amount": 1.5}, {"id": 2}])

    rows = lake.sql("SELECT *, amount * 2 AS twice FROM sales.orders ORDER BY id").to_arrow()

    assert rows.to_pylist() == [
        {"id": 1, "name": "one", "amount": 1.5, "twice": 3.0},
        {"id": 2, "name": None, "amount": None, "twice": None},
    ]
    assert rows.schema.field("id").type == pa.int64()


def test_pl_53_every_documented_error_exists_and_is_raised_as_documented(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    lines = [line.split("|") for line in (DOCS / "errors.md").read_text("utf-8").splitlines()]
    told = {cells[2].strip(): cells[1].strip(" `") for cells in lines if len(cells) > 4}
    there = {
        name: kind.code
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, lakebed.LakebedError)
    }
    assert there.items() <= told.items()

    calls: dict[str, Callable[[], object]] = {
        "TABLE_NOT_FOUND": lambda: lake.table("sales.order"),
        "VERSION_NOT_FOUND": lambda: orders.scan(version=9).to_arrow(),
        "SCHEMA_MISMATCH": lambda: orders.append([{"id": "x"}]),
        "SQL_SYNTAX": lambda: lake.sql("SELEC 1"),
        "SQL_UNKNOWN_COLUMN": lambda: lake.sql("SELECT nope FROM sales.orders").to_arrow(),
        "DIVISION_BY_ZERO": lambda: lake.sql("SELECT 1 // 0").to_arrow(),
    }
    for code, call in calls.items():
        with pytest.raises(lakebed.LakebedError) as raised:
            call()
        assert raised.value.code == code


NESTED = "map<string, struct<a: list<decimal(9,2)>, b: map<int, struct<c: string, d: date>>>>"


def test_pl_54_every_type_and_generics_with_commas_are_understood(lake: lakebed.Lake) -> None:
    plain = [k for k in PRIMITIVES if k not in ("timestamp_ns", "timestamptz_ns", "time", "uuid")]
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(plain))
    table = lake.create_table("s.t", f"id long, {columns}, m {NESTED}, d decimal(38,10)")
    value = {"k": {"a": [Decimal("1.50"), None], "b": {7: {"c": "x,y", "d": None}}}}

    table.append([{"id": 1, "m": value, "d": Decimal("1234567890123456789012345678.0123456789")}])

    (row,) = table.to_arrow().to_pylist()
    assert dict(row["m"])["k"]["a"] == [Decimal("1.50"), None]
    assert dict(dict(row["m"])["k"]["b"])[7]["c"] == "x,y"
    assert row["d"] == Decimal("1234567890123456789012345678.0123456789")
