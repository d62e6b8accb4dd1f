"""Restore: the table becomes what it was, by a commit that adds no data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import lakebed


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        yield lake


@pytest.fixture
def table(lake: lakebed.Lake) -> lakebed.Table:
    """Version 1 has three rows, version 2 two others beside them."""
    table = lake.create_table("s.t", "id long not null, word string")
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5))
    return table


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": i, "word": f"w{i}"} for i in ids]


def ids(table: lakebed.Table, **point: Any) -> list[int]:
    """By us, and for the head by the readers of both formats too."""
    found = sorted(table.scan(**point).to_arrow()["id"].to_pylist())
    if not point:
        iceberg = StaticTable.from_metadata(table.location).scan().to_arrow()
        assert sorted(delta(table)["id"].to_pylist()) == found
        assert sorted(iceberg["id"].to_pylist()) == found
    return found


def delta(table: lakebed.Table) -> pa.Table:
    query = QueryBuilder().register("t", DeltaTable(table.location))
    return pa.table(query.execute("SELECT * FROM t").read_all())


def test_a_restore_is_a_commit_that_writes_no_data(table: lakebed.Table) -> None:
    before = set(Path(table.location, "data").rglob("*"))

    commit = table.restore(version=1, message="too much")

    assert (commit.version, commit.operation, commit.message) == (3, "restore", "too much")
    assert commit.summary["restored_version"] == 1
    assert (commit.summary["removed_files"], commit.summary["removed_rows"]) == (1, 2)
    assert set(Path(table.location, "data").rglob("*")) == before
    assert ids(table) == [1, 2, 3]
    assert ids(table, version=2) == [1, 2, 3, 4, 5]
    assert (table.row_count, table.version) == (3, 3)


def test_a_restore_can_be_undone_by_another(table: lakebed.Table) -> None:
    table.restore(version=1)
    table.restore(version=2)
    assert ids(table) == [1, 2, 3, 4, 5]
    table.restore(version=3)
    assert ids(table) == [1, 2, 3]
    table.restore(version=0)
    assert ids(table) == []
    table.restore(version=4)
    assert ids(table) == [1, 2, 3, 4, 5]
    assert [c.operation for c in table.history(5)] == ["restore"] * 5


def test_a_moment_or_a_tag_says_where_to_go(table: lakebed.Table) -> None:
    table.create_tag("good", version=1)
    moment = table.history()[0].time

    table.restore(ref="good")
    assert ids(table) == [1, 2, 3]
    table.restore(timestamp=moment)
    assert ids(table) == [1, 2, 3, 4, 5]


def test_rows_that_vectors_hide_come_back_and_go(table: lakebed.Table) -> None:
    table.delete("id = 1")
    table.delete("id = 2")

    table.restore(version=3)
    assert ids(table) == [2, 3, 4, 5]
    table.restore(version=2)
    assert ids(table) == [1, 2, 3, 4, 5]
    table.restore(version=4)
    assert ids(table) == [3, 4, 5]
    table.delete("id = 3")
    assert ids(table) == [4, 5]


def test_a_restore_goes_back_over_the_upgrade_to_iceberg_v3(table: lakebed.Table) -> None:
    table.delete("id = 1")
    assert _metadata_version(table) == 3

    table.restore(version=1)

    assert ids(table) == [1, 2, 3]
    assert _metadata_version(table) == 3
    table.append(rows(6))
    assert ids(table) == [1, 2, 3, 6]


def _metadata_version(table: lakebed.Table) -> int:
    return StaticTable.from_metadata(table.location).metadata.format_version


def test_columns_come_back_with_their_rows(table: lakebed.Table) -> None:
    table.alter().rename_column("word", "text").add_column("n", "int").commit()
    table.append([{"id": 6, "text": "w6", "n": 7}])
    table.alter().drop_column("n").commit()

    table.restore(version=4)
    assert table.to_arrow().column_names == ["id", "text", "n"]
    assert {r["n"] for r in table.to_arrow().to_pylist() if r["id"] == 6} == {7}
    table.restore(version=2)
    assert table.to_arrow().column_names == ["id", "word"]
    assert delta(table).column_names == ["id", "word"]
    assert StaticTable.from_metadata(table.location).scan().to_arrow().column_names == [
        "id",
        "word",
    ]
    table.append(rows(7))
    assert ids(table) == [1, 2, 3, 4, 5, 7]


def test_partitioning_properties_and_constraints_come_back(lake: lakebed.Lake) -> None:
    table = lake.create_table(
        "s.p", "id long, day string", partition_by=["day"], properties={"owner": "Ada"}
    )
    table.append([{"id": 1, "day": "a"}, {"id": 2, "day": "b"}])
    table.set_properties({"owner": "Kay"})
    table.alter().add_constraint("small", "id < 10").commit()
    table.alter().set_partitioning(["bucket(4, id)"]).commit()
    table.append([{"id": 3, "day": "c"}])

    table.restore(version=1)

    assert [f.name for f in table.partitioning.fields] == ["day"]
    assert (table.properties["owner"], dict(table.constraints)) == ("Ada", {})
    table.append([{"id": 11, "day": "a"}])
    assert ids(table) == [1, 2, 11]
    assert lake.check().clean


def test_nothing_is_done_at_the_version_itself(table: lakebed.Table) -> None:
    commit = table.restore(version=2)

    assert (commit.changed, commit.version, table.version) == (False, 2, 2)


def test_versions_and_times_there_are_not_name_those_there_are(table: lakebed.Table) -> None:
    first = table.history()[-1].time

    with pytest.raises(lakebed.NotFound) as refused:
        table.restore(version=3)
    assert refused.value.hint == "its versions are 0 to 2"
    with pytest.raises(lakebed.NotFound) as refused:
        table.restore(timestamp="2001-01-01")
    assert first.isoformat(timespec="milliseconds") in refused.value.hint
    with pytest.raises(lakebed.NotFound) as refused:
        table.scan(timestamp="2999-01-01").to_arrow()
    assert "its newest version is 2" in refused.value.hint
    for wrong in ({}, {"version": -1}, {"version": "1"}, {"ref": "nothing"}, {"ref": 5}):
        with pytest.raises(lakebed.LakebedError):
            table.restore(**wrong)
    assert table.version == 2


def test_a_branch_is_restored_within_itself(table: lakebed.Table) -> None:
    table.create_branch("b")
    table.append(rows(6), branch="b")
    table.delete("id = 1", branch="b")

    table.restore(version=3, branch="b")
    assert ids(table, ref="b") == [1, 2, 3, 4, 5, 6]
    table.restore(version=2, branch="b")
    assert ids(table, ref="b") == [1, 2, 3, 4, 5]
    with pytest.raises(lakebed.NotFound) as refused:
        table.restore(version=1, branch="b")
    assert refused.value.hint == "it can go back to versions 2 to 6"
    assert ids(table) == [1, 2, 3, 4, 5]
    with pytest.raises(lakebed.InvalidInput, match="another branch"):
        table.restore(ref="b", version=3)


def test_a_restored_branch_keeps_the_columns_of_the_table(table: lakebed.Table) -> None:
    table.create_branch("b")
    table.append(rows(6), branch="b")
    table.alter().add_column("n", "int").commit()

    table.restore(version=2, branch="b")

    assert table.schema.find(("n",)) is not None
    assert table.scan(ref="b").to_arrow().column_names == ["id", "word", "n"]


def test_a_restore_in_a_transaction_is_seen_and_is_alone(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    log = lake.create_table("s.log", "what string")

    with lake.transaction() as tx:
        tx.table("s.t").restore(version=1)
        assert sorted(tx.table("s.t").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
        tx.table("s.log").append([{"what": "restored"}])
    assert ids(table) == [1, 2, 3]
    assert log.history()[0].transaction_id == table.history()[0].transaction_id

    tx = lake.transaction()
    tx.table("s.t").append(rows(9))
    with pytest.raises(lakebed.InvalidInput, match="only change"):
        tx.table("s.t").restore(version=2)
    tx.rollback()
    tx = lake.transaction()
    tx.table("s.t").restore(version=2)
    tx.table("s.t").append(rows(9))
    with pytest.raises(lakebed.InvalidInput, match="only change"):
        tx.commit()
    assert ids(table) == [1, 2, 3]


def test_a_change_that_was_decided_before_a_restore_is_checked_against_it(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    late = lake.transaction()
    late.table("s.t").delete("id = 4")
    blind = lake.transaction()
    blind.table("s.t").append(rows(9))

    table.restore(version=1)

    with pytest.raises(lakebed.CommitConflict):
        late.commit()
    blind.commit()
    assert ids(table) == [1, 2, 3, 9]


def test_the_same_key_restores_once(table: lakebed.Table) -> None:
    first = table.restore(version=1, idempotency_key="k")
    table.append(rows(9))
    again = table.restore(version=1, idempotency_key="k")

    assert (again.replayed, again.version) == (True, first.version)
    assert ids(table) == [1, 2, 3, 9]


def test_columns_do_not_become_narrower_under_the_rows_of_a_branch(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.narrow", "id long, n int")
    table.append([{"id": 1, "n": 1}])
    table.alter().widen_column("n", "long").commit()
    table.create_branch("audit")
    table.append([{"id": 2, "n": 2**40}], branch="audit")

    with pytest.raises(lakebed.InvalidInput, match="audit"):
        table.restore(version=1)

    assert table.scan(ref="audit", where="id = 2").to_arrow()["n"].to_pylist() == [2**40]
    table.drop_branch("audit")
    table.restore(version=1)
    assert table.to_arrow().schema.field("n").type == pa.int32()
