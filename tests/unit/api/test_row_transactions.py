"""Changes of rows inside transactions: seen there at once, committed together or not at all."""

from pathlib import Path
from typing import Any

import pytest

import lakebed

SCHEMA = "id long not null, word string, n int"


def rows(*ids: int) -> list[dict[str, object]]:
    return [{"id": i, "word": f"w{i}", "n": i} for i in ids]


@pytest.fixture
def table(disk: lakebed.Lake) -> lakebed.Table:
    table = disk.create_table("a.t", SCHEMA, primary_key=["id"])
    table.append(rows(*range(10)))
    return table


def found(source: Any) -> dict[int, int]:
    listed = source.scan().to_arrow().to_pylist()
    result = {r["id"]: r["n"] for r in listed}
    assert len(result) == len(listed)
    return result


def stored(table: lakebed.Table) -> set[str]:
    return {p.name for p in Path(table.location).rglob("*")}


def test_a_delete_inside_a_transaction_does_not_commit(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    """PL-42: what committed at once and survived the rollback."""
    before = stored(table)
    tx = disk.transaction()
    tx.table("a.t").delete("id < 5")
    tx.table("a.t").update({"n": 0})
    tx.table("a.t").merge(rows(1, 30), "t.id = s.id").when_matched_update_all().execute()
    assert len(found(table)) == 10
    tx.rollback()

    assert (table.version, len(found(table)), stored(table)) == (1, 10, before)


def test_all_kinds_together_are_one_commit_and_each_sees_those_before(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    with disk.transaction() as tx:
        staged = tx.table("a.t")
        staged.append(rows(20, 21, 22, 23))
        assert staged.delete("id IN (1, 20)").deleted_rows == 2
        assert staged.update({"n": "n + 100"}, "id IN (2, 21)").updated_rows == 2
        assert staged.update({"n": "n + 1000"}, "n > 100").updated_rows == 2
        merge = staged.merge(rows(22, 3, 40), "t.id = s.id").when_matched_delete()
        assert merge.when_not_matched_insert_all().execute().inserted_rows == 1
        assert staged.upsert(rows(40, 41)).updated_rows == 1
        staged.apply_changes([{"_op": "D", "id": 41}, {"_op": "U", "id": 40, "n": 1}])
        staged.overwrite(rows(5), where="id = 5")
        inside = found(staged)
        assert found(table) == {i: i for i in range(10)}

    kept = {i: i for i in (0, 4, 5, 6, 7, 8, 9, 23)}
    assert found(table) == inside == kept | {2: 1102, 21: 1121, 40: 1}
    assert table.version == 2
    (newest, *_) = table.history()
    assert (newest.operation, newest.summary["inserted_rows"]) == ("transaction", 7)
    assert (disk.check().findings, disk.check().notes) == ([], [])


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_of_the_transaction_change_in_either_mode(disk: lakebed.Lake, mode: str) -> None:
    modes = {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}
    table = disk.create_table("a.m", SCHEMA, properties=modes)
    table.append(rows(1, 2, 3))
    table.delete("id = 3")  # a vector, or a rewritten file
    with disk.transaction() as tx:
        staged = tx.table("a.m")
        staged.append(rows(*range(10, 20)))
        for i in range(10, 16):
            staged.delete(f"id = {i}")
            staged.update({"n": "n + 1"}, "id >= 16 OR id = 1")

    expected = {1: 7, 2: 2} | {i: i + 6 for i in range(16, 20)}
    assert found(table) == expected
    assert (disk.check().findings, disk.check().notes) == ([], [])


def test_a_table_created_and_changed_in_one_transaction(disk: lakebed.Lake) -> None:
    with disk.transaction() as tx:
        made = tx.create_table("a.new", SCHEMA)
        made.append(rows(1, 2, 3))
        made.delete("id = 2")
        made.update({"n": 7}, "id = 3")

    assert found(disk.table("a.new")) == {1: 1, 3: 7}
    assert disk.table("a.new").version == 0
    assert (disk.check().findings, disk.check().notes) == ([], [])


def test_several_tables_change_in_one_commit(disk: lakebed.Lake, table: lakebed.Table) -> None:
    other = disk.create_table("a.other", SCHEMA)
    other.append(rows(1, 2))
    with disk.transaction() as tx:
        tx.table("a.t").delete("id >= 5")
        tx.table("a.other").update({"n": 9}, "id = 1")

    first, second = table.history()[0], other.history()[0]
    assert first.transaction_id == second.transaction_id
    assert (first.summary["deleted_rows"], second.summary["updated_rows"]) == (5, 1)


def test_a_transaction_that_met_no_row_ends_quietly(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    with disk.transaction() as tx:
        assert tx.table("a.t").delete("id = 1000").changes == 0

    assert table.version == 1


def test_two_transactions_on_the_same_rows_conflict_and_on_others_do_not(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    with disk.transaction() as tx:
        tx.table("a.t").update({"n": 100}, "id = 1")
        table.update({"n": 50}, "id = 2")  # another row of the same file
    late = disk.transaction()
    late.table("a.t").update({"n": 100}, "id = 3")
    table.delete("id = 3")
    with pytest.raises(lakebed.CommitConflict):
        late.commit()

    expected = {i: i for i in range(10)} | {1: 100, 2: 50}
    del expected[3]
    assert found(table) == expected


def test_options_belong_to_the_transaction(disk: lakebed.Lake, table: lakebed.Table) -> None:
    with disk.transaction() as tx:
        merge = tx.table("a.t").merge(rows(1), "t.id = s.id").when_matched_delete()
        with pytest.raises(lakebed.InvalidInput, match="options"):
            merge.execute(message="no")
