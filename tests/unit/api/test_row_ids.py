"""Rows keep their ids through changes, also through the one that gives all rows ids."""

from typing import Any

import lakebed
from lakebed.engines.arrow.read import read


def ids(lake: Any, table: Any) -> dict[int, int]:
    plan = table.scan().plan()
    batches = read(plan, lake._parts.storage, metadata=("_row_id",))
    return {row["id"]: row["_row_id"] for batch in batches for row in batch.to_pylist()}


def test_the_update_that_upgrades_a_table_keeps_the_ids_it_gives() -> None:
    lake = lakebed.open(":memory:", create=True)
    table = lake.create_table("a.t", "id long, s string")
    table.append([{"id": n, "s": "x"} for n in range(10)])
    table.append([{"id": n, "s": "x"} for n in range(10, 15)])

    table.update({"s": "'new'"}, "id = 3")

    assert ids(lake, table) == {n: n for n in range(15)}
    changes = table.changes(from_version=2).to_arrow().to_pylist()
    assert [(c["_op"], c["id"], c["s"]) for c in changes] == [
        ("update_before", 3, "x"),
        ("update_after", 3, "new"),
    ]


def test_ids_outlive_copies_merges_and_restores() -> None:
    lake = lakebed.open(":memory:", create=True)
    table = lake.create_table("a.t", "id long, s string")
    table.append([{"id": n, "s": "x"} for n in range(6)])
    table.delete("id = 5")
    kept = ids(lake, table)

    table.update({"s": "'y'"}, "id < 3", settings={"write.update.mode": "copy-on-write"})
    assert ids(lake, table) == kept
    table.merge(
        [{"id": 1, "s": "z"}, {"id": 9, "s": "z"}], "t.id = s.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    after = ids(lake, table)
    assert {n: after[n] for n in kept} == kept
    assert after[9] not in kept.values()
    table.restore(version=2)
    assert ids(lake, table) == kept
    assert lake.check().clean
