"""Branches and tags: made, read, written to, taken by main, dropped."""

import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lakebed


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[lakebed.Lake]:
    """In a folder, with either database."""
    if request.param == "sqlite":
        opened = lakebed.open(tmp_path / "lake", create=True)
    else:
        url = request.getfixturevalue("postgres_url")
        opened = lakebed.open(url, create=True, warehouse=tmp_path / "warehouse")
    with opened as lake:
        yield lake


@pytest.fixture
def table(lake: lakebed.Lake) -> lakebed.Table:
    table = lake.create_table("s.t", "id long not null, word string")
    table.append(rows(1, 2, 3))
    return table


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": i, "word": f"w{i}"} for i in ids]


def ids(table: lakebed.Table, **point: Any) -> list[int]:
    return sorted(table.scan(**point).to_arrow()["id"].to_pylist())


def test_vectors_that_a_branch_had_first_are_told_to_delta_when_main_has_them(
    table: lakebed.Table, lake: lakebed.Lake
) -> None:
    table.create_branch("audit")
    table.delete("id = 1", branch="audit")

    table.delete("id = 2")

    assert lake.check().clean  # Delta's protocol changes with main's own first vector


def test_a_branch_has_rows_of_its_own_until_main_takes_them(table: lakebed.Table) -> None:
    made = table.create_branch("audit")
    assert (made.name, made.kind, made.version) == ("audit", "branch", 1)

    commit = table.append(rows(4), branch="audit", message="to be checked")
    table.delete("id = 1", branch="audit")

    assert (commit.version, commit.branch) == (2, "audit")
    assert ids(table) == [1, 2, 3]
    assert ids(table, ref="audit") == [2, 3, 4]
    assert (table.version, table.row_count) == (1, 3)

    taken = table.fast_forward("main", to="audit", message="checked")

    assert (taken.operation, taken.version, taken.branch) == ("fast-forward", 2, "main")
    assert taken.summary["branch_version"] == 3
    assert ids(table) == [2, 3, 4]
    assert ids(table, version=1) == [1, 2, 3]


def test_main_can_follow_a_branch_again_and_again(table: lakebed.Table) -> None:
    table.create_branch("b")
    for i in (4, 5):
        table.append(rows(i), branch="b")
        table.fast_forward("main", to="b")

    assert ids(table) == [1, 2, 3, 4, 5]
    with pytest.raises(lakebed.NoChanges):
        table.fast_forward("main", to="b")
    with pytest.raises(lakebed.NoChanges):
        table.fast_forward("main", to="main")


def test_main_that_changed_cannot_follow(table: lakebed.Table) -> None:
    table.create_branch("b")
    table.append(rows(4), branch="b")
    table.append(rows(5))

    with pytest.raises(lakebed.LakebedError) as refused:
        table.fast_forward("main", to="b")

    assert refused.value.code == "BRANCH_DIVERGED"
    assert ids(table) == [1, 2, 3, 5]


def test_metadata_of_main_may_change_before_it_follows(table: lakebed.Table) -> None:
    table.create_branch("b")
    table.append(rows(4), branch="b")
    table.alter().add_column("note", "string").commit()

    table.fast_forward("main", to="b")

    assert ids(table) == [1, 2, 3, 4]
    assert "note" in table.to_arrow().column_names


def test_rows_that_did_not_pass_a_new_constraint_stay_on_their_branch(
    table: lakebed.Table,
) -> None:
    table.create_branch("b")
    table.append(rows(-4), branch="b")
    table.alter().add_constraint("positive", "id > 0").commit()

    with pytest.raises(lakebed.LakebedError) as refused:
        table.fast_forward("main", to="b")

    assert refused.value.code == "BRANCH_DIVERGED"
    assert ids(table) == [1, 2, 3]


