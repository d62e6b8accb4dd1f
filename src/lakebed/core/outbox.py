"""Which versions still have to be published, and the record of what was."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from lakebed.core.crash import crash_point
from lakebed.core.ledger import Ledger
from lakebed.meta import commits, outbox, publications, tables
from lakebed.meta.store import Store, Tx
from lakebed.model.history import Backlog, ManifestRecord, OutboxRow, PublicationRecord
from lakebed.model.ids import Line, SnapshotId, TableId, Version

Place = tuple[TableId, Line, Version]
_LOCKS = 64  # tables share locks, so that lock files do not pile up with tables


@dataclass(frozen=True, slots=True)
class Published:
    """What was written, to be recorded in one SQL transaction."""

    publications: tuple[PublicationRecord, ...]
    manifests_added: tuple[ManifestRecord, ...] = ()
    manifests_retired: tuple[int, ...] = ()
    manifest_lists: Mapping[SnapshotId, str] = field(default_factory=dict)
    follow_up: tuple[str, ...] = ()  # kinds of outbox rows to add for the same version


class Outbox:
    def __init__(self, store: Store) -> None:
        self._store = store

    def ledger(self, table_id: TableId) -> Ledger:
        return Ledger(self._store, table_id)

    def pending(self, table_id: TableId) -> tuple[list[OutboxRow], int]:
        """A table's rows in the order of their versions; the database's time if one has failed."""
        with self._store.read() as tx:
            rows = outbox.pending(tx, table_id)
            return rows, tx.now_ms() if any(r.error_code for r in rows) else 0

    def all_pending(self) -> tuple[list[OutboxRow], int]:
        with self._store.read() as tx:
            return outbox.all_pending(tx), tx.now_ms()

    def backlog(self) -> Backlog:
        with self._store.read() as tx:
            versions, since_ms = outbox.backlog(tx)
            waited_ms = 0 if since_ms is None else max(0, tx.now_ms() - since_ms)
        return Backlog(versions, waited_ms / 1000)

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

    def finish(self, done: Sequence[tuple[OutboxRow, Published]]) -> None:
        """Record what was written and take the rows away; nothing of one that somebody else took.

        Not durable: after a power cut the rows are back, and publishing again gives the same bytes.
        """
        with self._store.write(durable=False) as tx:
            now_ms = tx.now_ms()
            for row, written in done:
                if outbox.take(tx, row.id):
                    _record(tx, row, written, now_ms)
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


def _record(tx: Tx, row: OutboxRow, written: Published, now_ms: int) -> None:
    for record in written.publications:
        publications.insert_publication(tx, row.table_id, record, now_ms)
    added, retired = written.manifests_added, written.manifests_retired
    if added or retired:
        number = next(r.number for r in written.publications if r.kind == "metadata")
        publications.insert_manifests(tx, row.table_id, added, number, row.line)
        publications.retire_manifests(tx, row.table_id, retired, number)
    for snapshot_id, path in written.manifest_lists.items():
        commits.record_manifest_list(tx, row.table_id, snapshot_id, path)
    if written.follow_up:
        entries = [(row.format, kind) for kind in written.follow_up]
        outbox.insert_outbox(tx, row.table_id, row.version, entries, now_ms)
