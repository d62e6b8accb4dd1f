"""Upsert by the declared primary key."""

import pyarrow as pa
import pytest

import lakebed
from lakebed.model.errors import AmbiguousMerge, SchemaMismatch


@pytest.fixture
def table(disk: lakebed.Lake) -> lakebed.Table:
    table = disk.create_table("a.t", "id long, part string, n int", primary_key=["id", "part"])
    table.append([{"id": i, "part": "x", "n": i} for i in range(5)])
    return table


def rows(table: lakebed.Table) -> list[tuple[int, str, int]]:
    return sorted((r["id"], r["part"], r["n"]) for r in table.to_arrow().to_pylist())


def test_keys_that_are_there_are_updated_and_others_inserted(table: lakebed.Table) -> None:
    commit = table.upsert([{"id": 1, "part": "x", "n": 10}, {"id": 1, "part": "y", "n": 20}])

    assert rows(table) == [(0, "x", 0), (1, "x", 10), (1, "y", 20), *rows(table)[3:]]
    assert (commit.summary["updated_rows"], commit.summary["inserted_rows"]) == (1, 1)
    assert (commit.operation, table.version, table.row_count) == ("merge", 2, 6)


def test_again_the_same_rows_add_none(table: lakebed.Table) -> None:
    new = pa.table({"n": pa.array([7, 8], pa.int32()), "id": [1, 9], "part": ["x", "x"]})

    table.upsert(new)
    once = rows(table)
    table.upsert(new)

    assert (rows(table), len(once)) == (once, 6)


def test_a_key_given_twice_is_named(table: lakebed.Table) -> None:
    with pytest.raises(AmbiguousMerge, match="id = 77, part = 'new'"):
        table.upsert([{"id": 77, "part": "new", "n": n} for n in range(2)])

    assert table.version == 1


def test_a_table_without_a_primary_key_is_refused(disk: lakebed.Lake) -> None:
    plain = disk.create_table("a.plain", [{"id": 1}])

    with pytest.raises(lakebed.InvalidInput, match="no primary key"):
        plain.upsert([{"id": 1}])

    assert plain.version == 0


def test_columns_must_be_those_of_the_table(table: lakebed.Table) -> None:
    with pytest.raises(lakebed.SchemaMismatch, match="lacks n"):
        table.upsert([{"id": 1, "part": "x"}])
    with pytest.raises(lakebed.SchemaMismatch, match="zzz"):
        table.upsert([{"id": 1, "part": "x", "n": 1, "zzz": 1}])
    with pytest.raises(lakebed.SchemaMismatch, match=r"row 2.*NULL"):
        table.upsert([{"id": 1, "part": "x", "n": 1}, {"id": None, "part": "x", "n": 1}])
    with pytest.raises(lakebed.SchemaMismatch, match="row 1"):
        table.upsert([{"id": 1, "part": "x", "n": 2**40}])

    assert table.version == 1


def test_a_row_that_leaves_a_column_out_is_refused(table: lakebed.Table) -> None:
    before = rows(table)

    with pytest.raises(SchemaMismatch, match="row 2 has no 'n'"):
        table.upsert([{"id": 1, "part": "x", "n": 10}, {"id": 2, "part": "x"}])

    assert (rows(table), table.version) == (before, 1)


def test_a_key_that_is_not_the_primary_one_is_never_null(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.keyed", [{"id": 1, "name": "a"}])

    table.upsert([{"id": 7, "name": "a"}, {"id": 8, "name": "b"}], key="name")
    with lake.transaction() as tx:
        tx.table("s.keyed").upsert([{"id": 9, "name": "b"}], key=["name"])

    assert sorted(table.to_arrow()["id"].to_pylist()) == [7, 9]
    with pytest.raises(lakebed.SchemaMismatch, match="NULL"):
        table.upsert([{"id": 1, "name": None}], key="name")
    with pytest.raises(lakebed.InvalidInput):
        table.upsert([{"id": 1, "name": "z"}])
