"""Lines: main and branches. A branch's versions before its fork are those of its parent."""

from dataclasses import replace

from lakebed.meta import commits, lines, tables
from lakebed.meta.store import Tx
from lakebed.model.history import CommitRecord, TableHead
from lakebed.model.ids import MAIN_LINE, Line, TableId, Version


def find_head(tx: Tx, table_id: TableId, line: Line) -> TableHead | None:
    """A table as one of its lines has it; None when the table was dropped."""
    head = tables.find_by_id(tx, table_id)
    return head if head is None or line == MAIN_LINE else on_line(tx, head, line)


def on_line(tx: Tx, head: TableHead, line: Line) -> TableHead:
    record = lines.get_line(tx, head.id, line)
    return replace(
        head,
        line=line,
        version=record.version,
        time_ms=record.time_ms,
        snapshot_id=record.snapshot_id,
        live_files=record.live_files,
        live_rows=record.live_rows,
        live_bytes=record.live_bytes,
        live_vectors=record.live_vectors,
        live_deletes=record.live_deletes,
    )


def find_commit(tx: Tx, table_id: TableId, version: Version, line: Line) -> CommitRecord | None:
    """The commit that a version of a line is; before its fork, its parent's."""
    return commits.get_commit(tx, table_id, version, lines.line_at(tx, table_id, version, line))


def commit_at_time(tx: Tx, table_id: TableId, time_ms: int, line: Line) -> CommitRecord | None:
    """The newest commit of a line made at or before a time; before its fork, its parent's."""
    found = commits.commit_at(tx, table_id, time_ms, line)
    if found is not None or line == MAIN_LINE:
        return found
    record = lines.get_line(tx, table_id, line)
    earlier = commit_at_time(tx, table_id, time_ms, record.parent_line)
    if earlier is None or earlier.version <= record.fork_version:
        return earlier
    return find_commit(tx, table_id, record.fork_version, record.parent_line)
