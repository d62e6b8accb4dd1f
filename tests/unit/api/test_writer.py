"""The buffered writer: what it takes, when it flushes, and what happens when that fails."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lakebed
from lakebed.model.errors import ConstraintViolated, WriterClosed

LIMIT_S = 60
EVENTS = "id long not null, at timestamp, name string"


@pytest.fixture
def events(lake: lakebed.Lake) -> lakebed.Table:
    return lake.create_table("app.events", EVENTS)


def ids(table: lakebed.Table) -> list[int]:
    return [row["id"] for row in table.to_arrow().to_pylist()]


def appends(table: lakebed.Table) -> int:
    return [commit.operation for commit in table.history()].count("append")


def until(there: Callable[[], bool]) -> None:
    give_up = time.monotonic() + LIMIT_S
    while not there():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.01)


def rows_of(*numbers: int) -> Iterator[dict[str, object]]:
    return ({"id": number} for number in numbers)


class Appends:
    """Stands before a table's append: what goes wrong there cannot be caused from outside."""

    def __init__(self, table: lakebed.Table, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before: Exception | None = None  # raised instead of it
        self.once = False  # the first time alone
        self.after: Exception | None = None  # raised when it is done
        self.may_go = threading.Event()
        self.may_go.set()
        self.begun = threading.Semaphore(0)
        self._append = table.append
        monkeypatch.setattr(table, "append", self)

    def __call__(self, rows: object, **options: Any) -> lakebed.Commit:
        self.begun.release()
        assert self.may_go.wait(LIMIT_S)
        error = self.before
        if self.once:
            self.before = None
        if error is not None:
            raise error
        commit = self._append(rows, **options)
        if self.after is not None:
            raise self.after
        return commit


@pytest.fixture
def fault(events: lakebed.Table, monkeypatch: pytest.MonkeyPatch) -> Appends:
    return Appends(events, monkeypatch)


def unavailable() -> lakebed.LakebedError:
    return lakebed.DatabaseError("the server is away", hint="wait")


def test_rows_of_a_block_are_one_commit_in_their_order(events: lakebed.Table) -> None:
    with events.writer(max_seconds=None, message="gathered") as writer:
        writer.write({"id": 1, "name": "a"})
        writer.write([{"id": 2}, {"id": 3}])
        writer.write(pa.table({"id": [4, 5], "name": ["d", "e"]}))
        writer.write(pa.record_batch({"ID": [6]}))
        writer.write(rows_of(7, 8))
        writer.write([{"id": number} for number in range(9, 200)])
        writer.write([])
        writer.write({"ID": 200})
        assert (writer.rows_waiting, events.row_count) == (200, 0)

    assert ids(events) == list(range(1, 201))
    assert appends(events) == 1
    assert events.history()[0].message == "gathered"
    assert len(events.files()) == 1


def test_a_flush_answers_its_commit_or_none(events: lakebed.Table) -> None:
    with events.writer(max_seconds=None) as writer:
        assert writer.flush() is None
        writer.write({"id": 1})
        first = writer.flush()
        assert first is not None
        assert (first.version, first.operation) == (1, "append")
        assert (writer.flush(), writer.rows_waiting) == (None, 0)

    assert appends(events) == 1


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "nobody": 1},
        {"id": "1"},
        {"id": None},
        {"name": "a"},
        {"id": 2**63},
        {"id": 1, "ID": 2},
        {"id": 1, "at": datetime(2026, 1, 1)},  # noqa: DTZ001 - the fault
        {"id": 1, "at": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))},
        {"id": 1, "name": "\ud800"},
        {"id": 1, "name": 5},
    ],
)
@pytest.mark.parametrize("shape", ["one", "list", "iterator", "many"])
def test_a_bad_row_is_refused_when_it_is_written(
    events: lakebed.Table, row: dict[str, object], shape: str
) -> None:
    good = [{"id": 7}] * (100 if shape == "many" else 1)
    rows: object = {"one": row, "iterator": iter([*good, row])}.get(shape, [*good, row])
    with events.writer(max_seconds=None) as writer:
        writer.write({"id": 1})
        with pytest.raises(lakebed.SchemaMismatch):
            writer.write(rows)
        writer.write({"id": 2})

    assert ids(events) == [1, 2]


@pytest.mark.parametrize("rows", ["text", 5, [5], [[1]], None])
def test_what_is_no_row_is_refused(events: lakebed.Table, rows: object) -> None:
    with (
        events.writer(max_seconds=None) as writer,
        pytest.raises(lakebed.InvalidInput),
    ):
        writer.write(rows)

    assert events.row_count == 0


