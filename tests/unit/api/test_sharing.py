"""One handle for many: threads, asyncio, and a child that was forked."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import lakebed


def test_readers_see_whole_versions_while_a_thread_writes(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.t", "id long, version long")
    done = threading.Event()

    def write() -> int:
        try:
            for version in range(1, 16):
                table.overwrite([{"id": n, "version": version} for n in range(5)])
        finally:
            done.set()
        return table.version

    def read() -> list[int]:
        seen = []
        while not done.is_set():
            rows = disk.table("a.t").to_arrow().to_pylist()
            assert len(rows) in (0, 5)
            assert len({r["version"] for r in rows}) <= 1
            seen.append(rows[0]["version"] if rows else 0)
        return seen

    with ThreadPoolExecutor(5) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        assert pool.submit(write).result() == 15
        for reader in readers:
            seen = reader.result()
            assert seen == sorted(seen)
    assert disk.check().clean


def test_a_handle_works_from_asyncio(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.t", "id long")

    async def work() -> list[int]:
        writes = [asyncio.to_thread(table.append, [{"id": n}]) for n in range(8)]
        commits = await asyncio.gather(*writes)
        rows = await asyncio.to_thread(table.to_arrow)
        assert sorted(rows["id"].to_pylist()) == list(range(8))
        return [c.version for c in commits]

    assert sorted(asyncio.run(work())) == list(range(1, 9))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("place", ["disk", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_forked_child_uses_the_same_handle(
    request: pytest.FixtureRequest, tmp_path: os.PathLike[str], place: str
) -> None:
    if place == "postgres":
        uri = request.getfixturevalue("postgres_url")
        lake = lakebed.open(uri, create=True, warehouse=tmp_path)
    else:
        lake = request.getfixturevalue("disk")
    table = lake.create_table("a.t", [{"id": 0}])

    children = []
    for n in range(1, 4):
        child = os.fork()
        if child == 0:
            good = False
            try:
                good = table.to_arrow().num_rows >= 1 and table.append([{"id": n}]).published
            finally:
                os._exit(0 if good else 1)
        children.append(child)
        table.append([{"id": 10 * n}])

    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 10, 20, 30]
    assert (lake.check().findings, lake.check().notes) == ([], [])
    lake.close()
