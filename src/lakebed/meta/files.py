"""SQL for data files and the intervals in which they are visible."""

from collections.abc import Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import orjson

from lakebed.meta.dialect import Row
from lakebed.meta.lines import get_line, line_at
from lakebed.meta.store import Tx
from lakebed.meta.vectors import get_vectors
from lakebed.model.files import (
    ColumnStats,
    DataFile,
    LiveFile,
    column_from_plain,
    from_plain,
    stats_to_plain,
    to_plain,
)
from lakebed.model.history import LineRecord
from lakebed.model.ids import MAIN_LINE, FieldId, FileId, Line, SnapshotId, SpecId, TableId, Version
from lakebed.model.types import Type
from lakebed.model.vectors import DeletionVector

_FACTS = (
    "SELECT f.file_id, f.path, f.size_bytes, f.record_count, f.spec_id, f.sort_order_id,"
    " f.split_offsets, f.partition, f.stats"
)
_FILE = (
    _FACTS + ", f.sequence_number, f.snapshot_id, f.first_row_id,"
    " i.added_version, i.removed_version, i.vector_id"
    " FROM file_intervals i JOIN files f ON f.table_id = i.table_id AND f.file_id = i.file_id"
    " WHERE i.table_id = ? AND i.line = ?"
)
# Visible at a version: still live, or removed later. Asked as two questions, because each has an
# index; one question with OR would look at every file there ever was.
_STILL = " AND i.removed_version IS NULL AND +i.added_version <= ?"  # "+": not by that index
_LATER = " AND i.removed_version > ? AND i.added_version <= ?"
_IN_RUN = " AND i.file_id >= ? AND i.file_id <= ?"
_LATER_IN_RUN = _LATER + " AND +i.file_id >= ? AND +i.file_id <= ?"
_VECTORS_IN_RUN = " AND i.vector_id >= ? AND i.vector_id <= ?"
_LATER_VECTORS_IN_RUN = " AND +i.vector_id >= ? AND +i.vector_id <= ?"
_ORDER = " ORDER BY i.file_id"
# What few versions did is found by version and sorted: by id, SQLite would look at every file.
_SORTED = " ORDER BY +i.file_id"


@dataclass(frozen=True, slots=True)
class Typing:
    """The types needed to read rows back: of every leaf column, and of each spec's values."""

    leaves: Mapping[int, Type]
    specs: Mapping[int, Sequence[Type]]


class _Stats(Mapping[FieldId, ColumnStats]):
    """Statistics as the rows hold them: most are never asked for, and reading them takes long.

    `types` has every leaf id the table ever had; other ids are skipped.
    """

    __slots__ = ("_columns", "_json", "_types")

    def __init__(self, json: bytes, types: Mapping[int, Type]) -> None:
        self._json = json
        self._types = types
        self._columns: dict[FieldId, ColumnStats | list[Any]] | None = None

    def _known(self) -> dict[FieldId, ColumnStats | list[Any]]:
        if self._columns is None:
            listed = orjson.loads(bytes(self._json))
            self._columns = {FieldId(each[0]): each for each in listed if each[0] in self._types}
        return self._columns

    def __getitem__(self, field_id: FieldId) -> ColumnStats:
        known = self._known()
        found = known[field_id]
        if isinstance(found, list):
            found = known[field_id] = column_from_plain(found, self._types[field_id])
        return found

    def keys(self) -> KeysView[FieldId]:
        return self._known().keys()

    def __iter__(self) -> Iterator[FieldId]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def __repr__(self) -> str:
        return repr(dict(self))


def insert_files(tx: Tx, table_id: TableId, files: Sequence[LiveFile]) -> None:
    tx.run_many(
        "INSERT INTO files (table_id, file_id, path, size_bytes, record_count, spec_id,"
        " sort_order_id, split_offsets, partition, stats, sequence_number, snapshot_id,"
        " first_row_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_to_row(table_id, f) for f in files],
    )


def open_intervals(
    tx: Tx, table_id: TableId, files: Sequence[LiveFile], line: Line = MAIN_LINE
) -> None:
    """Files become visible, each from its added version on and with its vector."""
    tx.run_many(
        "INSERT INTO file_intervals (table_id, line, file_id, added_version, vector_id)"
        " VALUES (?, ?, ?, ?, ?)",
        [(table_id, line, f.id, f.added_version, f.vector.id if f.vector else None) for f in files],
    )


