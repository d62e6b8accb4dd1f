"""What a small commit costs grows neither with the history nor with the number of files."""

import os
import random
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.meta import index
from lakebed.meta.sqlite import SqliteDialect
from lakebed.meta.store import Tx
from lakebed.model.ids import TableId
from lakebed.storage.local import LocalStorage
from lakebed.storage.unfinished import Unfinished

ROW = pa.table({"id": pa.array([1], pa.int64()), "name": ["one"], "amount": [1.5]})
SCHEMA = "id long not null, name string, amount double"
MOST = 1.2
_STEPS = 100
Cost = dict[str, float]


@dataclass
class Counts:
    """SQL statements and the steps SQLite takes for them, bytes written below the warehouse, files
    opened there; all so far."""

    now: dict[str, int] = field(
        default_factory=lambda: {"statements": 0, "steps": 0, "bytes": 0, "opened": 0}
    )
    marks: list[dict[str, int]] = field(default_factory=list)

    def mark(self) -> None:
        self.marks.append(dict(self.now))

    def mean(self, first: int, last: int) -> Cost:
        """Per commit, over marks `first` (exclusive) to `last`."""
        before, after = self.marks[first], self.marks[last]
        return {name: (after[name] - before[name]) / (last - first) for name in after}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    counts = Counts()
    connect = SqliteDialect.connect
    monkeypatch.setattr(os, "fsync", lambda _: None)  # waiting for the disk is not counted here

    def traced(self: SqliteDialect) -> object:
        connection = connect(self)
        assert isinstance(connection, sqlite3.Connection)
        connection.set_trace_callback(lambda _: _add(counts, "statements", 1))
        # A statement that looks at every file or commit there ever was takes ever more steps.
        connection.set_progress_handler(lambda: _add(counts, "steps", _STEPS), _STEPS)
        return connection

    def counted(method: Callable[..., Any], name: str, size: Callable[..., int]) -> object:
        def call(self: object, *arguments: Any, **named: Any) -> object:
            _add(counts, name, size(*arguments))
            return method(self, *arguments, **named)

        return call

    monkeypatch.setattr(SqliteDialect, "connect", traced)
    monkeypatch.setattr(Unfinished, "write", counted(Unfinished.write, "bytes", len))
    for name in ("get", "open_input"):
        opened = counted(getattr(LocalStorage, name), "opened", lambda *_: 1)
        monkeypatch.setattr(LocalStorage, name, opened)
    return counts


def _add(counts: Counts, name: str, much: int) -> None:
    counts.now[name] += much


def _within(early: Cost, late: Cost) -> None:
    for name in early:
        assert late[name] <= early[name] * MOST, f"{name}: {early} then {late}"
        assert early[name] <= late[name] * MOST, f"{name}: {early} then {late}"


@pytest.mark.slow
def test_a_commit_costs_the_same_after_two_thousand(tmp_path: Path, counts: Counts) -> None:
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("s.t", SCHEMA)
    counts.mark()
    for number in range(1, 2001):
        table.append(ROW)
        if number % 100 == 0:
            assert lake._parts.worker.wait(60)  # checkpoints count into the hundred they belong to
        counts.mark()

    assert table.row_count == 2000
    # Up to a thousand files checkpoints come every ten commits and grow; then they come rarer.
    first, early, late = counts.mean(300, 400), counts.mean(1000, 1100), counts.mean(1900, 2000)
    _within(early, late)
    assert all(late[name] <= 1.5 * first[name] for name in first), f"{first} then {late}"
    assert lake.check().clean
    lake.close()


def _open_and_plan(place: Path, counts: Counts) -> Cost:
    counts.marks.clear()
    counts.mark()
    with lakebed.open(place) as lake:
        plan = lake.table("s.t").scan(where="id = 1").plan()
        assert len(plan.files) > 0
    counts.mark()
    return counts.mean(0, 1)


@pytest.mark.slow
def test_open_and_plan_ask_the_same_after_many_commits(tmp_path: Path, counts: Counts) -> None:
    place = tmp_path / "lake"
    with lakebed.open(place, create=True, settings={"publish.mode": "background"}) as lake:
        table = lake.create_table("s.t", SCHEMA)
        for _ in range(20):
            table.append(ROW)
    few = _open_and_plan(place, counts)
    with lakebed.open(place, settings={"publish.mode": "background"}) as lake:
        for _ in range(300):
            lake.table("s.t").append(ROW)
        lake.publish()

    many = _open_and_plan(place, counts)

    assert many["statements"] == few["statements"]
    assert many["opened"] == few["opened"] == 0


