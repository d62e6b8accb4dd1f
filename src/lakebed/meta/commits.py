"""SQL for commits and the snapshots they make."""

from collections.abc import Sequence

import orjson

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.history import CommitRecord, Snapshot
from lakebed.model.ids import MAIN_LINE, Line, SnapshotId, StateId, TableId, Version

_COMMIT = (
    "SELECT table_id, version, time_ms, operation, state_id, author, message, transaction_id,"
    " blind_append, summary, app_id, app_number, line, snapshot_id FROM commits"
)
_SNAPSHOT = (
    "SELECT snapshot_id, version, ordinal, sequence_number, parent_id, time_ms, operation, summary,"
    " schema_id, first_row_id, added_rows, manifest_list, line FROM snapshots"
)


def insert_commit(tx: Tx, commit: CommitRecord) -> None:
    app_id, app_number = commit.app_transaction or (None, None)
    tx.run(
        "INSERT INTO commits (table_id, line, version, time_ms, operation, state_id, author,"
        " message, transaction_id, blind_append, summary, app_id, app_number, snapshot_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            commit.table_id,
            commit.line,
            commit.version,
            commit.time_ms,
            commit.operation,
            commit.state_id,
            commit.author,
            commit.message,
            commit.transaction_id,
            int(commit.blind_append),
            orjson.dumps(dict(commit.summary)).decode(),
            app_id,
            app_number,
            commit.snapshot_id,
        ),
    )


def get_commit(
    tx: Tx, table_id: TableId, version: Version, line: Line = MAIN_LINE
) -> CommitRecord | None:
    row = tx.one(
        _COMMIT + " WHERE table_id = ? AND line = ? AND version = ?", (table_id, line, version)
    )
    return _commit(row) if row else None


def commits_after(
    tx: Tx, table_id: TableId, version: Version, line: Line = MAIN_LINE
) -> list[CommitRecord]:
    rows = tx.all(
        _COMMIT + " WHERE table_id = ? AND line = ? AND version > ? ORDER BY version",
        (table_id, line, version),
    )
    return [_commit(r) for r in rows]


def newest_commits(
    tx: Tx, table_id: TableId, limit: int, line: Line = MAIN_LINE, *, up_to: int = 2**62
) -> list[CommitRecord]:
    rows = tx.all(
        _COMMIT + " WHERE table_id = ? AND line = ? AND version <= ? ORDER BY version DESC LIMIT ?",
        (table_id, line, up_to, limit),
    )
    return [_commit(r) for r in rows]


def commit_times(tx: Tx, table_id: TableId, first: int, last: int) -> dict[int, int]:
    rows = tx.all(
        "SELECT version, time_ms FROM commits"
        " WHERE table_id = ? AND line = ? AND version >= ? AND version <= ?",
        (table_id, MAIN_LINE, first, last),
    )
    return {row[0]: row[1] for row in rows}


def commit_at(
    tx: Tx, table_id: TableId, time_ms: int, line: Line = MAIN_LINE
) -> CommitRecord | None:
    """The newest commit made at or before a time."""
    row = tx.one(
        _COMMIT + " WHERE table_id = ? AND line = ? AND time_ms <= ? ORDER BY time_ms DESC LIMIT 1",
        (table_id, line, time_ms),
    )
    return _commit(row) if row else None


def first_commit(tx: Tx, table_id: TableId) -> CommitRecord | None:
    row = tx.one(
        _COMMIT + " WHERE table_id = ? AND line = ? ORDER BY version LIMIT 1", (table_id, MAIN_LINE)
    )
    return _commit(row) if row else None


def commits_of_transaction(tx: Tx, transaction_id: str) -> list[CommitRecord]:
    rows = tx.all(_COMMIT + " WHERE transaction_id = ? ORDER BY table_id", (transaction_id,))
    return [_commit(r) for r in rows]


