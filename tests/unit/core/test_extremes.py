"""Kept least and greatest values move with a table's commits, and are never wrong."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed import Lake
from lakebed.core import extremes as core_extremes
from lakebed.core.extremes import Extremes, Wanted
from lakebed.meta import files
from lakebed.meta.store import Tx
from lakebed.model.names import parse_table_name

ASKED = "SELECT min(id), max(id), min(name) AS a, max(name) AS z, count(*) FROM s.t"
READ = "SELECT min(id), max(id), min(name) AS a, max(name) AS z, count(*) FROM (SELECT * FROM s.t)"
WANTED = [Wanted("id", greatest=False), Wanted("id", greatest=True)]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lakebed.open(tmp_path / "lake", create=True) as opened:
        opened.create_table("s.t", "id long, name string")
        yield opened


def rows(*ids: int) -> pa.Table:
    names = [None if i % 5 == 0 else f"n{i:03d}" * (12 if i % 11 == 0 else 1) for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())})


def extremes(lake: Lake) -> Extremes:
    return lake._parts.extremes


def kept(lake: Lake) -> list[object]:
    head = lake._parts.catalog.find(parse_table_name("s.t"))
    answer = extremes(lake).find(head.id, WANTED)
    return [] if answer is None else [value for _, value in answer.found]


@pytest.mark.parametrize("seed", range(6))
def test_answers_are_those_of_the_rows_after_any_history(lake: Lake, seed: int) -> None:
    chance = random.Random(seed)
    table = lake.table("s.t")
    for _ in range(25):
        low = chance.randrange(200)
        match chance.randrange(6):
            case 0 | 1 | 2:
                table.append(rows(*chance.sample(range(low, low + 20), 5)))
            case 3:
                table.delete(f"id BETWEEN {low} AND {low + chance.randrange(40)}")
            case 4:
                table.restore(version=chance.randrange(table.version + 1))
            case _:
                table.overwrite(rows(low, low + 1), where=f"id >= {low} AND id < {low + 2}")

        assert lake.sql(ASKED).to_arrow().to_pydict() == _read(lake)


def _read(lake: Lake) -> dict[str, list[object]]:
    found: dict[str, list[object]] = lake.sql(READ).to_arrow().to_pydict()
    return found


def test_later_commits_are_looked_at_alone(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.table("s.t")
    table.append(rows(5, 6))
    table.append(rows(10, 20))
    assert kept(lake) == [5, 20]
    monkeypatch.setattr(files, "live_files", _refuse)

    table.append(rows(1, 8))
    assert kept(lake) == [1, 20]
    table.append(rows(30))
    assert kept(lake) == [1, 30]


def test_file_that_did_not_decide_may_go(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.table("s.t")
    for n in (1, 5, 9):
        table.append(rows(n))
    assert kept(lake) == [1, 9]
    table.delete("id = 5")
    monkeypatch.setattr(files, "live_files", _refuse)

    assert kept(lake) == [1, 9]


def test_file_that_decided_and_is_gone_lets_all_be_asked_again(lake: Lake) -> None:
    table = lake.table("s.t")
    for n in (1, 5, 9):
        table.append(rows(n))
    assert kept(lake) == [1, 9]

    table.delete("id = 9")
    assert kept(lake) == [1, 5]
    table.restore(version=3)
    assert kept(lake) == [1, 9]


def test_rows_are_read_when_the_deciding_file_has_lost_some(lake: Lake) -> None:
    table = lake.table("s.t")
    table.append(rows(*range(100)))
    assert kept(lake) == [0, 99]

    table.delete("id = 0")

    assert kept(lake) == []
    assert lake.sql("SELECT min(id) AS low FROM s.t").to_pylist() == [{"low": 1}]


def test_what_was_forgotten_of_history_is_noticed(lake: Lake) -> None:
    table = lake.table("s.t")
    for n in (1, 5, 9):
        table.append(rows(n))
    assert kept(lake) == [1, 9]
    table.delete("id = 9")
    with extremes(lake)._store.write() as tx:  # as if a cleaning had taken it
        tx.run("DELETE FROM file_intervals WHERE removed_version IS NOT NULL", ())

    assert kept(lake) == [1, 5]


def _refuse(*_: object) -> None:
    raise AssertionError("every file was asked for")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that each question to the database gave."""
    found: list[int] = []
    ask = Tx.all

    def counted(self: Tx, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        rows = ask(self, sql, parameters)
        found.append(len(rows))
        return rows

    monkeypatch.setattr(Tx, "all", counted)
    return found


def _read_by_a_new_process(place: Path, read: list[int]) -> int:
    with lakebed.open(place) as opened:
        read.clear()
        answer = kept(opened)
        assert answer == [0, opened.table("s.t").row_count - 1]
        return sum(read)


def _filled(place: Path, count: int) -> Path:
    with lakebed.open(place, create=True) as opened:
        made = opened.create_table("s.t", "id long, name string", partition_by=["id"])
        made.append(rows(*range(count)))
        assert len(made.files()) == count
        assert opened._parts.upkeep.wait(60)
    return place


def test_new_process_reads_as_few_rows_of_many_files_as_of_few(
    tmp_path: Path, read: list[int]
) -> None:
    few = _read_by_a_new_process(_filled(tmp_path / "few", 100), read)
    many = _read_by_a_new_process(_filled(tmp_path / "many", 1500), read)

    assert many <= few + 5
    assert few < 40


def test_new_process_looks_at_what_came_after_the_kept_row(tmp_path: Path, read: list[int]) -> None:
    place = _filled(tmp_path / "lake", 200)
    with lakebed.open(place) as opened:
        opened.table("s.t").append(rows(200))
        opened.table("s.t").append(rows(201))

    assert _read_by_a_new_process(place, read) < 60


def test_kept_row_is_never_wrong_after_the_deciding_file_is_gone(tmp_path: Path) -> None:
    place = _filled(tmp_path / "lake", 100)
    with lakebed.open(place) as opened:
        opened.table("s.t").delete("id = 99 OR id = 0")
    with lakebed.open(place) as opened:
        assert kept(opened) == [1, 98]
        extremes(opened).keep_up(opened.table("s.t").id)  # not yet due: nothing moves
    with lakebed.open(place) as opened:
        assert kept(opened) == [1, 98]


@pytest.mark.parametrize("seed", range(3))
def test_kept_rows_are_those_of_the_files_after_any_history(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_extremes, "OFTEN", 2)
    chance = random.Random(seed)
    place = tmp_path / "lake"
    with lakebed.open(place, create=True) as opened:
        opened.create_table("s.t", "id long, name string")
    for _ in range(12):
        with lakebed.open(place) as opened:  # nothing is in memory
            table = opened.table("s.t")
            low = chance.randrange(100)
            match chance.randrange(4):
                case 0 | 1:
                    table.append(rows(*chance.sample(range(low, low + 20), 5)))
                case 2:
                    table.delete(f"id BETWEEN {low} AND {low + chance.randrange(40)}")
                case _:
                    table.restore(version=chance.randrange(table.version + 1))
            if chance.random() < 0.7:
                extremes(opened).keep_up(table.id)
            assert opened.sql(ASKED).to_arrow().to_pydict() == _read(opened)
