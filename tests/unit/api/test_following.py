"""Tables as streams: offsets, limits, and what ends a stream."""

import pickle
from typing import Any

import pytest

import lakebed
from lakebed.api.following import Following
from lakebed.api.offset import Offset
from lakebed.model.errors import StreamChanged, VersionNotFound


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": i, "word": f"w{i}"} for i in ids]


def read(following: Following, start: Offset, end: Offset) -> list[dict[str, Any]]:
    tasks = pickle.loads(pickle.dumps(following.tasks(start, end)))
    return [row for task in tasks for batch in task.to_batches() for row in batch.to_pylist()]


def batches(following: Following, start: Offset | None = None) -> list[list[int]]:
    """The ids of every batch until nothing is new; each offset goes through JSON's types."""
    found: list[list[int]] = []
    position = start or following.first()
    while True:
        end = Offset.from_plain(following.next(position).to_plain())
        if end == position:
            return found
        found.append(sorted(row["id"] for row in read(following, position, end)))
        assert following.tasks(end, end) == []
        position = end


@pytest.fixture
def table(disk: lakebed.Lake) -> lakebed.Table:
    """Versions 0 to 3, of one file each."""
    made = disk.create_table("s.t", rows(1, 2))
    for number in (3, 4, 5):
        made.append(rows(number))
    return made


def test_without_a_start_the_table_comes_first_and_then_what_is_added(
    table: lakebed.Table,
) -> None:
    following = table.follow()

    end = following.next(following.first())
    table.append(rows(6))
    table.append(rows(7))

    assert sorted(r["id"] for r in read(following, following.first(), end)) == [1, 2, 3, 4, 5]
    assert batches(following, end) == [[6, 7]]


def test_the_table_that_comes_first_has_no_deleted_rows(table: lakebed.Table) -> None:
    table.delete("id = 2")
    table.update({"word": "'new'"}, "id = 1")

    following = table.follow()

    assert batches(following) == [[1, 3, 4, 5]]


def test_a_stream_begins_at_a_version_a_time_or_now(table: lakebed.Table) -> None:
    second = table.history()[1]

    assert batches(table.follow(starting_version=0)) == [[1, 2, 3, 4, 5]]
    assert batches(table.follow(starting_version=2)) == [[4, 5]]
    assert batches(table.follow(starting_timestamp=second.time_ms)) == [[4, 5]]
    assert batches(table.follow(starting_timestamp=0)) == [[1, 2, 3, 4, 5]]
    assert batches(table.follow(starting_version="latest")) == []


def test_a_stream_that_began_now_reads_its_first_batch_again_alike(table: lakebed.Table) -> None:
    following = table.follow(starting_version="latest")
    start = following.first()
    table.append(rows(6))
    end = following.next(start)
    table.append(rows(7))

    again = table.follow(starting_version="latest")
    later = again.first()  # where "now" is by now

    assert [r["id"] for r in read(again, later, end)] == [6]
    assert batches(again, end) == [[7]]


def test_versions_that_are_not_there_are_refused(table: lakebed.Table) -> None:
    for start in (9, -1):
        with pytest.raises(VersionNotFound):
            table.follow(starting_version=start).first()
    with pytest.raises(VersionNotFound, match="of that time or later"):
        table.follow(starting_timestamp="2200-01-01").first()
    with pytest.raises(lakebed.InvalidInput):
        table.follow(starting_version=1, starting_timestamp=0)
    with pytest.raises(lakebed.InvalidInput):
        table.follow(max_files=0)


@pytest.mark.parametrize("limit", [{"max_versions": 1}, {"max_files": 1}])
def test_limits_make_batches_small(table: lakebed.Table, limit: dict[str, Any]) -> None:
    assert batches(table.follow(starting_version=1, **limit)) == [[3], [4], [5]]


def test_a_large_version_and_the_first_rows_are_cut_by_files(disk: lakebed.Lake) -> None:
    table = disk.create_table("s.t", rows(1, 2, 3), partition_by=["id"])
    table.append(rows(4, 5, 6))
    table.set_properties({"a": "b"})
    table.append(rows(7))

    assert batches(table.follow(max_files=2)) == [[1, 2], [3, 4], [5, 6], [7]]
    assert batches(table.follow(max_files=2, starting_version=1)) == [[4, 5], [6, 7]]


