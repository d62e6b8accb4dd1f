"""SQL for data files and the intervals in which they are visible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import orjson

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.files import (
    DataFile,
    LiveFile,
    from_plain,
    stats_from_plain,
    stats_to_plain,
    to_plain,
)
from lakebed.model.ids import MAIN_LINE, FileId, SnapshotId, SpecId, TableId, Version
from lakebed.model.types import Type

_FILE = (
    "SELECT f.file_id, f.path, f.size_bytes, f.record_count, f.spec_id, f.sort_order_id,"
    " f.split_offsets, f.partition, f.stats, f.sequence_number, f.snapshot_id, f.first_row_id,"
    " i.added_version, i.removed_version"
    " FROM file_intervals i JOIN files f ON f.table_id = i.table_id AND f.file_id = i.file_id"
    " WHERE i.table_id = ? AND i.line = ?"
)
# Visible at a version: still live, or removed later. Asked as two questions, because each has an
# index; one question with OR would look at every file there ever was.
_STILL = " AND i.removed_version IS NULL AND +i.added_version <= ?"  # "+": not by that index
_LATER = " AND i.removed_version > ? AND i.added_version <= ?"
_IN_RUN = " AND i.file_id >= ? AND i.file_id <= ?"
_LATER_IN_RUN = _LATER + " AND +i.file_id >= ? AND +i.file_id <= ?"
_ORDER = " ORDER BY i.file_id"
# What few versions did is found by version and sorted: by id, SQLite would look at every file.
_SORTED = " ORDER BY +i.file_id"


@dataclass(frozen=True, slots=True)
class Typing:
    """The types needed to read rows back: of every leaf column, and of each spec's values."""

    leaves: Mapping[int, Type]
    specs: Mapping[int, Sequence[Type]]


def insert_files(tx: Tx, table_id: TableId, files: Sequence[LiveFile]) -> None:
    tx.run_many(
        "INSERT INTO files (table_id, file_id, path, size_bytes, record_count, spec_id,"
        " sort_order_id, split_offsets, partition, stats, sequence_number, snapshot_id,"
        " first_row_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_to_row(table_id, f) for f in files],
    )
    tx.run_many(
        "INSERT INTO file_intervals (table_id, line, file_id, added_version) VALUES (?, ?, ?, ?)",
        [(table_id, MAIN_LINE, f.id, f.added_version) for f in files],
    )


def close_intervals(tx: Tx, table_id: TableId, ids: Sequence[FileId], version: Version) -> None:
    tx.run_many(
        "UPDATE file_intervals SET removed_version = ?"
        " WHERE table_id = ? AND line = ? AND file_id = ? AND removed_version IS NULL",
        [(version, table_id, MAIN_LINE, file_id) for file_id in ids],
    )


def number_rows(tx: Tx, table_id: TableId, first_row_id: int) -> None:
    """Give every live file its first row id, in the order of the files' ids."""
    rows = tx.all(
        "SELECT f.file_id, f.record_count FROM file_intervals i"
        " JOIN files f ON f.table_id = i.table_id AND f.file_id = i.file_id"
        " WHERE i.table_id = ? AND i.line = ? AND i.removed_version IS NULL ORDER BY i.file_id",
        (table_id, MAIN_LINE),
    )
    starts = accumulate((count for _, count in rows), initial=first_row_id)
    tx.run_many(
        "UPDATE files SET first_row_id = ? WHERE table_id = ? AND file_id = ?",
        [(start, table_id, file_id) for (file_id, _), start in zip(rows, starts, strict=False)],
    )


def live_files(tx: Tx, table_id: TableId, typing: Typing) -> list[LiveFile]:
    """Visible at the head."""
    rows = tx.all(_FILE + " AND i.removed_version IS NULL" + _ORDER, (table_id, MAIN_LINE))
    return [_from_row(r, typing) for r in rows]


