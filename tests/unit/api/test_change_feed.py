"""Delta's own change feed: which commits write files of it, and what is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.model.errors import StorageFull
from lakebed.storage.local import LocalStorage

NAME = "delta.enableChangeDataFeed"
FEED = {NAME: "true"}
Table = lakebed.Table


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.open(tmp_path / "lake", create=True) as opened:
        yield opened


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": i, "word": f"w{i}"} for i in ids]


def lines(table: Table, word: str, version: int | None = None) -> list[dict[str, Any]]:
    """The actions of one kind that a version has in the log."""
    number = table.version if version is None else version
    text = Path(table.location, f"_delta_log/{number:020}.json").read_bytes()
    found = [orjson.loads(line) for line in text.splitlines()]
    return [line[word] for line in found if word in line]


def told(table: Table) -> list[tuple[int, str]]:
    """Of the newest version, from its files."""
    found = []
    for cdc in lines(table, "cdc"):
        assert cdc["dataChange"] is False
        path = Path(table.location, cdc["path"])
        assert path.stat().st_size == cdc["size"]
        found += pq.ParquetFile(path).read().to_pylist()
    return [(row["id"], row["_change_type"]) for row in found]


def test_only_commits_that_do_more_than_add_or_remove_files_have_files_of_changes(
    lake: lakebed.Lake,
) -> None:
    table = lake.create_table("s.t", "id long, word string", properties=FEED)
    table.append(rows(1, 2, 3))
    assert lines(table, "cdc") == []
    table.truncate()
    assert lines(table, "cdc") == []
    table.restore(version=1)
    assert lines(table, "cdc") == []

    table.delete("id = 1")
    assert told(table) == [(1, "delete")]
    table.update({"word": "'x'"}, "id = 2")
    assert told(table) == [(2, "update_preimage"), (2, "update_postimage")]
    table.update({"word": "word"})
    assert told(table) == []
    assert len(lines(table, "cdc")) == 1, "readers would take copied rows for deleted and inserted"
    table.append(rows(7, 8, 9))
    table.delete("id = 7")
    table.truncate()
    assert sorted(told(table)) == [(i, "delete") for i in (2, 3, 8, 9)], "a file has a vector"


def test_the_protocol_and_the_configuration_say_so_while_it_is_on(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", rows(1), properties={NAME: "TRUE"})

    assert table.properties[NAME] == "true"
    assert "changeDataFeed" in lines(table, "protocol")[0]["writerFeatures"]
    assert lines(table, "metaData")[0]["configuration"][NAME] == "true"

    table.set_properties({NAME: "False"})

    assert "changeDataFeed" not in lines(table, "protocol")[0]["writerFeatures"]
    assert lines(table, "metaData")[0]["configuration"][NAME] == "false"
    table.delete("id = 1")
    assert lines(table, "cdc") == []


def test_a_table_without_the_property_writes_nothing(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", rows(1, 2, 3))
    table.delete("id = 1")
    table.overwrite(rows(4))

    assert not Path(table.location, "_change_data").exists()
    assert NAME not in lines(table, "metaData", 0)[0]["configuration"]


def test_each_partition_has_a_file_that_says_its_value(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, word string", partition_by=["word"], properties=FEED)
    table.append([{"id": i, "word": ("a", "b", None)[i % 3]} for i in range(30)])
    table.update({"word": "'b'"}, "id < 2")

    values = [cdc["partitionValues"] for cdc in lines(table, "cdc")]

    assert sorted(v["word"] for v in values) == ["a", "b"]
    assert sorted(told(table)) == [(0, "update_postimage"), (0, "update_preimage")]
    assert lake.check().clean


@pytest.mark.parametrize("value", ["yes", "", 1, "truefalse"])
def test_the_property_is_true_or_false(lake: lakebed.Lake, value: Any) -> None:
    table = lake.create_table("s.t", rows(1))

    with pytest.raises(lakebed.InvalidInput, match="neither true nor false"):
        table.set_properties({NAME: value})

    assert table.version == 0


def test_columns_with_the_names_of_the_feeds_own_are_refused(lake: lakebed.Lake) -> None:
    schema = "id long, _Change_Type string"
    with pytest.raises(lakebed.InvalidInput) as refused:
        lake.create_table("s.t", schema, properties=FEED)
    assert (refused.value.code, refused.value.context["columns"]) == (
        "UNSUPPORTED_FEATURE",
        ["_Change_Type"],
    )

    lake.create_table("s.iceberg", schema, properties=FEED, formats=["iceberg"])
    table = lake.create_table("s.t", schema)
    with pytest.raises(lakebed.InvalidInput, match="columns of its own"):
        table.set_properties(FEED)
    other = lake.create_table("s.u", rows(1), properties=FEED)
    with pytest.raises(lakebed.InvalidInput, match="columns of its own"):
        other.alter().add_column("_commit_version", "long").commit()


def test_a_table_may_have_the_columns_of_changes_itself(lake: lakebed.Lake) -> None:
    table = lake.create_table(
        "s.t", [{"id": 1, "_op": "a", "_version": 5}, {"id": 2, "_op": "b", "_version": 6}]
    )
    table.set_properties(FEED)
    table.update({"_op": "'c'"}, "id = 1")

    assert told(table) == [(1, "update_preimage"), (1, "update_postimage")]


def test_a_restore_tells_what_it_did_and_leaves_the_feed_as_it_is(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", rows(1, 2, 3))
    table.set_properties({**FEED, "owner": "ada"})
    table.delete("id = 2")

    table.restore(version=0)

    assert table.properties == FEED
    assert told(table) == [(2, "insert")]


def test_a_restore_to_a_narrower_type_is_refused_while_the_feed_is_on(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id int", properties=FEED)
    table.append([{"id": 1}])
    table.alter().widen_column("id", "long").commit()
    table.append([{"id": 2**40}])

    with pytest.raises(lakebed.InvalidInput, match="was int then") as refused:
        table.restore(version=1)
    assert refused.value.code == "UNSUPPORTED_FEATURE"

    table.set_properties({NAME: "false"})
    table.restore(version=1)
    assert table.row_count == 1


def test_published_again_the_files_have_the_same_names_and_nothing_is_left_of_earlier_tries(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("s.t", rows(1, 2, 3), properties=FEED)
    real = LocalStorage.put_if_absent

    def full(self: LocalStorage, path: str, data: bytes, **more: Any) -> bool:
        if "_delta_log" in path:
            raise StorageFull("no room", hint="free some space")
        return real(self, path, data, **more)

    monkeypatch.setattr(LocalStorage, "put_if_absent", full)
    with pytest.warns(lakebed.PublishWarning):
        table.delete("id = 1")
    monkeypatch.undo()
    (first,) = Path(table.location, "_change_data").glob("*/*")
    bytes_then = first.read_bytes()
    first.with_name("cdc-00001.parquet").write_bytes(b"of a release that wrote more files")

    lake.publish()

    assert list(Path(table.location, "_change_data").glob("*/*")) == [first]
    assert first.read_bytes() == bytes_then
    assert told(table) == [(1, "delete")]
    assert (lake.check().findings, lake.check().notes) == ([], [])


@pytest.mark.parametrize("damage", ["lose", "cut"])
def test_a_damaged_file_of_changes_is_found(lake: lakebed.Lake, damage: str) -> None:
    table = lake.create_table("s.t", rows(1, 2, 3), properties=FEED)
    table.delete("id = 1")
    assert lake.check().clean
    (path,) = Path(table.location, "_change_data").glob("*/*")
    if damage == "lose":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])

    (found,) = lake.check().findings

    code = "PUBLISHED_FILE_MISSING" if damage == "lose" else "PUBLISHED_FILE_DIFFERS"
    assert (found.code, found.format) == (code, "delta")
    assert found.path == str(path.relative_to(table.location))


def test_a_log_published_anew_does_not_tell_old_rows_as_new(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", rows(1, 2, 3), properties=FEED)
    table.append(rows(4))
    Path(table.location, f"_delta_log/{1:020}.json").unlink()

    assert lake.check(repair=True).repaired == ["s.t"]

    assert len(lines(table, "add")) == 2
    assert len(lines(table, "cdc")) == 1
    assert told(table) == []