def close_intervals(
    tx: Tx,
    table_id: TableId,
    files: Sequence[LiveFile],
    version: Version,
    line: Line = MAIN_LINE,
) -> None:
    """Files are no longer visible. One that a branch has of its parent gets an ended interval."""
    if line == MAIN_LINE:
        tx.run_many(_CLOSE, [(version, table_id, line, f.id) for f in files])
        return
    for f in files:
        if not tx.run(_CLOSE, (version, table_id, line, f.id)):
            tx.run(
                "INSERT INTO file_intervals (table_id, line, file_id, added_version,"
                " removed_version, vector_id) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    table_id,
                    line,
                    f.id,
                    f.added_version,
                    version,
                    f.vector.id if f.vector else None,
                ),
            )


_CLOSE = (
    "UPDATE file_intervals SET removed_version = ?"
    " WHERE table_id = ? AND line = ? AND file_id = ? AND removed_version IS NULL"
)


def unnumbered_rows(tx: Tx, table_id: TableId) -> int:
    """Rows of files that were written before the table had row ids."""
    row = tx.one(
        "SELECT SUM(record_count) FROM files WHERE table_id = ? AND first_row_id IS NULL",
        (table_id,),
    )
    return int(row[0] or 0) if row else 0


def row_starts(tx: Tx, table_id: TableId) -> dict[FileId, int]:
    """The first row ids that `number_rows` will give: a file's never changes once it is there."""
    rows = tx.all(
        "SELECT file_id, record_count FROM files WHERE table_id = ? ORDER BY file_id", (table_id,)
    )
    starts = accumulate((count for _, count in rows), initial=0)
    return {FileId(file_id): at for (file_id, _), at in zip(rows, starts, strict=False)}


def number_rows(tx: Tx, table_id: TableId, first_row_id: int) -> dict[FileId, int]:
    """Give files their first row ids, in the order of their ids: removed ones too, which a
    restored version may show again."""
    rows = tx.all(
        "SELECT file_id, record_count FROM files"
        " WHERE table_id = ? AND first_row_id IS NULL ORDER BY file_id",
        (table_id,),
    )
    counted = accumulate((count for _, count in rows), initial=first_row_id)
    starts = {FileId(file_id): at for (file_id, _), at in zip(rows, counted, strict=False)}
    tx.run_many(
        "UPDATE files SET first_row_id = ? WHERE table_id = ? AND file_id = ?",
        [(start, table_id, file_id) for file_id, start in starts.items()],
    )
    return starts


def row_numbers(tx: Tx, table_id: TableId, first: int, last: int) -> list[tuple[int | None, int]]:
    """(first row id, number of rows) of each file of a run of ids, in their order."""
    rows = tx.all(
        "SELECT first_row_id, record_count FROM files"
        " WHERE table_id = ? AND file_id BETWEEN ? AND ? ORDER BY file_id",
        (table_id, first, last),
    )
    return [(row[0], row[1]) for row in rows]


def live_files(tx: Tx, table_id: TableId, typing: Typing) -> list[LiveFile]:
    """Visible at the head of main."""
    rows = tx.all(_FILE + " AND i.removed_version IS NULL" + _ORDER, (table_id, MAIN_LINE))
    return _live(tx, table_id, rows, typing)


def files_at(
    tx: Tx, table_id: TableId, version: Version, typing: Typing, line: Line = MAIN_LINE
) -> list[LiveFile]:
    line = line_at(tx, table_id, version, line)
    rows = tx.all(_FILE + _STILL + _ORDER, (table_id, line, version))
    later = tx.all(_FILE + _LATER + _SORTED, (table_id, line, version, version))
    own = _live(tx, table_id, _merged(rows, later), typing)
    if line == MAIN_LINE:
        return own
    fork, touched = _fork(tx, table_id, line)
    inherited = files_at(tx, table_id, fork.fork_version, typing, fork.parent_line)
    return _beside(own, inherited, touched)


def files_in_run(
    tx: Tx,
    table_id: TableId,
    version: Version,
    typing: Typing,
    *,
    first: int,
    last: int,
    line: Line = MAIN_LINE,
) -> list[LiveFile]:
    """Visible at a version, with ids from `first` to `last`."""
    line = line_at(tx, table_id, version, line)
    key, run = (table_id, line), (first, last)
    rows = tx.all(_FILE + _STILL + _IN_RUN + _ORDER, (*key, version, *run))
    later = tx.all(_FILE + _LATER_IN_RUN + _SORTED, (*key, version, version, *run))
    own = _live(tx, table_id, _merged(rows, later), typing)
    if line == MAIN_LINE:
        return own
    fork, touched = _fork(tx, table_id, line)
    inherited = files_in_run(
        tx,
        table_id,
        fork.fork_version,
        typing,
        first=first,
        last=last,
        line=fork.parent_line,
    )
    return _beside(own, inherited, touched)


