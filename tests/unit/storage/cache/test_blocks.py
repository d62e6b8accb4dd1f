"""The cache of blocks: bounded, shared by processes, and never a wrong byte."""

import errno
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakebed.storage.cache.blocks import BlockCache

BLOCK = os.urandom(10_000)
WRITER = """
import sys
from lakebed.storage.cache.blocks import BlockCache
cache = BlockCache(sys.argv[1], int(sys.argv[2]))
for number in range(40):
    block = bytes([number]) * 10_000
    cache.put("same", number, memoryview(block))
    cache.put(sys.argv[3], number, memoryview(block))
    assert cache.get("same", number, 10_000) in (block, None)
assert cache._writable
"""


def kept(cache: BlockCache, name: str, number: int = 0, block: bytes = BLOCK) -> None:
    cache.put(name, number, memoryview(block))


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "pages"]


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in files_in(folder))


def test_a_block_is_found_again_by_another_cache(tmp_path: Path) -> None:
    kept(BlockCache(str(tmp_path), 10**6), "a")

    cache = BlockCache(str(tmp_path), 10**6)
    assert cache.get("a", 0, len(BLOCK)) == BLOCK
    assert cache.get("a", 1, len(BLOCK)) is None
    assert cache.get("b", 0, len(BLOCK)) is None

    use = cache.use()
    assert (use.hits, use.misses, use.bytes_from_cache) == (1, 2, len(BLOCK))
    assert use.hit_rate == pytest.approx(1 / 3)
    assert use.used_bytes >= len(BLOCK)


def test_nothing_is_made_before_the_first_use(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path / "c"), 10**6)

    assert cache.use().hit_rate is None
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: b"",
        lambda data: data[:5],
        lambda data: data[:500] + bytes([data[500] ^ 1]) + data[501:],
        lambda data: bytes(len(data)),
        lambda data: b"x" + data[1:],
    ],
    ids=["shorter", "longer", "empty", "torn head", "one bit", "zeros", "other form"],
)
def test_a_damaged_block_is_a_miss_and_comes_anew(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    cache = BlockCache(str(tmp_path), 10**6)
    kept(cache, "a")
    (path,) = files_in(tmp_path)
    path.write_bytes(damage(path.read_bytes()))

    assert cache.get("a", 0, len(BLOCK)) is None
    kept(cache, "a")
    assert cache.get("a", 0, len(BLOCK)) == BLOCK


def test_a_block_of_another_length_is_a_miss(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 10**6)
    kept(cache, "a")

    assert cache.get("a", 0, len(BLOCK) - 1) is None


def test_the_folder_stays_within_its_bound(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 100_000)

    for number in range(100):
        kept(cache, "a", number)
        assert bytes_in(tmp_path) <= 100_000

    assert bytes_in(tmp_path) > 50_000
    assert cache.get("a", 99, len(BLOCK)) == BLOCK


def test_the_bound_survives_a_restart_and_a_lost_count(tmp_path: Path) -> None:
    for number in range(8):
        kept(BlockCache(str(tmp_path), 100_000), "a", number)
    (pages,) = tmp_path.rglob("pages")
    pages.unlink()

    for number in range(8, 30):
        kept(BlockCache(str(tmp_path), 100_000), "a", number)
        assert bytes_in(tmp_path) <= 100_000


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 100_000)
    for number in range(8):
        kept(cache, "a", number)
        (path,) = tmp_path.glob(f"*/??/*-{number}")
        os.utime(path, (1000 + number, 1000 + number))
    assert cache.get("a", 0, len(BLOCK)) == BLOCK  # the oldest, but used

    kept(cache, "a", 8)

    gone = [n for n in range(9) if cache.get("a", n, len(BLOCK)) is None]
    assert gone
    assert gone == list(range(1, 1 + len(gone)))


def test_a_block_larger_than_the_cache_is_not_kept(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 5000)

    kept(cache, "a")

    assert files_in(tmp_path) == []


def test_what_a_crash_left_is_removed(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 100_000)
    kept(cache, "a")
    (path,) = files_in(tmp_path)
    left = path.parent / ".tmp-left"
    left.write_bytes(BLOCK)
    os.utime(left, (1000, 1000))

    for number in range(20):
        kept(cache, "b", number)

    assert not left.exists()


def test_nobody_else_can_reach_it(tmp_path: Path) -> None:
    kept(BlockCache(str(tmp_path / "c"), 10**6), "a")

    modes = {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "c").rglob("*") if p.is_dir()}
    assert modes == {0o700}
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in files_in(tmp_path)} == {0o600}


def test_a_folder_that_others_can_reach_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept(BlockCache(str(tmp_path), 10**6), "a")
    (tmp_path / "blocks-1").chmod(0o777)

    cache = BlockCache(str(tmp_path), 10**6)
    with caplog.at_level(logging.WARNING):
        assert cache.get("a", 0, len(BLOCK)) is None
        kept(cache, "b")

    assert len(caplog.records) == 1
    assert "others can reach it" in caplog.text


def test_a_full_disk_is_one_warning_and_what_is_kept_serves_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = BlockCache(str(tmp_path), 10**6)
    kept(cache, "a")

    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full, caplog.at_level(logging.WARNING):
        full.setattr(os, "write", write)
        kept(cache, "b")
        kept(cache, "c")

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "No space left" in caplog.text
    assert cache.get("a", 0, len(BLOCK)) == BLOCK
    assert cache.get("b", 0, len(BLOCK)) is None
    assert [path.name for path in files_in(tmp_path) if path.name.startswith(".tmp-")] == []


def test_a_folder_that_cannot_be_made_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    cache = BlockCache(str(tmp_path / "file" / "cache"), 10**6)

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert cache.get("a", 0, len(BLOCK)) is None
            kept(cache, "a")

    assert len(caplog.records) == 1
    assert str(tmp_path / "file" / "cache") in caplog.text
    assert cache.use().misses == 3


def test_a_folder_removed_by_hand_is_made_again(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 10**6)
    kept(cache, "a")
    for path in sorted(tmp_path.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()

    kept(cache, "a")

    assert cache.get("a", 0, len(BLOCK)) == BLOCK


def test_threads_get_whole_blocks_while_others_are_removed(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 100_000)

    def use(thread: int) -> int:
        found = 0
        for step in range(150):
            number = (thread + step) % 20
            block = bytes([number]) * 10_000
            got = cache.get("a", number, 10_000)
            assert got in (block, None)
            found += got is not None
            if got is None:
                kept(cache, "a", number, block)
        return found

    with ThreadPoolExecutor(4) as pool:
        found = sum(pool.map(use, range(4)))

    use_of_all = cache.use()
    assert (use_of_all.hits, use_of_all.misses) == (found, 600 - found)
    # Threads that write at once may be a block each beyond it.
    assert bytes_in(tmp_path) <= 100_000 + 4 * 12_000


def test_processes_share_a_folder_and_its_bound(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path), "300000"]

    running = [subprocess.Popen([*command, name]) for name in ("one", "two")]

    assert [process.wait(120) for process in running] == [0, 0]
    # Both wrote 1.2 MB; where their sweeps cross, a tenth may be missed until the next one.
    assert bytes_in(tmp_path) <= 300_000 * 1.1 + 2 * 12_000
    cache = BlockCache(str(tmp_path), 300_000)
    kept(cache, "new")
    assert cache.get("new", 0, len(BLOCK)) == BLOCK