def test_the_first_rows_are_those_of_one_version_however_many_batches(
    table: lakebed.Table,
) -> None:
    following = table.follow(max_files=3)
    first = following.next(following.first())
    table.delete("id = 5")  # is in a later batch
    table.append(rows(6))

    rest = batches(table.follow(max_files=3, on_change="skip_deletes"), first)

    assert first == Offset(3, 3, snapshot=True, table=table.uuid)
    assert rest == [[5], [6]]


def test_versions_that_take_rows_away_end_a_stream_of_additions(table: lakebed.Table) -> None:
    following = table.follow(starting_version=1)
    table.delete("id = 1")

    with pytest.raises(StreamChanged, match=r"version 4 of table s.t \(delete\)") as caught:
        batches(following)

    assert "skipChangeCommits" in caught.value.hint


def test_such_versions_are_skipped_or_read_as_asked(table: lakebed.Table) -> None:
    table.delete("id = 1")
    table.update({"word": "'new'"}, "id = 3")
    table.append(rows(9))

    assert batches(table.follow(starting_version=4, on_change="skip")) == [[9]]
    assert batches(table.follow(starting_version=4, on_change="rows")) == [[3, 9]]
    with pytest.raises(StreamChanged, match="version 5"):
        batches(table.follow(starting_version=4, on_change="skip_deletes"))


def test_the_change_feed_tells_of_every_change(table: lakebed.Table) -> None:
    table.update({"word": "'new'"}, "id = 2")
    table.delete("id = 1")
    following = table.follow(starting_version=3, change_feed=True)
    start = following.first()

    found = read(following, start, following.next(start))

    assert [(r["_version"], r["_op"], r["id"], r["word"]) for r in found] == [
        (3, "insert", 5, "w5"),
        (4, "update_before", 2, "w2"),
        (4, "update_after", 2, "new"),
        (5, "delete", 1, "w1"),
    ]
    assert found == table.changes(from_version=2).to_arrow().to_pylist()


def test_the_change_feed_begins_with_the_table_as_inserts(table: lakebed.Table) -> None:
    table.delete("id = 1")
    following = table.follow(change_feed=True, columns=["id"], where="id > 2")
    start = following.first()

    found = read(following, start, following.next(start))

    assert {(r["id"], r["_op"], r["_version"]) for r in found} == {
        (3, "insert", 4),
        (4, "insert", 4),
        (5, "insert", 4),
    }


def test_new_columns_end_a_stream_when_all_before_them_is_read(table: lakebed.Table) -> None:
    following = table.follow(starting_version=2)
    table.append(rows(6))
    table.alter().add_column("n", "int").commit()
    table.append([{"id": 7, "word": "w7", "n": 1}])

    end = following.next(following.first())
    with pytest.raises(StreamChanged, match=r"version 5 .* changed its columns"):
        following.next(end)

    assert sorted(r["id"] for r in read(following, following.first(), end)) == [4, 5, 6]
    again = table.follow(starting_version=2)
    assert batches(again, end) == [[7]]
    assert [f.name for f in again.schema.fields] == ["id", "word", "n"]


def test_older_versions_are_read_as_the_newer_columns(table: lakebed.Table) -> None:
    table.alter().rename_column("word", "term").commit()
    following = table.follow(starting_version=3)
    start = following.first()

    assert read(following, start, following.next(start)) == [{"id": 5, "term": "w5"}]


def test_a_branch_is_followed_by_its_name(disk: lakebed.Lake, table: lakebed.Table) -> None:
    table.create_branch("dev")
    branch = disk.table("s.t@dev")
    branch.append(rows(50))
    table.append(rows(6))

    assert batches(branch.follow(starting_version=3)) == [[5, 50]]


def test_comments_and_properties_do_not_end_a_stream(table: lakebed.Table) -> None:
    following = table.follow(starting_version="latest")
    start = following.first()
    table.alter().set_comment("id", "a number").commit()
    table.set_properties({"a": "b"})
    table.append(rows(6))

    assert [r["id"] for r in read(following, start, following.next(start))] == [6]


def test_another_table_of_the_same_name_ends_a_stream(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    end = table.follow().next(table.follow().first())
    disk.drop_table("s.t")
    again = disk.create_table("s.t", rows(1))

    with pytest.raises(StreamChanged, match="another one"):
        again.follow().next(end)


def test_a_stream_does_not_go_back(table: lakebed.Table) -> None:
    with pytest.raises(lakebed.InvalidInput, match="go back"):
        table.follow().tasks(Offset(3), Offset(1))