def test_every_kind_of_column_goes_through(lake: lakebed.Lake) -> None:
    day = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    row: dict[str, object] = {
        "a": 1, "b": 1.5, "c": day, "d": day.date(), "e": b"x", "f": True, "g": "ž",
        "h": day.time(), "i": day.replace(tzinfo=None),
    }  # fmt: skip
    table = lake.create_table(
        "app.kinds",
        "a int, b float, c timestamp, d date, e binary, f boolean, g string, h time,"
        " i timestamp_ntz",
        formats=["iceberg"],
    )
    with table.writer(max_seconds=None) as writer:
        writer.write(row)
        writer.write({})
        writer.write([row] * 70)

    found = table.to_arrow().to_pylist()
    assert found[0] == row
    assert found[1] == dict.fromkeys(row)
    assert found[2:] == [row] * 70


def test_nested_rows_are_refused_when_they_are_written(lake: lakebed.Lake) -> None:
    table = lake.create_table("app.nested", "id long, place struct<city: string not null>")
    with table.writer(max_seconds=None) as writer:
        writer.write({"id": 1, "place": {"city": "Brno"}})
        with pytest.raises(lakebed.SchemaMismatch, match="city"):
            writer.write({"id": 2, "place": {"city": None}})
        writer.write({"id": 3, "place": None})

    assert ids(table) == [1, 3]


def test_nested_rows_are_copied_and_counted(lake: lakebed.Lake) -> None:
    table = lake.create_table("app.deep", "id long, tags list<string>, place struct<city: string>")
    tags, place = ["a", "b"], {"city": "Brno"}
    with table.writer(max_seconds=None) as writer:
        writer.write({"id": 1, "tags": tags, "place": place})
        tags[0] = place["city"] = "changed"
        assert writer._used() > 300
        with pytest.raises(lakebed.SchemaMismatch, match="element"):
            writer.write({"id": 2, "tags": ["a", 5]})

    assert table.to_arrow().to_pylist() == [
        {"id": 1, "tags": ["a", "b"], "place": {"city": "Brno"}}
    ]


def test_rows_against_a_constraint_are_refused_when_they_are_written(lake: lakebed.Lake) -> None:
    table = lake.create_table("app.checked", "id long")
    with table.writer(max_seconds=None) as writer:
        writer.write({"id": 1})
        table.alter().add_constraint("positive", "id > 0").commit()
        writer.flush()
        with pytest.raises(ConstraintViolated):
            writer.write({"id": -1})
        writer.write({"id": 2})

    assert ids(table) == [1, 2]


def test_a_row_that_no_partition_can_hold_is_refused_when_it_is_written(lake: lakebed.Lake) -> None:
    table = lake.create_table("app.cut", "id long", partition_by=["truncate(id, 10)"])
    with table.writer(max_seconds=None) as writer:
        writer.write({"id": 11})
        with pytest.raises(lakebed.SchemaMismatch):
            writer.write({"id": -(2**63)})

    assert ids(table) == [11]


def test_what_the_caller_changes_after_a_write_changes_nothing(events: lakebed.Table) -> None:
    row, numbers = {"id": 1}, np.array([2, 3])
    with events.writer(max_seconds=None) as writer:
        writer.write(row)
        writer.write(pa.table({"id": pa.array(numbers)}))
        row["id"] = numbers[0] = 99

    assert ids(events) == [1, 2, 3]


def test_rows_are_flushed_in_time_though_nobody_writes(events: lakebed.Table) -> None:
    with events.writer(max_seconds=0.05) as writer:
        writer.write({"id": 1})
        until(lambda: events.row_count == 1)
        writer.write({"id": 2})
        until(lambda: events.row_count == 2)

    assert appends(events) == 2


def test_steady_writes_do_not_put_off_a_flush(events: lakebed.Table) -> None:
    with events.writer(max_seconds=0.2) as writer:

        def write_and_look() -> bool:
            writer.write({"id": 1})
            return events.row_count > 0

        until(write_and_look)


def test_so_many_rows_are_flushed_at_once(events: lakebed.Table) -> None:
    with events.writer(max_rows=10, max_seconds=None) as writer:
        for number in range(10):
            writer.write({"id": number})
        until(lambda: events.row_count == 10)
        writer.write({"id": 10})

    assert ids(events) == list(range(11))


def test_a_write_waits_while_the_buffer_is_full(events: lakebed.Table, fault: Appends) -> None:
    fault.may_go.clear()
    with (
        ThreadPoolExecutor(1) as pool,
        events.writer(max_seconds=None, max_bytes=100_000) as writer,
    ):

        def write() -> None:
            for number in range(10_000):
                writer.write({"id": number})

        writing = pool.submit(write)
        assert fault.begun.acquire(timeout=LIMIT_S)
        until(lambda: writer._waiting == 1)
        assert 0 < writer.rows_waiting < 2_000
        assert not writing.done()
        fault.may_go.set()
        writing.result(LIMIT_S)

    assert ids(events) == list(range(10_000))


