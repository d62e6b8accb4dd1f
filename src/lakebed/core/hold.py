"""Holds: the last attempt of a change that others keep overtaking keeps them waiting instead.

A hold is a mark on the table's row, not an open transaction: reads and publication go on, and a
hold whose holder died ends by itself.
"""

import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from lakebed.meta import tables
from lakebed.meta.store import Store
from lakebed.model.changes import AppendFiles, Proposal, TableChanges
from lakebed.model.errors import DatabaseError, TableHeld
from lakebed.model.history import TableHead
from lakebed.model.ids import TableId

_LASTS_S = 60.0
PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Hold:
    store: Store
    id: str
    table_ids: tuple[TableId, ...]
    strict: bool

    def take(self) -> bool:
        """All tables or none; also what makes the hold last."""
        with self.store.write(durable=False) as tx:
            tables.lock_tables(tx, self.table_ids)
            until_ms = tx.now_ms() + int(_LASTS_S * 1000)
            with suppress(_Taken), tx.savepoint():
                for table_id in self.table_ids:
                    if not tables.hold_table(
                        tx, table_id, self.id, strict=self.strict, until_ms=until_ms
                    ):
                        raise _Taken
                return True
        return False

    def release(self) -> None:
        with self.store.write(durable=False) as tx:
            for table_id in self.table_ids:
                tables.release_table(tx, table_id, self.id)


class _Taken(Exception):
    """Somebody else holds one of the tables."""


@contextmanager
def holding(store: Store, table_ids: Sequence[TableId], *, strict: bool) -> Iterator[str]:
    """Keep others from changing rows of the tables; gives the id to propose under."""
    hold = Hold(store, uuid.uuid4().hex, tuple(sorted(set(table_ids))), strict)
    give_up = time.monotonic() + store.timeout_s
    while not hold.take():
        if time.monotonic() >= give_up:
            raise held_error("a table of this change")
        time.sleep(PAUSE_S)
    done = threading.Event()
    keeper = threading.Thread(target=_keep, args=(hold, done), daemon=True)
    keeper.start()
    try:
        yield hold.id
    finally:
        done.set()
        keeper.join()
        with suppress(DatabaseError):  # it ends by itself in time
            hold.release()


def _keep(hold: Hold, done: threading.Event) -> None:
    while not done.wait(_LASTS_S / 3):
        with suppress(DatabaseError):
            hold.take()


def must_wait(proposal: Proposal, ours: TableChanges, head: TableHead, now_ms: int) -> bool:
    """Is the table held by somebody whose work this would undo?"""
    if head.held_by is None or head.held_by == proposal.hold or head.held_until_ms <= now_ms:
        return False
    return bool(head.held_strict) or not all(isinstance(c, AppendFiles) for c in ours.changes)


def held_error(name: str) -> TableHeld:
    return TableHeld(
        f"{name} is being changed by somebody who keeps others waiting",
        hint="try again later, or raise database.timeout-s",
    )