def test_a_branch_of_a_branch_is_no_line_that_main_can_take(table: lakebed.Table) -> None:
    table.create_branch("one")
    table.append(rows(4), branch="one")
    table.create_branch("two", ref="one")
    table.append(rows(5), branch="two")

    assert ids(table, ref="two") == [1, 2, 3, 4, 5]
    assert ids(table, ref="one") == [1, 2, 3, 4]
    with pytest.raises(lakebed.LakebedError, match="began on another branch"):
        table.fast_forward("main", to="two")
    with pytest.raises(lakebed.LakebedError, match="only main"):
        table.fast_forward("one", to="two")


def test_a_handle_of_a_branch_reads_and_writes_it(lake: lakebed.Lake, table: lakebed.Table) -> None:
    table.create_branch("b")
    branch = lake.table("s.t@b")

    branch.append(rows(4))
    branch.update({"word": "'new'"}, "id = 2")

    assert branch.name == "s.t"
    assert (branch.version, branch.row_count) == (3, 4)
    assert sorted(branch.to_arrow()["word"].to_pylist()) == ["new", "w1", "w3", "w4"]
    assert [c.version for c in branch.history()] == [3, 2, 1, 0]
    assert [c.branch for c in branch.history()] == ["b", "b", "main", "main"]
    assert ids(table) == [1, 2, 3]
    branch.fast_forward("main", to="b")
    assert table.to_arrow().sort_by("id") == branch.to_arrow().sort_by("id")


def test_a_tag_is_a_version_that_keeps_its_name(lake: lakebed.Lake, table: lakebed.Table) -> None:
    table.create_tag("first")
    table.alter().rename_column("word", "text").commit()
    table.append([{"id": 4, "text": "w4"}])
    tagged = lake.table("s.t@first")

    assert ids(table, ref="first") == [1, 2, 3]
    assert (tagged.version, tagged.row_count) == (1, 3)
    assert tagged.to_arrow().column_names == ["id", "word"]
    assert [f.name for f in tagged.schema.fields] == ["id", "word"]
    with pytest.raises(lakebed.InvalidInput, match="is a tag"):
        tagged.append(rows(9))
    with pytest.raises(lakebed.InvalidInput, match="is a tag"):
        table.append(rows(9), branch="first")
    with pytest.raises(lakebed.InvalidInput, match="one version"):
        table.scan(ref="first", version=0)


def test_a_tag_of_a_branch_outlives_it(table: lakebed.Table) -> None:
    table.create_branch("b")
    table.append(rows(4), branch="b")
    table.create_tag("kept", ref="b")
    table.append(rows(5), branch="b")
    table.drop_branch("b")

    assert ids(table, ref="kept") == [1, 2, 3, 4]
    assert [c.branch for c in table.history(ref="kept")] == [None, "main", "main"]
    with pytest.raises(lakebed.NotFound, match="no branch or tag 'b'"):
        table.scan(ref="b")


def test_refs_begin_at_the_version_or_time_that_is_named(table: lakebed.Table) -> None:
    table.append(rows(4))
    table.create_branch("old", version=1)
    table.create_tag("then", timestamp=table.history()[1].time)

    assert ids(table, ref="old") == ids(table, ref="then") == [1, 2, 3]
    table.append(rows(5), branch="old")
    assert ids(table, ref="old") == [1, 2, 3, 5]
    assert ids(table, ref="old", version=1) == [1, 2, 3]
    with pytest.raises(lakebed.NotFound, match="no version 9"):
        table.create_branch("later", version=9)


def test_refs_are_listed_with_what_is_kept(table: lakebed.Table) -> None:
    table.create_branch("b", max_age=timedelta(days=7), min_snapshots=2, max_snapshot_age=5_000)
    table.create_tag("a", max_age=1000)

    main, tag, branch = table.refs()

    assert (main.name, main.version, main.kind) == ("main", 1, "branch")
    assert (tag.name, tag.kind, tag.max_age_ms) == ("a", "tag", 1000)
    assert (branch.max_age_ms, branch.min_snapshots, branch.max_snapshot_age_ms) == (
        7 * 86_400_000,
        2,
        5_000,
    )
    assert main.snapshot_id == branch.snapshot_id
    kept = table.set_retention("b", min_snapshots=5)
    assert (kept.max_age_ms, kept.min_snapshots) == (None, 5)
    assert table.refs()[2] == kept


