"""Versions in somebody's hands keep their lease, and lose it when nobody needs them."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import lakebed
from lakebed.api.table import Table
from lakebed.core import holding
from lakebed.model.ids import Version


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "AFTER_S", 0.0)
    monkeypatch.setattr(holding, "BEAT_S", 0.01)


def versions(table: Table) -> list[int]:
    return sorted(int(lease.version or 0) for lease in table._parts.leases.active(table._id))


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


def is_held(table: Table, version: int) -> bool:
    return versions(table) == [version]


def test_a_version_is_held_until_its_last_user_is_gone(tmp_path: Path) -> None:
    with lakebed.open(tmp_path, create=True) as lake:
        table = lake.create_table("a.t", "id long")
        keep, users = lake._parts.holding.keep, {"one", "two", "other"}
        keep(table._id, Version(3), lambda: "one" in users)
        keep(table._id, Version(3), lambda: "two" in users)
        keep(table._id, Version(4), lambda: "other" in users)
        until(lambda: versions(table) == [3, 4])

        users.discard("one")
        users.discard("other")
        until(lambda: versions(table) == [3])
        users.clear()
        until(lambda: versions(table) == [])

        keep(table._id, Version(5), lambda: True)  # the thread had ended
        until(lambda: versions(table) == [5])


def test_closing_the_lake_gives_leases_back(tmp_path: Path) -> None:
    with lakebed.open(tmp_path, create=True) as lake:
        table = lake.create_table("a.t", "id long")
        lake._parts.holding.keep(table._id, Version(3), lambda: True)
        until(lambda: versions(table) == [3])

    with lakebed.open(tmp_path) as again:
        assert versions(again.table("a.t")) == []


def test_tasks_for_other_processes_keep_their_version(tmp_path: Path) -> None:
    with lakebed.open(tmp_path, create=True) as lake:
        table = lake.create_table("a.t", [{"id": 1}])
        table.append([{"id": 2}])
        table.scan(version=0).tasks()
        table.scan(version=0).tasks()
        table.scan().tasks()

    with lakebed.open(tmp_path) as again:  # nobody is there to renew them
        assert versions(again.table("a.t")) == [0, 1]


def test_a_stream_holds_what_it_is_reading_and_nothing_before(tmp_path: Path) -> None:
    with lakebed.open(tmp_path, create=True) as lake:
        table = lake.create_table("a.t", [{"id": 1}])
        following = table.follow(starting_version=0, max_versions=1)
        table.append([{"id": 2}])
        table.append([{"id": 3}])

        at = following.first()
        for expected in (0, 0, 1):
            end = following.next(at)
            assert following.tasks(at, end)
            until(partial(is_held, table, expected))
            at = end
        del following
        until(lambda: versions(table) == [])
