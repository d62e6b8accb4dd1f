"""The idle engines of a lake: to make one takes longer than many a query.

An engine serves one query at a time. It comes back when all rows of its query were read; one whose
query failed or was stopped does not.
"""

import os
import weakref
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakebed.engines.duckdb.instance import Instance, Limits

_MOST_IDLE = 4  # of 4 MB each
_MOST_FOLDERS = 100


class Pool:
    """Thread-safe. Queries give their folders: those that they may read, all of tables."""

    def __init__(self) -> None:
        self._lock = RLock()  # what the collector closes may give an engine back at any time
        self._idle: list[Instance] = []
        self._seen: dict[str, None] = {}  # folders that queries could read, the latest last
        self._is_closed = False
        _pools.add(self)

    def take(self, limits: "Limits", folders: frozenset[str]) -> "Instance | None":
        """One that may read at least these folders, if there is."""
        with self._lock:
            for folder in folders:
                self._seen.pop(folder, None)
                self._seen[folder] = None
            for folder in list(self._seen)[:-_MOST_FOLDERS]:
                del self._seen[folder]
            for place, instance in enumerate(self._idle):
                if instance.limits == limits and folders <= (instance.folders or frozenset()):
                    return self._idle.pop(place)
        return None

    def folders(self, needed: frozenset[str]) -> frozenset[str]:
        """What a new one should read, so that it can serve other queries of this lake too."""
        with self._lock:
            return needed | self._seen.keys()

    def give(self, instance: "Instance") -> None:
        with self._lock:
            surplus = [instance]
            if not self._is_closed and not instance.has_spilled:
                self._idle.insert(0, instance)  # it knows the most folders
                surplus = self._idle[_MOST_IDLE:]
                del self._idle[_MOST_IDLE:]
        for each in surplus:
            each.close()

    def clear(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for instance in idle:
            instance.close()

    def close(self) -> None:
        self._is_closed = True
        self.clear()


_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()


def _clear_all() -> None:
    """A child process has none of an engine's threads, and would wait for them forever."""
    for pool in list(_pools):
        pool.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_clear_all)