@pytest.mark.parametrize("name", ["", "a b", "a@b", "-x", "ä", "x" * 256, None, 3])
def test_names_that_are_none_are_refused(table: lakebed.Table, name: Any) -> None:
    with pytest.raises(lakebed.InvalidInput):
        table.create_branch(name)
    assert len(table.refs()) == 1


def test_what_cannot_be_is_refused_and_nothing_changes(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    table.create_branch("b")
    table.create_tag("t")
    refused: list[Callable[[], object]] = [
        lambda: table.create_tag("b"),
        lambda: table.create_branch("main"),
        lambda: table.drop_branch("t"),
        lambda: table.drop_tag("nothing"),
        lambda: table.drop_branch("main"),
        lambda: table.set_retention("main", max_age=5),
        lambda: table.set_retention("t", min_snapshots=5),
        lambda: table.set_retention("b", min_snapshots=0),
        lambda: table.create_branch("c", max_age=timedelta()),
        lambda: table.create_branch("c", version=1, timestamp=0),
        lambda: table.append(rows(5), branch="nothing"),
        lambda: table.append(rows(5), branch="b", txn=("app", 1)),
        lambda: lake.table("s.t@nothing"),
        lambda: lake.table("s.t@"),
        lambda: lake.create_table("s.new", "id long", branch="b"),
        lambda: lake.create_table("s.a@b", "id long"),
    ]
    for wrong in refused:
        with pytest.raises(lakebed.LakebedError):
            wrong()
    assert [r.name for r in table.refs()] == ["main", "b", "t"]
    assert lake.tables() == ["s.t"]
    assert ids(table, ref="b") == [1, 2, 3]


def test_columns_and_properties_belong_to_the_table(table: lakebed.Table) -> None:
    table.create_branch("b")
    refused_changes: list[Callable[[], object]] = [
        lambda: table.alter(branch="b").add_column("x", "long").commit(),
        lambda: table.set_properties({"a": "b"}, branch="b"),
        lambda: table.set_formats("delta", branch="b"),
        lambda: table.append([{"id": 1, "new": 2}], merge_schema=True, branch="b"),
    ]
    for change in refused_changes:
        with pytest.raises(lakebed.InvalidInput) as refused:
            change()
        assert refused.value.code == "UNSUPPORTED_FEATURE"
    assert [f.name for f in table.schema.fields] == ["id", "word"]

    table.alter().add_column("x", "long").commit()
    table.append([{"id": 5, "word": "w5", "x": 7}], branch="b")
    assert table.scan(ref="b", where="id = 5").to_arrow()["x"].to_pylist() == [7]


def test_a_branch_without_commits_follows_the_columns_of_the_table(table: lakebed.Table) -> None:
    table.create_branch("b")
    table.alter().add_column("x", "long").commit()

    assert table.scan(ref="b").to_arrow().column_names == ["id", "word", "x"]
    table.append(rows(4), branch="b")
    assert table.scan(ref="b", version=1).to_arrow().column_names == ["id", "word"]


def test_transactions_write_to_branches(lake: lakebed.Lake, table: lakebed.Table) -> None:
    other = lake.create_table("s.other", "id long")
    other.append([{"id": 0}])
    for each in (table, other):
        each.create_branch("b")

    with lake.transaction(branch="b") as tx:
        tx.table("s.t").append(rows(4))
        tx.table("s.other").append([{"id": 4}])
        assert tx.table("s.t").scan().to_arrow().num_rows == 4
    assert len({c.transaction_id for c in tx.commits.values()}) == 1
    assert (ids(table), ids(table, ref="b")) == ([1, 2, 3], [1, 2, 3, 4])
    assert ids(other, ref="b") == [0, 4]

    with lake.transaction() as tx:
        seen = tx.table("s.t@b").scan().to_arrow().num_rows
        tx.table("s.other").append([{"id": seen}])
    assert ids(other) == [0, 4]


def test_one_transaction_cannot_write_to_two_lines_of_a_table(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    table.create_branch("b")
    tx = lake.transaction()
    tx.table("s.t").append(rows(4))
    tx.table("s.t@b").append(rows(4))

    with pytest.raises(lakebed.InvalidInput, match="two branches"):
        tx.commit()
    assert ids(table) == ids(table, ref="b") == [1, 2, 3]


def test_serializable_reads_of_a_branch_are_checked_against_the_branch(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    table.create_branch("b")
    other = lake.create_table("s.other", "id long")

    def copy(meanwhile: str) -> None:
        with lake.transaction(isolation="serializable") as tx:
            count = tx.table("s.t@b").scan().to_arrow().num_rows
            table.append(rows(9), branch=meanwhile)
            tx.table("s.other").append([{"id": count}])

    copy("main")
    with pytest.raises(lakebed.CommitConflict):
        copy("b")
    assert ids(other) == [3]


def test_a_write_to_a_branch_that_is_gone_is_refused(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    table.create_branch("b")
    tx = lake.transaction()
    tx.table("s.t@b").append(rows(4))
    table.drop_branch("b")
    table.create_branch("b")

    with pytest.raises(lakebed.NotFound, match="was dropped"):
        tx.commit()
    assert ids(table, ref="b") == [1, 2, 3]


def test_the_same_key_gives_the_same_answer_on_a_branch(table: lakebed.Table) -> None:
    table.create_branch("b")
    first = table.append(rows(4), branch="b", idempotency_key="k")
    again = table.append(rows(4), branch="b", idempotency_key="k")

    assert (again.version, again.branch, again.replayed) == (first.version, "b", True)
    assert ids(table, ref="b") == [1, 2, 3, 4]
    with pytest.raises(lakebed.LakebedError) as refused:
        table.append(rows(4), idempotency_key="k")
    assert refused.value.code == "IDEMPOTENCY_MISMATCH"


def test_branches_conflict_with_themselves_alone(lake: lakebed.Lake, table: lakebed.Table) -> None:
    table.create_branch("b")
    tx = lake.transaction()
    tx.table("s.t@b").delete("id = 1")
    table.delete("id = 1")
    tx.commit()
    assert ids(table) == ids(table, ref="b") == [2, 3]

    tx = lake.transaction()
    tx.table("s.t@b").delete("id = 2")
    table.delete("id = 2", branch="b")
    with pytest.raises(lakebed.CommitConflict):
        tx.commit()


def test_refs_of_a_lake_that_cannot_publish_stand_and_are_told(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    metadata = Path(table.location) / "metadata"
    metadata.rename(metadata.with_name("away"))
    metadata.write_text("in the way")

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        table.create_tag("t")

    assert [r.name for r in table.refs()] == ["main", "t"]
    assert any("not published" in str(w.message) for w in told)
    metadata.unlink()
    metadata.with_name("away").rename(metadata)
    assert lake.publish().lags == ()


def test_a_history_says_how_long_its_commits_took(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.new", "id long")
    table.append([{"id": 1}])

    took = [commit.duration_ms for commit in table.history()]

    assert all(isinstance(ms, int) and 0 <= ms < 60_000 for ms in took)
    with pytest.raises(lakebed.InvalidInput, match="counted by lakebed"):
        table.append([{"id": 1}], summary={"duration_ms": "0"})


def test_a_transaction_sees_branches_at_the_moment_of_its_first_look(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    other = lake.create_table("s.other", "id long")
    table.create_branch("b")
    table.append(rows(4), branch="b")
    tx = lake.transaction()
    assert tx.table("s.other").scan().to_arrow().num_rows == 0

    other.append([{"id": 1}])
    table.append(rows(5), branch="b")

    seen = tx.table("s.t@b")
    assert sorted(seen.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert seen.version == 2
    tx.rollback()


def test_a_change_that_meets_no_row_says_which_branch_it_looked_at(table: lakebed.Table) -> None:
    table.create_branch("b")
    table.append(rows(4), branch="b")

    nothing = table.delete("id = 99", branch="b")

    assert (nothing.changed, nothing.branch, nothing.version) == (False, "b", 2)
    assert table.delete("id = 99").branch == "main"
