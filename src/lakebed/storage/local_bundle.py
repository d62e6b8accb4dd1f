"""Local files that belong together: their bytes are made durable at once, then each gets its name.

A file system that syncs one new file writes its whole journal: those that wait with it cost little.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from lakebed.storage.base import Bundle
from lakebed.storage.failures import failures
from lakebed.storage.folders import sync_folder
from lakebed.storage.output import taken
from lakebed.storage.unfinished import Unfinished

_OPEN_MOST = 64  # a process may have only so many files open
_SLOW_S = 0.001  # a sync that takes longer is worth some threads
_AT_ONCE = 16


class Drafts(Bundle, Protocol):
    """Where the files are begun, or are put where one stands already."""

    def draft(self, path: str) -> Unfinished | None: ...

    def draft_over(self, path: str) -> Unfinished: ...


@dataclass(frozen=True, slots=True)
class _Waiting:
    path: str
    file: Unfinished
    modified_ms: int | None
    replaces: bool


class LocalBundle:
    """Until it is finished nothing is seen; what has no name by then is discarded."""

    def __init__(self, drafts: Drafts, named: Callable[[str], None]) -> None:
        self._drafts = drafts
        self._named = named
        self._waiting: list[_Waiting] = []

    def location(self, path: str) -> str:
        return self._drafts.location(path)

    def get(self, path: str) -> bytes:
        return self._drafts.get(path)

    def put_if_absent(self, path: str, data: bytes, *, modified_ms: int | None = None) -> bool:
        file = self._drafts.draft(path)
        if file is None:
            return self._drafts.put_if_absent(path, data, modified_ms=modified_ms)
        self._wait(_Waiting(path, file, modified_ms, replaces=False), data)
        return True

    def replace(self, path: str, data: bytes) -> None:
        self._wait(_Waiting(path, self._drafts.draft_over(path), None, replaces=True), data)

    def _wait(self, each: _Waiting, data: bytes) -> None:
        self._waiting.append(each)
        with failures("write", each.path):
            each.file.write(data)
        if len(self._waiting) % _OPEN_MOST == 0:
            self._settle(self._waiting[-_OPEN_MOST:])

    def _settle(self, files: list[_Waiting]) -> None:
        """One after the other, or all at once where a disk is slow: they share its journal then."""
        began = time.perf_counter()
        for at, each in enumerate(files):
            _settle_one(each)
            rest = files[at + 1 :]
            if len(rest) > 1 and time.perf_counter() - began > _SLOW_S * (at + 1):
                _settle_at_once(rest)
                return

    def finish(self) -> None:
        self._settle(self._waiting)
        before: _Waiting | None = None
        for each in self._waiting:
            if before is not None and before.file.folder != each.file.folder:
                _sync(before)
            self._name(each)
            before = each
        if before is not None:
            _sync(before)

    def _name(self, each: _Waiting) -> None:
        with failures("write", each.path):
            if each.replaces:
                each.file.take_over_name()
            elif not each.file.take_name():
                raise taken(each.path)
        self._named(each.path)

    def discard(self) -> None:
        """What got its name stays."""
        for each in self._waiting:
            each.file.discard()


def _settle_at_once(files: list[_Waiting]) -> None:
    try:
        with ThreadPoolExecutor(min(len(files), _AT_ONCE)) as pool:
            list(pool.map(_settle_one, files))
    except RuntimeError:  # no thread begins while the interpreter ends
        for each in files:
            _settle_one(each)


def _settle_one(each: _Waiting) -> None:
    with failures("write", each.path):
        each.file.settle(each.modified_ms)


def _sync(each: _Waiting) -> None:
    with failures("write", each.path):
        sync_folder(each.file.folder)