def all_in_run(
    tx: Tx, table_id: TableId, typing: Typing, *, first: int, stop: int
) -> list[tuple[FileId, DataFile]]:
    """Files with ids from `first` up to `stop`, visible anywhere or not."""
    rows = tx.all(
        _FACTS + " FROM files f WHERE f.table_id = ? AND f.file_id >= ? AND f.file_id < ?"
        " ORDER BY f.file_id",
        (table_id, first, stop),
    )
    return [(FileId(row[0]), _data_file(row, typing)) for row in rows]


def files_among(
    tx: Tx,
    table_id: TableId,
    version: Version,
    typing: Typing,
    *,
    ids: Sequence[int],
    beyond: int,
    line: Line = MAIN_LINE,
) -> list[LiveFile]:
    """Visible at a version, of those with these ids, which are in order, and all from `beyond` on.

    By their ids alone: how many others there are or were makes no difference.
    """
    line = line_at(tx, table_id, version, line)
    key, seen = (table_id, line), (version, version)
    rows: list[Row] = []
    for at in range(0, len(ids), _TOGETHER):
        some = ids[at : at + _TOGETHER]
        padded = [*some, *[some[-1]] * (_TOGETHER - len(some))] if len(some) > 1 else some
        rows += tx.all(_AMONG[len(padded)], (*key, *padded, *seen))
    rows += tx.all(_BEYOND, (*key, beyond, *seen))
    own = _live(tx, table_id, rows, typing)
    if line == MAIN_LINE:
        return own
    fork, touched = _fork(tx, table_id, line)
    at, parent = fork.fork_version, fork.parent_line
    inherited = files_among(tx, table_id, at, typing, ids=ids, beyond=beyond, line=parent)
    return _beside(own, inherited, touched)


_TOGETHER = 100
_SEEN = " AND +i.added_version <= ? AND (i.removed_version IS NULL OR i.removed_version > ?)"
_AMONG = {
    count: f"{_FILE} AND i.file_id IN ({', '.join('?' * count)}){_SEEN}{_ORDER}"
    for count in (1, _TOGETHER)
}
_BEYOND = _FILE + " AND i.file_id >= ?" + _SEEN + _ORDER


def vectors_in_run(
    tx: Tx,
    table_id: TableId,
    version: Version,
    typing: Typing,
    *,
    first: int,
    last: int,
    line: Line = MAIN_LINE,
) -> list[LiveFile]:
    """Visible at a version, with deletion vectors of these ids, in the order of the vectors."""
    line = line_at(tx, table_id, version, line)
    key, run = (table_id, line), (first, last)
    rows = tx.all(_FILE + _STILL + _VECTORS_IN_RUN, (*key, version, *run))
    rows += tx.all(_FILE + _LATER + _LATER_VECTORS_IN_RUN, (*key, version, version, *run))
    found = _live(tx, table_id, rows, typing)
    if line != MAIN_LINE:
        fork, touched = _fork(tx, table_id, line)
        at, parent = fork.fork_version, fork.parent_line
        inherited = vectors_in_run(tx, table_id, at, typing, first=first, last=last, line=parent)
        found += [f for f in inherited if f.id not in touched]
    return sorted(found, key=lambda f: f.vector.id if f.vector else 0)


def _fork(tx: Tx, table_id: TableId, line: Line) -> tuple[LineRecord, set[int]]:
    """Where a branch began, and the files of its parent that it has touched since."""
    fork = get_line(tx, table_id, line)
    rows = tx.all(
        "SELECT file_id FROM file_intervals WHERE table_id = ? AND line = ? AND added_version <= ?",
        (table_id, line, fork.fork_version),
    )
    return fork, {row[0] for row in rows}


def _beside(own: list[LiveFile], inherited: list[LiveFile], touched: set[int]) -> list[LiveFile]:
    return sorted([*own, *(f for f in inherited if f.id not in touched)], key=lambda f: f.id)


def _merged(rows: list[Row], later: list[Row]) -> list[Row]:
    return sorted([*rows, *later], key=lambda row: int(row[0])) if later else rows