def files_at(tx: Tx, table_id: TableId, version: Version, typing: Typing) -> list[LiveFile]:
    rows = tx.all(_FILE + _STILL + _ORDER, (table_id, MAIN_LINE, version))
    later = tx.all(_FILE + _LATER + _SORTED, (table_id, MAIN_LINE, version, version))
    return _merged(rows, later, typing)


def files_in_run(
    tx: Tx, table_id: TableId, version: Version, typing: Typing, *, first: int, last: int
) -> list[LiveFile]:
    """Visible at a version, with ids from `first` to `last`."""
    key, run = (table_id, MAIN_LINE), (first, last)
    rows = tx.all(_FILE + _STILL + _IN_RUN + _ORDER, (*key, version, *run))
    later = tx.all(_FILE + _LATER_IN_RUN + _SORTED, (*key, version, version, *run))
    return _merged(rows, later, typing)


def _merged(rows: list[Row], later: list[Row], typing: Typing) -> list[LiveFile]:
    together = sorted([*rows, *later], key=lambda row: int(row[0])) if later else rows
    return [_from_row(r, typing) for r in together]


def files_added(tx: Tx, table_id: TableId, version: Version, typing: Typing) -> list[LiveFile]:
    rows = tx.all(_FILE + " AND i.added_version = ?" + _SORTED, (table_id, MAIN_LINE, version))
    return [_from_row(r, typing) for r in rows]


def files_removed(tx: Tx, table_id: TableId, version: Version, typing: Typing) -> list[LiveFile]:
    rows = tx.all(_FILE + " AND i.removed_version = ?" + _SORTED, (table_id, MAIN_LINE, version))
    return [_from_row(r, typing) for r in rows]


def files_removed_between(
    tx: Tx, table_id: TableId, typing: Typing, *, after: Version, up_to: Version
) -> list[LiveFile]:
    rows = tx.all(
        _FILE + " AND i.removed_version > ? AND i.removed_version <= ?" + _SORTED,
        (table_id, MAIN_LINE, after, up_to),
    )
    return [_from_row(r, typing) for r in rows]


def get_live(tx: Tx, table_id: TableId, ids: Sequence[FileId], typing: Typing) -> list[LiveFile]:
    """Those of the named files that are visible at the head."""
    found = []
    for file_id in ids:
        row = tx.one(
            _FILE + " AND i.file_id = ? AND i.removed_version IS NULL",
            (table_id, MAIN_LINE, file_id),
        )
        if row is not None:
            found.append(_from_row(row, typing))
    return found


def all_paths(tx: Tx, table_id: TableId) -> set[str]:
    """Every data file the rows know, visible or not."""
    return {p for (p,) in tx.all("SELECT path FROM files WHERE table_id = ?", (table_id,))}


def _to_row(table_id: TableId, live: LiveFile) -> Row:
    file = live.file
    return (
        table_id,
        live.id,
        file.path,
        file.size_bytes,
        file.record_count,
        file.spec_id,
        file.sort_order_id,
        orjson.dumps(file.split_offsets).decode(),
        orjson.dumps([to_plain(v) for v in file.partition]).decode(),
        orjson.dumps(stats_to_plain(file.stats)),
        live.sequence_number,
        live.snapshot_id,
        live.first_row_id,
    )


def _from_row(row: Row, typing: Typing) -> LiveFile:
    kinds = typing.specs[row[4]]
    partition = zip(kinds, orjson.loads(row[7]), strict=True)
    file = DataFile(
        path=row[1],
        size_bytes=row[2],
        record_count=row[3],
        spec_id=SpecId(row[4]),
        partition=tuple(from_plain(kind, plain) for kind, plain in partition),
        stats=stats_from_plain(orjson.loads(bytes(row[8])), typing.leaves),
        sort_order_id=row[5],
        split_offsets=tuple(orjson.loads(row[6])),
    )
    return LiveFile(
        id=FileId(row[0]),
        file=file,
        added_version=Version(row[12]),
        removed_version=row[13],
        sequence_number=row[9],
        snapshot_id=SnapshotId(row[10]),
        first_row_id=row[11],
    )
