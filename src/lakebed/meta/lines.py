"""SQL for lines: the histories of branches. Main has no row here; its head is the table's."""

from lakebed.meta.store import Tx
from lakebed.model.history import LineRecord, TableHead
from lakebed.model.ids import MAIN_LINE, Line, TableId, Version

_LINE = (
    "SELECT line, parent_line, fork_version, merged_version, main_version, head_version,"
    " head_time_ms, snapshot_id, live_files, live_rows, live_bytes, live_vectors, live_deletes"
    " FROM lines WHERE table_id = ?"
)


def insert_line(tx: Tx, fork: TableHead) -> Line:
    """A new line that begins as `fork` is, a line at one of its versions."""
    row = tx.one("SELECT MAX(line) FROM lines WHERE table_id = ?", (fork.id,))
    line = Line(1 + (row[0] or 0 if row else 0))
    tx.run(
        "INSERT INTO lines (table_id, line, parent_line, fork_version, merged_version,"
        " main_version, head_version, head_time_ms, snapshot_id, live_files, live_rows, live_bytes,"
        " live_vectors, live_deletes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            fork.id,
            line,
            fork.line,
            fork.version,
            fork.version,
            fork.version,
            fork.version,
            fork.time_ms,
            fork.snapshot_id,
            fork.live_files,
            fork.live_rows,
            fork.live_bytes,
            fork.live_vectors,
            fork.live_deletes,
        ),
    )
    return line


def get_line(tx: Tx, table_id: TableId, line: Line) -> LineRecord:
    row = tx.one(_LINE + " AND line = ?", (table_id, line))
    assert row is not None, (table_id, line)
    return LineRecord(*row)


def line_at(tx: Tx, table_id: TableId, version: Version, line: Line) -> Line:
    """The line that a version of a line is of: up to its fork, a branch's are its parent's."""
    while line != MAIN_LINE:
        fork = get_line(tx, table_id, line)
        if version > fork.fork_version:
            break
        line = fork.parent_line
    return line


def advance_line(tx: Tx, to: TableHead) -> None:
    tx.run(
        "UPDATE lines SET head_version = ?, head_time_ms = ?, snapshot_id = ?, live_files = ?,"
        " live_rows = ?, live_bytes = ?, live_vectors = ?, live_deletes = ?"
        " WHERE table_id = ? AND line = ?",
        (
            to.version,
            to.time_ms,
            to.snapshot_id,
            to.live_files,
            to.live_rows,
            to.live_bytes,
            to.live_vectors,
            to.live_deletes,
            to.id,
            to.line,
        ),
    )


def record_merge(tx: Tx, table_id: TableId, line: Line, *, merged: Version, main: Version) -> None:
    """Main has taken a line's versions up to `merged`, by its own version `main`."""
    tx.run(
        "UPDATE lines SET merged_version = ?, main_version = ? WHERE table_id = ? AND line = ?",
        (merged, main, table_id, line),
    )
