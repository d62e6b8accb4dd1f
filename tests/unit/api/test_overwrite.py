"""Overwrites: whole tables, whole partitions, rows by a condition."""

from pathlib import Path

import pytest

import lakebed


@pytest.fixture
def table(disk: lakebed.Lake) -> lakebed.Table:
    table = disk.create_table("a.t", "id long, p string", partition_by=["p"])
    table.append([{"id": 1, "p": "x"}, {"id": 2, "p": "x"}, {"id": 3, "p": "y"}, {"id": 4}])
    return table


def rows(table: lakebed.Table) -> list[tuple[int, str | None]]:
    return sorted((r["id"], r["p"]) for r in table.to_arrow().to_pylist())


def stored(table: lakebed.Table) -> set[Path]:
    return set(Path(table.location).rglob("*"))


def test_a_condition_on_a_partition_replaces_it(table: lakebed.Table) -> None:
    commit = table.overwrite([{"id": 9, "p": "x"}], where="p = 'x'")

    assert rows(table) == [(3, "y"), (4, None), (9, "x")]
    assert (commit.summary["removed_rows"], commit.summary["added_rows"]) == (2, 1)
    assert len(table.scan(version=1).to_arrow()) == 4


def test_nulls_are_a_partition_too(table: lakebed.Table) -> None:
    table.overwrite([], where="p is null")

    assert rows(table) == [(1, "x"), (2, "x"), (3, "y")]


def test_a_condition_may_split_files(table: lakebed.Table) -> None:
    commit = table.overwrite([{"id": 1, "p": "z"}], where="id = 1")

    assert rows(table) == [(1, "z"), (2, "x"), (3, "y"), (4, None)]
    assert (commit.summary["deleted_rows"], commit.summary["vectored_files"]) == (1, 1)


def test_a_condition_that_all_rows_of_a_file_meet_is_enough(table: lakebed.Table) -> None:
    table.overwrite([{"id": 2, "p": "w"}], where="id <= 2")

    assert rows(table) == [(2, "w"), (3, "y"), (4, None)]


def test_rows_that_do_not_match_are_refused_and_nothing_is_written(table: lakebed.Table) -> None:
    before = stored(table)

    with pytest.raises(lakebed.SchemaMismatch, match="row 2 does not match") as refused:
        table.overwrite([{"id": 8, "p": "x"}, {"id": 9, "p": "y"}], where="p = 'x'")
    with pytest.raises(lakebed.SchemaMismatch, match="row 1"):
        table.overwrite([{"id": 9}], where="p = 'x'")  # NULL is no match

    assert refused.value.context["row"] == 1
    assert (table.version, stored(table)) == (1, before)


def test_partitions_written_to_are_replaced(table: lakebed.Table) -> None:
    table.overwrite([{"id": 7, "p": "y"}, {"id": 8, "p": "z"}], partitions=True)

    assert rows(table) == [(1, "x"), (2, "x"), (4, None), (7, "y"), (8, "z")]


def test_partitions_need_a_partitioned_table_and_no_condition(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    plain = disk.create_table("a.plain", [{"id": 1}])

    with pytest.raises(lakebed.InvalidInput, match="not partitioned"):
        plain.overwrite([{"id": 2}], partitions=True)
    with pytest.raises(lakebed.InvalidInput, match="not both"):
        table.overwrite([{"id": 2, "p": "x"}], partitions=True, where="p = 'x'")

    assert (plain.version, table.version) == (0, 1)


def test_everything_is_replaced_and_the_old_files_stay(table: lakebed.Table) -> None:
    old = {f.path for f in table.files()}

    table.overwrite([{"id": 5, "p": "x"}])

    assert rows(table) == [(5, "x")]
    assert old <= {str(p.relative_to(table.location)) for p in stored(table)}
    assert {f.path for f in table.files(version=1)} == old


def test_overwrites_inside_a_transaction_see_each_other(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    with disk.transaction() as tx:
        staged = tx.table("a.t")
        staged.overwrite([{"id": 1, "p": "n"}])
        staged.append([{"id": 2, "p": "n"}])
        staged.overwrite([{"id": 3, "p": "n"}], where="p = 'n'")
        assert staged.scan().to_arrow()["id"].to_pylist() == [3]

    assert (rows(table), table.version) == ([(3, "n")], 2)
    assert (disk.check().findings, disk.check().notes) == ([], [])
