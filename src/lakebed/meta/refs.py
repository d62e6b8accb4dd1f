"""SQL for refs: branches and tags by name."""

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.history import Ref
from lakebed.model.ids import Line, TableId, Version

_REF = (
    "SELECT name, kind, line, version, snapshot_id, created_ms, max_age_ms, min_snapshots,"
    " max_snapshot_age_ms FROM refs WHERE table_id = ?"
)


def put_ref(tx: Tx, table_id: TableId, ref: Ref) -> None:
    """A new ref, or another meaning for one there is."""
    tx.run(
        "INSERT INTO refs (table_id, name, kind, line, version, snapshot_id, created_ms,"
        " max_age_ms, min_snapshots, max_snapshot_age_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (table_id, name) DO UPDATE SET kind = EXCLUDED.kind, line = EXCLUDED.line,"
        " version = EXCLUDED.version, snapshot_id = EXCLUDED.snapshot_id,"
        " max_age_ms = EXCLUDED.max_age_ms, min_snapshots = EXCLUDED.min_snapshots,"
        " max_snapshot_age_ms = EXCLUDED.max_snapshot_age_ms",
        (
            table_id,
            ref.name,
            ref.kind,
            ref.line,
            ref.version,
            ref.snapshot_id,
            ref.created_ms,
            ref.max_age_ms,
            ref.min_snapshots,
            ref.max_snapshot_age_ms,
        ),
    )


def get_ref(tx: Tx, table_id: TableId, name: str) -> Ref | None:
    row = tx.one(_REF + " AND name = ?", (table_id, name))
    return _ref(row) if row else None


def list_refs(tx: Tx, table_id: TableId) -> list[Ref]:
    return [_ref(row) for row in tx.all(_REF + " ORDER BY name", (table_id,))]


def delete_ref(tx: Tx, table_id: TableId, name: str) -> bool:
    return tx.run("DELETE FROM refs WHERE table_id = ? AND name = ?", (table_id, name)) == 1


def has_branch(tx: Tx, table_id: TableId, line: Line) -> bool:
    """Is a line still a branch, or was its name dropped?"""
    sql = "SELECT 1 FROM refs WHERE table_id = ? AND kind = 'branch' AND line = ?"
    return tx.one(sql, (table_id, line)) is not None


def _ref(row: Row) -> Ref:
    return Ref(row[0], row[1], Line(row[2]), Version(row[3]), *row[4:])