def insert_snapshot(tx: Tx, table_id: TableId, snapshot: Snapshot) -> None:
    tx.run(
        "INSERT INTO snapshots (table_id, line, snapshot_id, version, ordinal, sequence_number,"
        " parent_id, time_ms, operation, summary, schema_id, first_row_id, added_rows)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            table_id,
            snapshot.line,
            snapshot.id,
            snapshot.version,
            snapshot.ordinal,
            snapshot.sequence_number,
            snapshot.parent_id,
            snapshot.time_ms,
            snapshot.operation,
            orjson.dumps(dict(snapshot.summary)).decode(),
            snapshot.schema_id,
            snapshot.first_row_id,
            snapshot.added_rows,
        ),
    )


def snapshots_of(
    tx: Tx, table_id: TableId, version: Version, line: Line = MAIN_LINE
) -> list[Snapshot]:
    rows = tx.all(
        _SNAPSHOT + " WHERE table_id = ? AND line = ? AND version = ? ORDER BY ordinal",
        (table_id, line, version),
    )
    return [_snapshot(r) for r in rows]


def published_snapshots(tx: Tx, table_id: TableId, limit: int) -> list[Snapshot]:
    """The newest ones of all lines with a manifest list, newest first.

    Every publication asks for them. With its list a snapshot does not change: it is read once.
    """
    rows = tx.all(_LISTED + _NEWEST_PUBLISHED, (table_id, limit))
    known: dict[Row, Snapshot] = tx.keep(("published", table_id), dict)
    found = {row: known.get(row) for row in rows}  # others may change what is known meanwhile
    new = [row for row, each in found.items() if each is None]
    if len(new) > _FEW:
        all_ = map(_snapshot, tx.all(_SNAPSHOT + _NEWEST_PUBLISHED, (table_id, limit)))
        found |= {(each.id, each.manifest_list): each for each in all_}
    else:
        found |= {row: get_snapshot(tx, table_id, row[0]) for row in new}
    snapshots = {row: each for row, each in found.items() if each is not None}
    if new:
        if len(known) > _PAST * limit:
            known.clear()
        known.update(snapshots)
    return list(snapshots.values())


_LISTED = "SELECT snapshot_id, manifest_list FROM snapshots"
_NEWEST_PUBLISHED = (
    " WHERE table_id = ? AND manifest_list IS NOT NULL ORDER BY sequence_number DESC LIMIT ?"
)
_FEW = 4  # are read one by one
_PAST = 4  # times as many are known as a publication shows


def newest_published(tx: Tx, table_id: TableId, line: Line) -> Snapshot | None:
    row = tx.one(
        _SNAPSHOT + " WHERE table_id = ? AND line = ? AND manifest_list IS NOT NULL"
        " ORDER BY version DESC, sequence_number DESC LIMIT 1",
        (table_id, line),
    )
    return _snapshot(row) if row else None


def get_snapshot(tx: Tx, table_id: TableId, snapshot_id: SnapshotId) -> Snapshot | None:
    row = tx.one(_SNAPSHOT + " WHERE table_id = ? AND snapshot_id = ?", (table_id, snapshot_id))
    return _snapshot(row) if row else None


def list_snapshots(tx: Tx, table_id: TableId) -> list[Snapshot]:
    rows = tx.all(_SNAPSHOT + " WHERE table_id = ? ORDER BY sequence_number", (table_id,))
    return [_snapshot(r) for r in rows]


def record_manifest_list(tx: Tx, table_id: TableId, snapshot_id: SnapshotId, path: str) -> None:
    tx.run(
        "UPDATE snapshots SET manifest_list = ? WHERE table_id = ? AND snapshot_id = ?",
        (path, table_id, snapshot_id),
    )


def _commit(row: Row) -> CommitRecord:
    app = (row[10], row[11]) if row[10] is not None else None
    return CommitRecord(
        TableId(row[0]),
        Version(row[1]),
        row[2],
        row[3],
        StateId(row[4]),
        row[5],
        row[6],
        row[7],
        bool(row[8]),
        orjson.loads(row[9]),
        app,
        Line(row[12]),
        row[13],
    )


def _snapshot(row: Sequence[object]) -> Snapshot:
    values = list(row)
    values[7] = orjson.loads(str(values[7]))
    return Snapshot(*values)  # type: ignore[arg-type]  # columns in the order of the fields
