"""Files that belong together: durable at once, seen in their order, or not at all."""

import errno
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Barrier

import pytest

from lakebed.model.errors import StorageError, StorageFull
from lakebed.storage import local_bundle
from lakebed.storage.local import LocalStorage
from tests.unit.storage.test_local import files


def put_together(
    storage: LocalStorage, paths: Iterable[str], *, before_the_end: Callable[[], None]
) -> None:
    """A bundle of files, each with its path in it."""
    with storage.bundle(lambda _: None) as bundle:
        for path in paths:
            bundle.put_if_absent(path, path.encode())
        before_the_end()


def test_a_bundle_syncs_its_files_at_once_then_each_folder_it_leaves(
    storage: LocalStorage, root: Path, synced: list[int]
) -> None:
    for path in ("t/first", "u/first"):
        storage.put_if_absent(path, b"")
    synced.clear()

    with storage.bundle(lambda _: None) as bundle:
        for path in ("t/a", "u/b", "u/c"):
            assert bundle.put_if_absent(path, b"1") is True
        bundle.replace("u/first", b"2")
        seen = [path for path in files(root) if ".tmp-" not in path]
        assert (synced, seen) == ([], ["t/first", "u/first"])

    files_, folders = ("t/a", "u/b", "u/c", "u/first"), ("t", "u")
    assert sorted(synced[:4]) == sorted((root / path).stat().st_ino for path in files_)
    assert synced[4:] == [(root / path).stat().st_ino for path in folders]
    assert files(root) == ["t/a", "t/first", "u/b", "u/c", "u/first"]


def test_a_slow_disk_is_waited_for_once_by_the_files_of_a_bundle(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, together = os.fsync, Barrier(3, timeout=60)
    synced: list[int] = []

    def slow(handle: int) -> None:
        if synced:  # the others can only go on when all of them are here
            together.wait()
        else:
            time.sleep(0.01)
        synced.append(handle)
        fsync(handle)

    def begin() -> None:
        monkeypatch.setattr(os, "fsync", slow)
        monkeypatch.setattr(local_bundle, "sync_folder", lambda _: None)

    put_together(storage, "abcd", before_the_end=begin)

    assert len(synced) == 4
    assert [storage.get(path) for path in "abcd"] == [b"a", b"b", b"c", b"d"]


def test_a_bundle_of_many_files_has_only_some_of_them_open(
    storage: LocalStorage, root: Path, synced: list[int]
) -> None:
    names = [f"t/{n:04}" for n in range(300)]

    with storage.bundle(lambda _: None) as bundle:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for name in names:
            bundle.put_if_absent(name, name.encode())
        assert len(list(Path("/proc/self/fd").iterdir())) - before < 100

    assert files(root) == names
    assert len(set(synced)) == 3 + len(names), "each file once, and the folders"


def test_a_name_that_another_takes_meanwhile_ends_a_bundle(
    storage: LocalStorage, root: Path
) -> None:
    def lose() -> None:
        storage.put_if_absent("t/b", b"theirs")

    with pytest.raises(StorageError, match="t/b"):
        put_together(storage, ("t/a", "t/b", "t/c"), before_the_end=lose)

    assert files(root) == ["t/a", "t/b"]
    assert storage.get("t/b") == b"theirs"


def test_a_disk_that_fills_up_while_a_bundle_syncs_shows_none_of_it(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(StorageFull):
        put_together(storage, "ab", before_the_end=lambda: monkeypatch.setattr(os, "fsync", full))

    assert files(root) == []
