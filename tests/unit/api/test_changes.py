"""The change feed: what versions did to rows, whatever they did to files."""

from collections import Counter
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakebed

COPY = {"write.delete.mode": "copy-on-write", "write.update.mode": "copy-on-write"}


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": i, "word": f"w{i}"} for i in ids]


def changes(table: lakebed.Table, **options: Any) -> list[tuple[Any, ...]]:
    """(version, op, id, word) in the order of the feed."""
    found = table.changes(**options).to_arrow().to_pylist()
    return [(r["_version"], r["_op"], r["id"], r["word"]) for r in found]


@pytest.fixture(params=["vectors", "copies", "v2 with a key", "v3 with a key"])
def table(request: pytest.FixtureRequest, lake: lakebed.Lake) -> lakebed.Table:
    """In every way that a table can keep and lose rows; all of them can pair updates."""
    key = {"primary_key": ["id"]}
    options: dict[str, dict[str, Any]] = {
        "vectors": {},
        "copies": {"properties": COPY},
        "v2 with a key": {"properties": {**COPY, "lakebed.upgrade": "never"}, **key},
        "v3 with a key": key,
    }
    table = lake.create_table("s.t", "id long not null, word string", **options[request.param])
    table.append(rows(1, 2, 3, 4))
    if request.param == "copies":
        # Row ids come with the first vector.
        table.delete("id = 4", settings={"write.delete.mode": "merge-on-read"})
    else:
        table.delete("id = 4")
    return table


