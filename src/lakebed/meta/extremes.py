"""SQL for kept least and greatest values: made from other rows, and made again when they go."""

from dataclasses import dataclass
from typing import Any

import orjson

from lakebed.meta.store import Tx
from lakebed.model.history import TableHead
from lakebed.model.ids import TableId, Version


@dataclass(frozen=True, slots=True)
class KeptExtremes:
    """Those of a table at a version of main, as lists of JSON values that core knows to read."""

    version: Version
    next_file_id: int
    live_files: int
    live_rows: int
    body: list[list[Any]]


def get_extremes(tx: Tx, table_id: TableId) -> KeptExtremes | None:
    row = tx.one(
        "SELECT version, next_file_id, live_files, live_rows, body FROM table_extremes"
        " WHERE table_id = ?",
        (table_id,),
    )
    if row is None:
        return None
    version, next_file_id, live_files, live_rows, body = row
    return KeptExtremes(version, next_file_id, live_files, live_rows, orjson.loads(body))


def put_extremes(tx: Tx, head: TableHead, body: list[list[Any]]) -> None:
    tx.run(
        "INSERT INTO table_extremes"
        " (table_id, version, next_file_id, live_files, live_rows, body) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (table_id) DO UPDATE SET version = excluded.version,"
        " next_file_id = excluded.next_file_id, live_files = excluded.live_files,"
        " live_rows = excluded.live_rows, body = excluded.body",
        (
            head.id,
            head.version,
            head.next_file_id,
            head.live_files,
            head.live_rows,
            orjson.dumps(body).decode(),
        ),
    )
