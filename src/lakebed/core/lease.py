"""Leases: while a long read or write lives, maintenance leaves its version or its files alone.

Short work takes none: files younger than any retention are never cleaned, so a lease is taken only
once work has lasted `after_s`, and renewed while it goes on.
"""

import logging
import os
import platform
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Self, TypeVar

from lakebed.meta import leases
from lakebed.meta.store import Store
from lakebed.model.errors import DatabaseError, LakebedError
from lakebed.model.ids import TableId, Version

AFTER_S = 5.0
_log = logging.getLogger("lakebed.core")
T = TypeVar("T")


class LeaseKeeper:
    """Call `touch` now and then; leaving the block gives the lease back."""

    def __init__(self, store: Store, lease: leases.Lease, *, ttl_s: float, after_s: float) -> None:
        self._store = store
        self._lease = lease
        self._ttl_s = ttl_s
        self._next = time.monotonic() + after_s
        self._held = False

    def touch(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._ttl_s / 3
        try:
            with self._store.write(durable=False) as tx:
                leases.put_lease(tx, self._lease, ttl_ms=int(self._ttl_s * 1000))
        except LakebedError as error:
            if self._lease.kind == "write":
                raise
            # Whoever may only read cannot take a lease; the scan goes on without.
            _log.debug("no read lease: %s", error.message)
            return
        self._held = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._held:
            # What cannot be given back (the lake was closed meanwhile) ends by itself in time.
            with suppress(DatabaseError), self._store.write(durable=False) as tx:
                leases.delete_lease(tx, self._lease.id)


class Leases:
    def __init__(self, store: Store, ttl_s: Callable[[], float]) -> None:
        self._store = store
        self._ttl_s = ttl_s

    def reading(
        self, table_id: TableId, version: Version, *, after_s: float = AFTER_S
    ) -> LeaseKeeper:
        return self._keeper(table_id, "read", version, None, after_s)

    def writing(self, table_id: TableId, prefix: str) -> LeaseKeeper:
        """`prefix` begins the names of the data files that the writer makes."""
        return self._keeper(table_id, "write", None, prefix, AFTER_S)

    def grant(self, table_id: TableId, version: Version) -> None:
        """For readers that cannot renew it: it lasts once, from now on for all of them."""
        name = f"tasks-{table_id}-{version}"
        lease = leases.Lease(name, table_id, "read", version, None, _owner())
        LeaseKeeper(self._store, lease, ttl_s=self._ttl_s(), after_s=0.0).touch()

    def active(self, table_id: TableId) -> list[leases.Lease]:
        with self._store.read() as tx:
            return leases.active_leases(tx, table_id)

    def _keeper(
        self,
        table_id: TableId,
        kind: str,
        version: Version | None,
        prefix: str | None,
        after_s: float,
    ) -> LeaseKeeper:
        lease = leases.Lease(uuid.uuid4().hex, table_id, kind, version, prefix, _owner())
        return LeaseKeeper(self._store, lease, ttl_s=self._ttl_s(), after_s=after_s)


def _owner() -> str:
    return f"{platform.node()}:{os.getpid()}"


# Begins one read; None where nobody could take away what is read.
Hold = Callable[[], AbstractContextManager[LeaseKeeper | None]]


def leased(hold: Hold, items: Iterable[T]) -> Iterator[T]:
    """The items, under a lease from the first one until the last is taken or nobody wants more."""
    with hold() as keeper:
        for item in items:
            if keeper is not None:
                keeper.touch()
            yield item