def test_the_rows_of_appends_are_inserts(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", rows(1))
    table.append(rows(2, 3), message="more")

    feed = table.changes()

    found = feed.to_arrow()
    assert found.column_names == ["id", "word", "_op", "_version", "_time"]
    assert found.schema.field("_time").type == pa.timestamp("us", "UTC")
    assert changes(table) == [
        (0, "insert", 1, "w1"),
        (1, "insert", 2, "w2"),
        (1, "insert", 3, "w3"),
    ]
    times = {c.version: c.time for c in table.history()}
    assert [t.astimezone(UTC) for t in found["_time"].to_pylist()] == [
        times[v] for v in found["_version"].to_pylist()
    ]


def test_what_happens_after_a_version_counts_up_to_another(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, word string")
    for i in range(1, 5):
        table.append(rows(i))
    times = {c.version: c.time for c in table.history()}

    assert [c[2] for c in changes(table, from_version=2)] == [3, 4]
    assert [c[2] for c in changes(table, from_version=1, to_version=3)] == [2, 3]
    assert [c[2] for c in changes(table, to_version=1)] == [1]
    assert changes(table, from_version=4) == []
    assert [c[2] for c in changes(table, from_timestamp=times[1], to_timestamp=times[2])] == [2]


def test_deletes_show_the_rows_that_went(table: lakebed.Table) -> None:
    table.delete("id >= 3")
    table.truncate()

    assert changes(table, from_version=1) == [
        (2, "delete", 4, "w4"),
        (3, "delete", 3, "w3"),
        (4, "delete", 1, "w1"),
        (4, "delete", 2, "w2"),
    ]


def test_updates_show_both_rows(table: lakebed.Table) -> None:
    table.update({"word": "word || '!'"}, "id <> 2")

    assert changes(table, from_version=2) == [
        (3, "update_before", 1, "w1"),
        (3, "update_after", 1, "w1!"),
        (3, "update_before", 3, "w3"),
        (3, "update_after", 3, "w3!"),
    ]


def test_a_merge_shows_all_it_did(table: lakebed.Table) -> None:
    source = [{"id": 1, "word": "one"}, {"id": 2, "word": None}, {"id": 7, "word": "seven"}]
    merge = table.merge(source, on="t.id = s.id")
    merge = merge.when_matched_delete("s.word IS NULL").when_matched_update_all()
    merge.when_not_matched_insert_all().execute()

    assert changes(table, from_version=2) == [
        (3, "delete", 2, "w2"),
        (3, "update_before", 1, "w1"),
        (3, "update_after", 1, "one"),
        (3, "insert", 7, "seven"),
    ]


def test_rows_written_anew_as_they_were_are_no_change(table: lakebed.Table) -> None:
    table.overwrite(table.to_arrow())
    table.update({"word": "word"}, "id = 1")

    assert changes(table, from_version=2) == []


def test_a_restore_shows_what_it_brings_back_and_takes_away(table: lakebed.Table) -> None:
    table.update({"word": "'new'"}, "id = 1")
    table.delete("id = 2")
    table.append(rows(9))

    table.restore(version=1)

    assert Counter(changes(table, from_version=5)) == Counter(
        [
            (6, "delete", 9, "w9"),
            (6, "update_before", 1, "new"),
            (6, "update_after", 1, "w1"),
            (6, "insert", 2, "w2"),
            (6, "insert", 4, "w4"),
        ]
    )


def test_without_ids_and_key_an_update_is_a_delete_and_an_insert(lake: lakebed.Lake) -> None:
    v2 = {**COPY, "lakebed.upgrade": "never"}
    table = lake.create_table("s.t", "id long, word string", properties=v2)
    table.append(rows(1, 1, 2))
    table.update({"word": "'new'"}, "id = 1")

    assert changes(table, from_version=1) == [
        (2, "delete", 1, "w1"),
        (2, "delete", 1, "w1"),
        (2, "insert", 1, "new"),
        (2, "insert", 1, "new"),
    ]


def test_equal_rows_are_counted(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, word string")
    table.append(rows(1, 1, 1, 2))
    table.overwrite(rows(1, 2, 2))

    assert changes(table, from_version=1) == [
        (2, "delete", 1, "w1"),
        (2, "delete", 1, "w1"),
        (2, "insert", 2, "w2"),
    ]


def test_columns_and_conditions_choose_among_the_changes(table: lakebed.Table) -> None:
    table.update({"word": "'x'"}, "id <= 2")
    feed = table.changes(from_version=2, columns=["id"], where="word = 'x' AND id > 1")

    assert feed.to_arrow().drop_columns("_time").to_pylist() == [
        {"id": 2, "_op": "update_after", "_version": 3}
    ]
    first = table.changes(to_version=1, columns=["word"], where="id = 1")
    assert first.to_arrow()["word"].to_pylist() == ["w1"]
    with pytest.raises(lakebed.InvalidInput, match="no column 'nothing'"):
        table.changes(columns=["nothing"])
    with pytest.raises(lakebed.InvalidInput):
        table.changes(where="nothing = 1")


def test_rows_are_shown_in_the_columns_of_the_last_version(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id int, gone string, word string")
    table.append([{"id": 1, "gone": "x", "word": "w1"}])
    table.update({"gone": "'y'"})
    change = table.alter().drop_column("gone").rename_column("word", "text")
    change.add_column("n", "long").widen_column("id", "long").commit()
    table.append([{"id": 2**40, "text": "big", "n": 5}])

    found = table.changes().to_arrow()

    assert found.column_names == ["id", "text", "n", "_op", "_version", "_time"]
    assert found.select(["id", "text", "n", "_op", "_version"]).to_pylist() == [
        {"id": 1, "text": "w1", "n": None, "_op": "insert", "_version": 1},
        {"id": 2**40, "text": "big", "n": 5, "_op": "insert", "_version": 4},
    ]
    old = table.changes(to_version=2).to_arrow()
    assert old.column_names[:3] == ["id", "gone", "word"]
    # The first vector gives rows their ids: this update comes before them.
    assert old["_op"].to_pylist() == ["insert", "delete", "insert"]


def test_conditions_look_at_what_the_feed_tells_too(table: lakebed.Table) -> None:
    table.update({"word": "'x'"}, "id <= 2")
    before = table.changes(where="_op = 'update_before'").to_arrow()
    mixed = table.changes(columns=["word"], where="_op = 'delete' OR id = 3").to_arrow()
    late = table.changes(where="_version > 2 AND _op <> 'update_before' AND id = 1").to_arrow()

    assert before["id"].to_pylist() == [1, 2]
    assert mixed.select(["word", "_op"]).to_pylist() == [
        {"word": "w3", "_op": "insert"},
        {"word": "w4", "_op": "delete"},
    ]
    assert late.select(["word", "_op"]).to_pylist() == [{"word": "x", "_op": "update_after"}]
    assert table.changes(where="_time < TIMESTAMP '2020-01-01T00:00:00Z'").to_arrow().num_rows == 0
    with pytest.raises(lakebed.InvalidInput):
        table.changes(where="_op = 5")


def test_values_that_the_last_type_cannot_hold_are_shown_in_a_wider_one(
    lake: lakebed.Lake,
) -> None:
    table = lake.create_table("s.t", "id int, word string")
    table.append(rows(1))
    table.alter().widen_column("id", "long").commit()
    table.append(rows(2**40))
    table.restore(version=1)

    assert changes(table)[-2:] == [
        (3, "insert", 2**40, f"w{2**40}"),
        (4, "delete", 2**40, f"w{2**40}"),
    ]
    assert changes(table, where="id > 2000000000")[0][0] == 3
    shown = lake.sql("SELECT id FROM s.t$changes WHERE _op = 'delete'").to_pylist()
    assert shown == [{"id": 2**40}]
    assert table.changes(from_version=4).to_arrow().schema.field("id").type == "int32"


def test_a_column_that_the_feed_tells_itself_has_to_be_left_out(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", [{"id": 1, "_op": "mine", "_Version": "1.2"}])

    with pytest.raises(lakebed.InvalidInput, match="_op"):
        table.changes()
    assert table.changes(columns=["id"]).to_arrow()["_op"].to_pylist() == ["insert"]
    table.delete("id = 0")
    table.overwrite([{"id": 1, "_op": "theirs", "_Version": "2"}])
    feed = table.changes(from_version=0, columns=["id"], where="_op = 'theirs'")
    assert feed.to_arrow()["_op"].to_pylist() == ["insert"]


def test_ranges_that_are_none_are_refused(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", rows(1))
    table.append(rows(2))

    with pytest.raises(lakebed.InvalidInput, match="begin after version 1 and end at 0"):
        table.changes(from_version=1, to_version=0)
    for wrong in (
        {"from_version": 2},
        {"to_version": 7},
        {"from_timestamp": "2001-01-01"},
        {"to_timestamp": "2999-01-01"},
    ):
        with pytest.raises(lakebed.NotFound):
            table.changes(**wrong)
    with pytest.raises(lakebed.InvalidInput):
        table.changes(from_version=0, from_timestamp=0)


def test_branches_have_changes_of_their_own(table: lakebed.Table) -> None:
    table.create_branch("b")
    table.append(rows(9), branch="b")
    table.delete("id = 1", branch="b")
    table.create_tag("t", ref="b")
    table.append(rows(10))

    assert changes(table, from_version=2, ref="b") == [
        (3, "insert", 9, "w9"),
        (4, "delete", 1, "w1"),
    ]
    assert changes(table, from_version=2) == [(3, "insert", 10, "w10")]
    assert changes(table, from_version=3, ref="t") == [(4, "delete", 1, "w1")]
    whole = changes(table, ref="b")
    assert whole[:4] == [(1, "insert", i, f"w{i}") for i in (1, 2, 3, 4)]
    assert whole[-1] == (4, "delete", 1, "w1")


def test_main_shows_what_it_took_of_a_branch_as_one_version(table: lakebed.Table) -> None:
    table.create_branch("b")
    table.append(rows(9, 10), branch="b")
    table.update({"word": "'x'"}, "id IN (1, 9)", branch="b")
    table.delete("id = 10", branch="b")
    table.fast_forward("main", to="b")

    assert changes(table, from_version=2) == [
        (3, "update_before", 1, "w1"),
        (3, "update_after", 1, "x"),
        (3, "insert", 9, "x"),
    ]


def test_streams_and_frames(table: lakebed.Table) -> None:
    table.update({"word": "'x'"}, "id = 1")
    whole = table.changes().to_arrow()

    with table.changes().to_batches() as reader:
        assert reader.read_all() == whole
    assert pa.table(table.changes()) == whole
    assert table.changes().to_pandas()["_op"].tolist() == whole["_op"].to_pylist()


def test_nested_and_awkward_values_are_compared_exactly(lake: lakebed.Lake) -> None:
    kinds = (
        "id long not null, s struct<a: int, b: string>, l list<double>, m map<string, int>,"
        " f float, d decimal(20, 3), t timestamp, b binary"
    )
    table = lake.create_table("s.t", kinds, primary_key=["id"], properties=COPY)
    row = {
        "id": 1,
        "s": {"a": None, "b": "x"},
        "l": [float("nan"), None, 0.5],
        "m": [("k", None)],
        "f": float("nan"),
        "d": None,
        "t": None,
        "b": b"\x00",
    }
    other = {**row, "id": 2, "s": None, "l": None, "m": None, "f": None, "b": None}
    table.append(pa.Table.from_pylist([row, other], schema=table.arrow_schema))
    table.delete("id = 9 OR f = 3")
    table.update({"s.a": "7"}, "id = 1")
    table.update({"id": "id"}, "TRUE")

    found = table.changes(from_version=1).to_arrow()

    assert found["_op"].to_pylist() == ["update_before", "update_after"]
    assert found["s"].to_pylist() == [{"a": None, "b": "x"}, {"a": 7, "b": "x"}]
    assert found.schema.types[:-3] == table.arrow_schema.types


def test_values_of_every_type_come_back_as_they_are(lake: lakebed.Lake) -> None:
    kinds = (
        "id long not null, a boolean, b byte, c short, d date, e time, f timestamp_ntz,"
        " g timestamp_ns, h timestamptz_ns, i uuid, j fixed(3), k decimal(38, 9), l float,"
        " m list<struct<x: uuid, y: map<long, time>>>, n binary"
    )
    table = lake.create_table("s.t", kinds, formats=["iceberg"])
    row = {
        "id": 1,
        "a": True,
        "b": -128,
        "c": 32767,
        "d": date(1, 1, 1),
        "e": time(23, 59, 59, 999999),
        "f": datetime.fromisoformat("1969-01-01T00:00:00.000001"),
        "g": datetime.fromisoformat("2024-02-29"),
        "h": datetime(1970, 1, 1, tzinfo=UTC),
        "i": UUID(int=2**128 - 1).bytes,
        "j": b"\x00\xff\x01",
        "k": Decimal("-12345678901234567890123456789.123456789"),
        "l": 0.1,
        "m": [{"x": UUID(int=5).bytes, "y": [(1, time(1)), (2, None)]}, None],
        "n": b"",
    }
    empty = {**dict.fromkeys(row), "id": 2}
    given = pa.Table.from_pylist([row, empty], schema=table.arrow_schema)
    table.append(given)
    table.delete("id = 9")
    table.update({"b": "coalesce(b, 1) + 1"})

    found = table.changes(from_version=1).to_arrow().sort_by([("id", "ascending")])

    assert found.schema.types[:-3] == table.arrow_schema.types
    before = found.filter(pc.is_in(found["_op"], pa.array(["delete", "update_before"])))
    assert before.drop_columns(["_op", "_version", "_time"]).to_pylist() == given.to_pylist()
    after = found.filter(pc.is_in(found["_op"], pa.array(["insert", "update_after"])))
    assert after["b"].to_pylist() == [-127, 2]
    same = [n for n in table.arrow_schema.names if n != "b"]
    assert after.select(same).to_pylist() == before.select(same).to_pylist()