def test_a_write_waits_when_the_next_flush_is_due_before_the_last_has_ended(
    events: lakebed.Table, fault: Appends
) -> None:
    fault.may_go.clear()
    with ThreadPoolExecutor(1) as pool, events.writer(max_rows=10, max_seconds=None) as writer:
        writer.write([{"id": 0}] * 10)
        assert fault.begun.acquire(timeout=LIMIT_S)
        for _ in range(10):
            writer.write({"id": 1})
        waits = pool.submit(writer.write, {"id": 2})
        until(lambda: writer._waiting == 1)
        assert (writer.rows_waiting, waits.done()) == (20, False)
        fault.may_go.set()
        waits.result(LIMIT_S)

    assert ids(events) == [0] * 10 + [1] * 10 + [2]


def test_a_write_that_waits_goes_on_when_the_flush_of_another_thread_fails(
    events: lakebed.Table, fault: Appends
) -> None:
    fault.may_go.clear()
    fault.before, fault.once = unavailable(), True
    with ThreadPoolExecutor(2) as pool, events.writer(max_rows=10, max_seconds=None) as writer:
        writer.write({"id": 0})
        flushes = pool.submit(writer.flush)
        assert fault.begun.acquire(timeout=LIMIT_S)
        writer.write([{"id": 1}] * 10)
        waits = pool.submit(writer.write, {"id": 2})
        until(lambda: writer._waiting == 1)
        fault.may_go.set()
        with pytest.raises(lakebed.DatabaseError):
            flushes.result(LIMIT_S)
        waits.result(LIMIT_S)

    assert ids(events) == [0] + [1] * 10 + [2]


def test_rows_larger_than_the_buffer_are_taken_alone(events: lakebed.Table) -> None:
    with events.writer(max_seconds=None, max_bytes=1) as writer:
        for start in (0, 1_000):
            writer.write(pa.table({"id": range(start, start + 1_000)}))

    assert ids(events) == list(range(2_000))
    assert appends(events) == 2


def test_what_a_flush_in_the_background_met_is_raised_by_the_next_write(
    events: lakebed.Table, fault: Appends
) -> None:
    fault.before = unavailable()
    with events.writer(max_seconds=0.05) as writer:
        writer.write({"id": 1})
        until(lambda: writer._untold is not None)
        with pytest.raises(lakebed.DatabaseError, match="away"):
            writer.write({"id": 2})
        assert writer.rows_waiting == 1
        fault.before = None
        until(lambda: writer.rows_waiting == 0)  # it tries again by itself

    assert ids(events) == [1]


def test_a_write_that_waits_for_room_is_told_when_the_flush_fails(
    events: lakebed.Table, fault: Appends
) -> None:
    fault.before = unavailable()
    with events.writer(max_seconds=None, max_bytes=1) as writer:
        writer.write({"id": 1})
        with pytest.raises(lakebed.DatabaseError):
            writer.write({"id": 2})
        fault.before = None

    assert ids(events) == [1]


def test_rows_of_a_failed_flush_are_flushed_once_by_the_next(
    events: lakebed.Table, fault: Appends
) -> None:
    with events.writer(max_seconds=None) as writer:
        writer.write({"id": 1})
        fault.before = unavailable()
        with pytest.raises(lakebed.DatabaseError):
            writer.flush()
        writer.write({"id": 2})
        fault.before = None
        commit = writer.flush()

        assert (writer.rows_waiting, ids(events)) == (0, [1, 2])
        assert commit is not None
        assert commit.version == events.version


def test_a_flush_whose_end_nobody_knows_is_repeated_without_doubling_rows(
    events: lakebed.Table, fault: Appends
) -> None:
    with events.writer(max_seconds=None) as writer:
        writer.write({"id": 1})
        fault.after = lakebed.CommitUnknown("lost", hint="repeat it")
        with pytest.raises(lakebed.CommitUnknown):
            writer.flush()
        fault.before, fault.after = unavailable(), None
        with pytest.raises(lakebed.DatabaseError):
            writer.flush()
        writer.write({"id": 2})
        fault.before = None

    assert ids(events) == [1, 2]
    assert appends(events) == 2


def test_columns_added_meanwhile_can_be_written_at_once(events: lakebed.Table) -> None:
    with events.writer(max_seconds=None) as writer:
        writer.write({"id": 1})
        events.alter().add_column("note", "string").commit()
        writer.write({"id": 2, "note": "new"})
        writer.write({"id": 3, "name": "c"})

    found = events.to_arrow().select(["id", "note"]).to_pylist()
    assert found == [{"id": 1, "note": None}, {"id": 2, "note": "new"}, {"id": 3, "note": None}]
    assert appends(events) == 1


