"""SQL for how far steps have read their inputs: versions, marks, files."""

from collections.abc import Sequence

from lakebed.meta.store import Tx
from lakebed.model.ids import TableId, Version
from lakebed.model.runs import Cursor, FileMark


def put_cursors(tx: Tx, pipeline: str, cursors: Sequence[Cursor], run_id: str) -> None:
    tx.run_many(
        "INSERT INTO cursors (pipeline, step, input, table_id, version, mark, run_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (pipeline, step, input) DO UPDATE"
        " SET table_id = excluded.table_id, version = excluded.version, mark = excluded.mark,"
        " run_id = excluded.run_id",
        [(pipeline, c.step, c.input, c.table_id, c.version, c.mark, run_id) for c in cursors],
    )


def list_cursors(tx: Tx, pipeline: str) -> list[Cursor]:
    rows = tx.all(
        "SELECT step, input, table_id, version, mark FROM cursors WHERE pipeline = ?", (pipeline,)
    )
    return [
        Cursor(
            step,
            given,
            None if table_id is None else TableId(table_id),
            None if version is None else Version(version),
            mark,
        )
        for step, given, table_id, version, mark in rows
    ]


def put_marks(tx: Tx, pipeline: str, marks: Sequence[FileMark], run_id: str) -> None:
    tx.run_many(
        "INSERT INTO input_files"
        " (pipeline, step, input, path, size_bytes, modified_ms, run_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (pipeline, step, input, path) DO UPDATE"
        " SET size_bytes = excluded.size_bytes, modified_ms = excluded.modified_ms,"
        " run_id = excluded.run_id",
        [(pipeline, m.step, m.input, m.path, m.size_bytes, m.modified_ms, run_id) for m in marks],
    )


def forget_marks(tx: Tx, pipeline: str, step: str) -> None:
    tx.run("DELETE FROM input_files WHERE pipeline = ? AND step = ?", (pipeline, step))


def find_marks(
    tx: Tx,
    pipeline: str,
    step: str,
    given: str,
    paths: Sequence[str],
    *,
    others: Sequence[str] = (),
) -> list[FileMark]:
    """Those of some files that have been read, by this input last.

    Inputs that the step has no more count too, `others` are those it has: a pattern that was
    written anew gives no file a second time.
    """
    places = ", ".join("?" * len(paths))
    besides = f" AND input NOT IN ({', '.join('?' * len(others))})" if others else ""
    rows = tx.all(
        "SELECT path, size_bytes, modified_ms FROM input_files"  # noqa: S608 - placeholders alone
        f" WHERE pipeline = ? AND step = ? AND path IN ({places}){besides} ORDER BY input = ?",
        (pipeline, step, *paths, *others, given),
    )
    return [FileMark(step, given, *row) for row in rows]
