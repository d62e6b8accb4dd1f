"""One lake from many threads, handles and tasks at once: normal use."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import lakebed

SCHEMA = "id long not null"
Place = tuple[str, str | None]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return str(tmp_path / "lake"), None
    return request.getfixturevalue("postgres_url"), str(tmp_path / "warehouse")


@pytest.fixture
def lake(place: Place) -> Iterator[lakebed.Lake]:
    with lakebed.open(place[0], create=True, warehouse=place[1]) as lake:
        lake.create_table("a.t", SCHEMA)
        lake.create_table("a.u", SCHEMA)
        yield lake


def rows(*ids: int) -> list[dict[str, object]]:
    return [{"id": i} for i in ids]


def test_threads_that_create_the_same_lake_and_table_get_one(place: Place) -> None:
    barrier = threading.Barrier(6)

    def use(number: int) -> str:
        barrier.wait()
        with lakebed.open(place[0], create=True, warehouse=place[1]) as lake:
            with suppress(lakebed.TableExists):
                lake.create_table("a.t", SCHEMA)
            table = lake.table("a.t")
            assert table.append(rows(number)).published
            return table.uuid

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(use, range(6)))) == 1
    with lakebed.open(place[0]) as lake:
        assert ids(lake) == list(range(6))
        assert lake.check().clean


def test_only_one_of_those_that_must_be_first_is_first(place: Place) -> None:
    barrier = threading.Barrier(4)

    def create(_: int) -> bool:
        barrier.wait()
        try:
            lakebed.init(place[0], warehouse=place[1]).close()
        except lakebed.AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(create, range(4))) == [False, False, False, True]


def test_tables_taken_in_opposite_order_never_deadlock(lake: lakebed.Lake, place: Place) -> None:
    """Two handles stand for two processes; heads are locked in one order, whatever was staged."""

    def write(handle: lakebed.Lake, first: str, second: str) -> None:
        for n in range(8):
            with handle.transaction() as tx:
                tx.table(first).append(rows(n))
                tx.table(second).append(rows(n))

    with lakebed.open(place[0], warehouse=place[1]) as other, ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(write, handle, *order)
            for handle in (lake, other)
            for order in (("a.t", "a.u"), ("a.u", "a.t"))
        ]
        for job in jobs:
            job.result(timeout=60)

    assert ids(lake) == ids(lake, "a.u") == sorted([*range(8)] * 4)
    assert lake.check().clean


def test_tasks_write_and_read_through_threads(lake: lakebed.Lake) -> None:
    async def use() -> list[int]:
        table = lake.table("a.t")
        writes = [asyncio.to_thread(table.append, rows(n)) for n in range(10)]
        reads = [asyncio.to_thread(table.to_arrow) for _ in range(5)]
        await asyncio.gather(*writes, *reads)
        return sorted((await asyncio.to_thread(table.to_arrow))["id"].to_pylist())

    assert asyncio.run(use()) == list(range(10))
    assert [c.version for c in lake.table("a.t").history()] == list(range(10, -1, -1))


def test_readers_see_whole_commits_of_both_tables(lake: lakebed.Lake) -> None:
    stop = threading.Event()

    def write() -> None:
        for n in range(15):
            with lake.transaction() as tx:
                tx.table("a.t").append(rows(n * 2, n * 2 + 1))
                tx.table("a.u").append(rows(n * 2, n * 2 + 1))
        stop.set()

    def read() -> int:
        looks = 0
        while not stop.is_set() or not looks:
            found = ids(lake)
            assert found == list(range(len(found)))
            assert len(found) % 2 == 0
            looks += 1
        return looks

    with ThreadPoolExecutor(3) as pool:
        writer, readers = pool.submit(write), [pool.submit(read) for _ in range(2)]
        writer.result(timeout=60)
        assert all(reader.result(timeout=60) for reader in readers)
    assert ids(lake) == ids(lake, "a.u") == list(range(30))


def test_tables_made_at_once_above_and_below_each_other_have_folders_apart(
    lake: lakebed.Lake, place: Place
) -> None:
    with lakebed.open(place[0], warehouse=place[1]) as other, ThreadPoolExecutor(4) as pool:
        for n in range(5):
            jobs = [
                pool.submit(handle.create_table, name, SCHEMA)
                for handle, name in ((lake, f"x{n}.y"), (other, f"x{n}.y.z"))
            ]
            for job in jobs:
                try:
                    job.result()
                except lakebed.CommitConflict as error:
                    assert error.retryable  # noqa: PT017
    folders = [lake.table(name).location for name in lake.tables()]
    for one in folders:
        assert not [o for o in folders if o.startswith(one + "/")]


def ids(lake: lakebed.Lake, name: str = "a.t") -> list[int]:
    return sorted(lake.table(name).to_arrow()["id"].to_pylist())