@pytest.mark.slow
def test_a_commit_costs_the_same_beside_a_thousand_files(tmp_path: Path, counts: Counts) -> None:
    lake = lakebed.open(tmp_path / "lake", create=True)
    wide = pa.table({"id": list(range(1000)), "name": ["x"] * 1000, "amount": [0.5] * 1000})
    means = []
    for name, rows in (("s.small", ROW), ("s.large", wide)):
        table = lake.create_table(name, SCHEMA, partition_by=["id"])
        table.append(rows)
        assert lake._parts.worker.wait(60)
        assert lake._parts.upkeep.wait(60)  # many files are indexed once, after the answer
        counts.marks.clear()
        counts.mark()
        for _ in range(9):
            table.append(ROW)
            counts.mark()
        assert lake._parts.worker.wait(60)
        means.append(counts.mean(0, 9))

    assert lake.table("s.large").row_count == 1009
    _within(*means)


@pytest.mark.slow
def test_a_commit_costs_the_same_after_many_schema_changes(tmp_path: Path, counts: Counts) -> None:
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("s.t", SCHEMA)
    means = []
    for changes in (5, 60):
        for number in range(changes):
            table.alter().set_comment("name", f"{changes} {number}").commit()
        for _ in range(20):  # the newest publications are those of appends again
            table.append(ROW)
        assert lake._parts.worker.wait(60)
        counts.marks.clear()
        counts.mark()
        for _ in range(9):
            table.append(ROW)
            counts.mark()
        means.append(counts.mean(0, 9))
        table.overwrite(ROW)

    assert means[1]["statements"] <= means[0]["statements"] * MOST
    # Snapshots of the first round are listed in the second one's metadata.
    assert means[1]["bytes"] <= means[0]["bytes"] * 2


@pytest.mark.slow
def test_a_point_delete_opens_one_file_of_ten_thousand(tmp_path: Path, counts: Counts) -> None:
    lake = lakebed.open(tmp_path / "lake", create=True)
    one_each = {"write.target-file-size-bytes": "1024", "write.parquet.row-group-rows": "2"}
    table = lake.create_table("s.t", SCHEMA, properties=one_each)
    names = [random.Random(n).randbytes(600).hex() for n in range(20_000)]  # a file's worth each
    rows = {"id": list(range(20_000)), "name": names, "amount": [0.5] * 20_000}
    table.append(pa.table(rows))
    assert len(table.files()) == 10_000
    assert lake._parts.worker.wait(60)
    before = counts.now["opened"]

    commit = table.delete("id = 4711")

    assert commit.summary["deleted_rows"] == 1
    assert commit.summary["scanned_files"] == 1
    assert counts.now["opened"] - before <= 3  # the data file, and what publication looks up
    assert table.row_count == 19_999
    lake.close()


def test_changes_of_rows_look_only_at_files_that_can_match(
    tmp_path: Path, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lakebed.open(tmp_path / "lake", create=True)
    asked: list[str] = []
    get_extent = index.get_extent

    def noted(tx: Tx, table_id: TableId) -> index.Extent | None:
        asked.append("index")
        return get_extent(tx, table_id)

    monkeypatch.setattr(index, "get_extent", noted)
    costs = []
    for name, files in (("s.small", 10), ("s.large", 1500)):
        table = lake.create_table(name, SCHEMA, partition_by=["id"], formats="delta")
        ids = [n // 2 for n in range(2 * files)]
        table.append(pa.table({"id": ids, "name": ["x", "y"] * files, "amount": [0.5] * len(ids)}))
        table.delete("id = 3 AND name = 'x'")  # with it come row ids, once for every file
        assert lake._parts.worker.wait(60)
        assert lake._parts.upkeep.wait(60)
        asked.clear()
        counts.marks.clear()
        counts.mark()
        table.delete("id = 7")
        table.update({"amount": "1.5"}, "id = 8")
        table.upsert(pa.table({"id": [9], "name": ["y"], "amount": [9.5]}), key=["id", "name"])
        with lake.transaction() as transaction:
            own = transaction.table(name)
            own.append(ROW)
            assert own.delete("id = 1").deleted_rows == 3
            assert own.scan(where="id = 3").to_arrow().num_rows == 1
        counts.mark()
        costs.append(counts.mean(0, 1))
        assert bool(asked) is (files > 500)  # where there can be none, it is not looked for
        assert table.row_count == 2 * files - 5

    small, large = costs
    # To look at every file takes 40,000 steps, each time.
    assert large["steps"] <= small["steps"] + 10_000, f"{small} then {large}"
    assert large["statements"] <= small["statements"] + 20, f"{small} then {large}"
    assert lake.check().clean
    lake.close()
