"""Leases: while a long read or write lives, maintenance leaves its version or its files alone.

Short work takes none: files younger than any retention are never cleaned, so a lease is taken only once
work has lasted `after_s`, and renewed while it goes on.
"""

import os
import platform
import time
import uuid
from types import TracebackType

from lakebed.meta import leases
from lakebed.meta.store import Store
from lakebed.model.ids import TableId, Version

AFTER_S = 5.0


class LeaseKeeper:
    """Call `touch` now and then; leaving the block gives the lease back."""

    def __init__(
        self,
        store: Store,
        table_id: TableId,
        *,
        kind: str,
        ttl_s: float,
        version: Version | None = None,
        prefix: str | None = None,
        after_s: float = AFTER_S,
    ) -> None:
        self._store = store
        self._ttl_s = ttl_s
        owner = f"{platform.node()}:{os.getpid()}"
        self._lease = leases.Lease(uuid.uuid4().hex, table_id, kind, version, prefix, owner)
        self._next = time.monotonic() + after_s
        self._held = False

    def touch(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        with self._store.write(durable=False) as tx:
            leases.put_lease(tx, self._lease, ttl_ms=int(self._ttl_s * 1000))
        self._held, self._next = True, now + self._ttl_s / 3

    def __enter__(self) -> "LeaseKeeper":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._held:
            with self._store.write(durable=False) as tx:
                leases.delete_lease(tx, self._lease.id)


def active_leases(store: Store, table_id: TableId) -> list[leases.Lease]:
    with store.read() as tx:
        return leases.active_leases(tx, table_id)