def files_added(
    tx: Tx, table_id: TableId, version: Version, typing: Typing, line: Line = MAIN_LINE
) -> list[LiveFile]:
    rows = tx.all(_FILE + " AND i.added_version = ?" + _SORTED, (table_id, line, version))
    return _live(tx, table_id, rows, typing)


def files_removed(
    tx: Tx, table_id: TableId, version: Version, typing: Typing, line: Line = MAIN_LINE
) -> list[LiveFile]:
    rows = tx.all(_FILE + " AND i.removed_version = ?" + _SORTED, (table_id, line, version))
    return _live(tx, table_id, rows, typing)


def files_removed_between(
    tx: Tx,
    table_id: TableId,
    typing: Typing,
    *,
    after: Version,
    up_to: Version,
    line: Line = MAIN_LINE,
) -> list[LiveFile]:
    rows = tx.all(
        _FILE + " AND i.removed_version > ? AND i.removed_version <= ?" + _SORTED,
        (table_id, line, after, up_to),
    )
    return _live(tx, table_id, rows, typing)


def shown_until(
    tx: Tx, table_id: TableId, version: Version, typing: Typing, line: Line = MAIN_LINE
) -> list[LiveFile]:
    """Visible at a version, and as they were then no longer visible at the head."""
    rows = tx.all(_FILE + _LATER + _SORTED, (table_id, line, version, version))
    return _live(tx, table_id, rows, typing)


def shown_since(
    tx: Tx, table_id: TableId, version: Version, typing: Typing, line: Line = MAIN_LINE
) -> list[LiveFile]:
    """Visible at the head, and as they are only since after a version."""
    rows = tx.all(
        _FILE + " AND i.added_version > ? AND +i.removed_version IS NULL" + _SORTED,
        (table_id, line, version),
    )
    return _live(tx, table_id, rows, typing)


def get_live(
    tx: Tx,
    table_id: TableId,
    ids: Sequence[FileId],
    typing: Typing,
    line: Line = MAIN_LINE,
) -> list[LiveFile]:
    """Those of the named files that are visible at a line's head."""
    version = None if line == MAIN_LINE else get_line(tx, table_id, line).version
    found = (_visible(tx, table_id, file_id, line, version) for file_id in ids)
    return _live(tx, table_id, [row for row in found if row is not None], typing)


def _visible(
    tx: Tx, table_id: TableId, file_id: FileId, line: Line, version: Version | None
) -> Row | None:
    """A file's row at a version of a line; of main, None is its head."""
    key = (table_id, line, file_id)
    if version is None:
        return tx.one(_FILE + " AND i.file_id = ? AND i.removed_version IS NULL", key)
    row = tx.one(
        _FILE + " AND i.file_id = ? AND i.added_version <= ?"
        " AND (i.removed_version IS NULL OR i.removed_version > ?)",
        (*key, version, version),
    )
    if row is not None or line == MAIN_LINE:
        return row
    fork, touched = _fork(tx, table_id, line)
    if file_id in touched:
        return None
    return _visible(tx, table_id, file_id, fork.parent_line, fork.fork_version)


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


def _live(tx: Tx, table_id: TableId, rows: Sequence[Row], typing: Typing) -> list[LiveFile]:
    """Vectors are asked for apart: most files have none, and a join would cost each of them."""
    found = get_vectors(tx, table_id, [row[14] for row in rows if row[14] is not None])
    return [_from_row(row, typing, found.get(row[14])) for row in rows]


def _data_file(row: Row, typing: Typing) -> DataFile:
    kinds = typing.specs[row[4]]
    partition = zip(kinds, orjson.loads(row[7]), strict=True)
    return DataFile(
        path=row[1],
        size_bytes=row[2],
        record_count=row[3],
        spec_id=SpecId(row[4]),
        partition=tuple(from_plain(kind, plain) for kind, plain in partition),
        stats=_Stats(row[8], typing.leaves),
        sort_order_id=row[5],
        split_offsets=tuple(orjson.loads(row[6])),
    )


def _from_row(row: Row, typing: Typing, vector: DeletionVector | None) -> LiveFile:
    return LiveFile(
        id=FileId(row[0]),
        file=_data_file(row, typing),
        added_version=Version(row[12]),
        removed_version=row[13],
        sequence_number=row[9],
        snapshot_id=SnapshotId(row[10]),
        first_row_id=row[11],
        vector=vector,
    )
