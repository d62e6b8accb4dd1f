"""SQL for leases: what keeps a version or a folder from being cleaned."""

from dataclasses import dataclass

from lakebed.meta.store import Tx
from lakebed.model.ids import TableId, Version


@dataclass(frozen=True, slots=True)
class Lease:
    id: str
    table_id: TableId
    kind: str  # read or write
    version: Version | None
    prefix: str | None  # of the data files a writer is making
    owner: str


def put_lease(tx: Tx, lease: Lease, *, ttl_ms: int) -> None:
    """Take or renew."""
    tx.run(
        "INSERT INTO leases (lease_id, table_id, kind, version, prefix, owner, expires_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (lease_id) DO UPDATE SET expires_ms = excluded.expires_ms",
        (
            lease.id,
            lease.table_id,
            lease.kind,
            lease.version,
            lease.prefix,
            lease.owner,
            tx.now_ms() + ttl_ms,
        ),
    )


def delete_lease(tx: Tx, lease_id: str) -> None:
    tx.run("DELETE FROM leases WHERE lease_id = ?", (lease_id,))


def active_leases(tx: Tx, table_id: TableId) -> list[Lease]:
    rows = tx.all(
        "SELECT lease_id, table_id, kind, version, prefix, owner FROM leases"
        " WHERE table_id = ? AND expires_ms > ? ORDER BY lease_id",
        (table_id, tx.now_ms()),
    )
    return [Lease(*row) for row in rows]