def test_rows_that_an_altered_table_does_not_take_stay_until_it_does(events: lakebed.Table) -> None:
    with events.writer(max_seconds=None) as writer:
        writer.write({"id": 1, "name": "a"})
        events.alter().drop_column("name").commit()
        for _ in range(2):
            with pytest.raises(lakebed.SchemaMismatch, match="name"):
                writer.flush()
        assert writer.rows_waiting == 1
        events.alter().add_column("name", "string").commit()

    assert events.to_arrow().select(["id", "name"]).to_pylist() == [{"id": 1, "name": "a"}]


def test_the_writer_of_a_dropped_table_says_so(lake: lakebed.Lake, events: lakebed.Table) -> None:
    writer = events.writer(max_seconds=None)
    writer.write({"id": 1})
    lake.drop_table("app.events")

    with pytest.raises(lakebed.TableNotFound):
        writer.flush()
    with pytest.raises(lakebed.TableNotFound):
        writer.close()
    assert writer.rows_waiting == 1


def test_a_closed_writer_refuses(events: lakebed.Table) -> None:
    with events.writer() as writer:
        writer.write({"id": 1})
    writer.close()

    with pytest.raises(WriterClosed):
        writer.write({"id": 2})
    with pytest.raises(WriterClosed):
        writer.flush()
    assert ids(events) == [1]
    assert not writer._thread.is_alive()


def test_a_close_that_failed_can_be_repeated(events: lakebed.Table, fault: Appends) -> None:
    writer = events.writer(max_seconds=None)
    writer.write({"id": 1})
    fault.before = unavailable()
    with pytest.raises(lakebed.DatabaseError):
        writer.close()
    with pytest.raises(WriterClosed):
        writer.write({"id": 2})
    fault.before = None
    writer.close()

    assert ids(events) == [1]


def write_and_raise(table: lakebed.Table) -> None:
    with table.writer(max_seconds=None) as writer:
        writer.write({"id": 1})
        raise RuntimeError("mine")


def test_a_block_that_raises_keeps_what_was_written(events: lakebed.Table) -> None:
    with pytest.raises(RuntimeError, match="mine"):
        write_and_raise(events)

    assert ids(events) == [1]


def test_a_failed_flush_does_not_hide_why_the_block_raised(
    events: lakebed.Table, fault: Appends
) -> None:
    fault.before = unavailable()
    with pytest.raises(RuntimeError, match="mine") as caught:
        write_and_raise(events)

    assert "1 rows were not flushed" in caught.value.__notes__[0]


def test_threads_share_a_writer(events: lakebed.Table) -> None:
    def work(thread: int) -> None:
        for number in range(300):
            writer.write({"id": thread * 1_000 + number})
            if number % 100 == 50:
                with pytest.raises(lakebed.SchemaMismatch):
                    writer.write([{"id": -1}, {"id": "bad"}])
                writer.flush()

    with (
        events.writer(max_rows=50, max_seconds=0.01, max_bytes=20_000) as writer,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(work, range(8)))

    assert sorted(ids(events)) == [t * 1_000 + n for t in range(8) for n in range(300)]


CHILD = """
import sys, time, lakebed
table = lakebed.open(sys.argv[1]).table("app.events")
with table.writer(max_seconds=None) as writer:
    for number in range(100):
        writer.write({"id": number})
    writer.flush()
    for number in range(100, 200):
        writer.write({"id": number})
    print("ready", flush=True)
    time.sleep(600)
"""


def test_a_killed_process_loses_only_what_was_not_flushed(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        lake.create_table("app.events", EVENTS)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "lake")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        finally:
            child.kill()

    with lakebed.open(tmp_path / "lake") as lake:
        assert ids(lake.table("app.events")) == list(range(100))
        assert lake.check().clean


def test_a_writer_writes_to_the_branch_that_is_named(events: lakebed.Table) -> None:
    events.create_branch("draft")
    with events.writer(branch="draft", max_seconds=None) as writer:
        writer.write({"id": 1})

    assert events.row_count == 0
    assert events.scan(ref="draft").to_arrow().num_rows == 1


@pytest.mark.parametrize(
    "options",
    [
        {"max_rows": 0},
        {"max_rows": 1.5},
        {"max_bytes": 0},
        {"max_seconds": 0},
        {"max_seconds": float("nan")},
        {"max_seconds": "1"},
        {"max_seconds": True},
        {"idempotency_key": "k"},
        {"txn": ("app", 1)},
        {"nothing": 1},
    ],
)
def test_wrong_limits_and_options_are_refused(
    events: lakebed.Table, options: Mapping[str, Any]
) -> None:
    with pytest.raises(lakebed.InvalidInput):
        events.writer(**options)


def test_a_lake_that_is_closed_takes_no_more(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        writer = lake.create_table("app.events", EVENTS).writer(max_seconds=None)
        writer.write({"id": 1})

    with pytest.raises(lakebed.DatabaseError, match="closed"):
        writer.close()
    assert writer.rows_waiting == 1
