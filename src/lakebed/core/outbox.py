"""Which versions still have to be published, and the record of what was."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from lakebed.core.crash import crash_point
from lakebed.core.ledger import Ledger
from lakebed.meta import commits, outbox, publications, tables
from lakebed.meta.store import Store
from lakebed.model.history import ManifestRecord, OutboxRow, PublicationRecord
from lakebed.model.ids import Line, SnapshotId, TableId, Version

Place = tuple[TableId, Line, Version]
_LOCKS = 64  # tables share locks, so that lock files do not pile up with tables


class Outbox:
    def __init__(self, store: Store) -> None:
        self._store = store

    def ledger(self, table_id: TableId) -> Ledger:
        return Ledger(self._store, table_id)

    def pending(self, table_id: TableId) -> tuple[list[OutboxRow], int]:
        """A table's rows in the order of their versions, and the database's time."""
        with self._store.read() as tx:
            return outbox.pending(tx, table_id), tx.now_ms()

    def all_pending(self) -> tuple[list[OutboxRow], int]:
        with self._store.read() as tx:
            return outbox.all_pending(tx), tx.now_ms()

    def transaction_of(self, row: OutboxRow) -> tuple[str, list[tuple[Place, str]]]:
        """The transaction of a commit that waits, and every place it made with its table's name."""
        with self._store.read() as tx:
            commit = commits.get_commit(tx, row.table_id, row.version, row.line)
            assert commit is not None, (row.table_id, row.version)
            places = []
            for other in commits.commits_of_transaction(tx, commit.transaction_id):
                head = tables.get_table(tx, other.table_id)
                name = str(head.name) if head else f"table {other.table_id}"
                places.append(((other.table_id, other.line, other.version), name))
        return commit.transaction_id, places

    def publishing(self, table_id: TableId) -> AbstractContextManager[None]:
        """Held while a table is published: the work is repeatable, but need not be done twice."""
        return self._store.exclusive(f"publish-{table_id % _LOCKS}")

    def checkpointing(self, table_id: TableId) -> AbstractContextManager[None]:
        return self._store.exclusive(f"checkpoint-{table_id % _LOCKS}")

    def finish(
        self,
        row: OutboxRow,
        written: Sequence[PublicationRecord],
        *,
        manifests: tuple[Sequence[ManifestRecord], Sequence[int]] = ((), ()),
        manifest_lists: Mapping[SnapshotId, str] | None = None,
        follow_up: Sequence[str] = (),
    ) -> None:
        """Record what was written and take the row away; nothing when somebody else did.

        Not durable: after a power cut the row is back, and publishing again gives the same bytes.
        """
        with self._store.write(durable=False) as tx:
            if not outbox.take(tx, row.id):
                return
            now = tx.now_ms()
            for record in written:
                publications.insert_publication(tx, row.table_id, record, now)
            added, retired = manifests
            if added:
                number = next(r.number for r in written if r.kind == "metadata")
                publications.insert_manifests(tx, row.table_id, added, number, row.line)
            if retired:
                number = next(r.number for r in written if r.kind == "metadata")
                publications.retire_manifests(tx, row.table_id, retired, number)
            for snapshot_id, path in (manifest_lists or {}).items():
                commits.record_manifest_list(tx, row.table_id, snapshot_id, path)
            entries = [(row.format, kind) for kind in follow_up]
            outbox.insert_outbox(tx, row.table_id, row.version, entries, now)
        crash_point("publish_after_mark")

    def fail(self, row: OutboxRow, *, code: str, message: str, wait_ms: int) -> None:
        with self._store.write(durable=False) as tx:
            outbox.record_failure(
                tx, row.id, code=code, message=message, next_ms=tx.now_ms() + wait_ms
            )

    def forget(self, table_id: TableId) -> None:
        """Remove every row of a table whose files are purged."""
        with self._store.write() as tx:
            tables.delete_table(tx, table_id)
