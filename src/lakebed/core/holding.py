"""Leases of versions that live on in somebody's hands: renewed as long as they are of use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from lakebed.core.lease import AFTER_S, LeaseKeeper, Leases
from lakebed.model.ids import TableId, Version

BEAT_S = 1.0
InUse = Callable[[], bool]  # it must not raise
_Key = tuple[TableId, Version]


@dataclass(slots=True)
class _Held:
    keeper: LeaseKeeper
    users: list[InUse] = field(default_factory=list)


class Holding:
    """One of an open lake. A thread of its own looks after the versions while there are any."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._held: dict[_Key, _Held] = {}
        self._mutex = Lock()
        self._over = Event()
        self._thread: Thread | None = None

    def keep(self, table_id: TableId, version: Version, in_use: InUse) -> None:
        """Until the version is in use no more, or the lake is closed; short work takes no lease."""
        with self._mutex:
            if self._over.is_set():
                return
            key = (table_id, version)
            if key not in self._held:
                keeper = self._leases.reading(table_id, version, after_s=AFTER_S)
                self._held[key] = _Held(keeper)
            self._held[key].users.append(in_use)
            if self._thread is None:
                self._thread = Thread(target=self._renew, name="lakebed-leases", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Give all of them back."""
        self._over.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        for held in self._held.values():
            _give_back(held)
        self._held.clear()

    def _renew(self) -> None:
        while not self._over.wait(BEAT_S):
            for key, held in list(self._held.items()):
                # The database and Spark may take their time: nobody else waits for them.
                gone = [in_use for in_use in list(held.users) if not in_use()]
                if self._is_over(key, held, gone):
                    _give_back(held)
                else:
                    held.keeper.touch()
            with self._mutex:
                if not self._held:
                    self._thread = None
                    return

    def _is_over(self, key: _Key, held: _Held, gone: list[InUse]) -> bool:
        with self._mutex:
            held.users = [in_use for in_use in held.users if in_use not in gone]
            if not held.users:
                del self._held[key]
            return not held.users


def _give_back(held: _Held) -> None:
    with held.keeper:
        pass  # leaving the block does it
