"""SQL for the outbox: what has to be published still."""

from collections.abc import Sequence

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.history import OutboxRow
from lakebed.model.ids import MAIN_LINE, Line, TableId, Version

_ROW = (
    "SELECT outbox_id, table_id, format, kind, version, created_ms, attempts, next_ms, error_code,"
    " error, line FROM outbox"
)


def insert_outbox(
    tx: Tx,
    table_id: TableId,
    version: Version,
    entries: Sequence[tuple[str, str]],
    now_ms: int,
    *,
    line: Line = MAIN_LINE,
) -> None:
    """One row per (format, kind)."""
    tx.run_many(
        "INSERT INTO outbox (table_id, format, kind, line, version, created_ms, attempts, next_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, 0, 0)"
        " ON CONFLICT (table_id, format, kind, line, version) DO NOTHING",
        [(table_id, format_, kind, line, version, now_ms) for format_, kind in entries],
    )


def pending(tx: Tx, table_id: TableId) -> list[OutboxRow]:
    """In the order of the commits, which is that of the versions on each line."""
    rows = tx.all(_ROW + " WHERE table_id = ? ORDER BY outbox_id", (table_id,))
    return [_row(r) for r in rows]


def all_pending(tx: Tx) -> list[OutboxRow]:
    return [_row(r) for r in tx.all(_ROW + " ORDER BY table_id, outbox_id")]


def backlog(tx: Tx) -> tuple[int, int | None]:
    """How many commits wait for some format, and when the oldest of them began to."""
    row = tx.one(
        "SELECT COUNT(*), MIN(since_ms) FROM (SELECT MIN(created_ms) AS since_ms FROM outbox"
        " WHERE kind IN ('commit', 'start') GROUP BY table_id, line, version) AS waiting"
    )
    assert row is not None
    return row[0], row[1]


def take(tx: Tx, outbox_id: int) -> bool:
    """Remove a row that is done; False when somebody else did it first."""
    return tx.run("DELETE FROM outbox WHERE outbox_id = ?", (outbox_id,)) == 1


def forget_format(tx: Tx, table_id: TableId, format_: str) -> None:
    """What waits of a format that is turned off, stopped or not, is never published."""
    tx.run("DELETE FROM outbox WHERE table_id = ? AND format = ?", (table_id, format_))


def record_failure(tx: Tx, outbox_id: int, *, code: str, message: str, next_ms: int) -> None:
    tx.run(
        "UPDATE outbox SET attempts = attempts + 1, next_ms = ?, error_code = ?, error = ?"
        " WHERE outbox_id = ?",
        (next_ms, code, message, outbox_id),
    )


def _row(row: Row) -> OutboxRow:
    return OutboxRow(row[0], TableId(row[1]), row[2], row[3], Version(row[4]), *row[5:])
