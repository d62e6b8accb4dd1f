"""SQL for the index of files: its zones and bounds, made from rows that never change."""

from collections.abc import Sequence
from typing import NamedTuple

from lakebed.meta.store import Tx
from lakebed.model.ids import TableId

_LAYOUT = 1  # an index of another program's layout counts as none
_TOGETHER = 64


class Extent(NamedTuple):
    """The files with ids below width * chunks are in the index."""

    width: int
    chunks: int


class Zone(NamedTuple):
    """All keys of a field in a chunk lie from low to high."""

    low: bytes
    high: bytes
    flags: int


class Bounds(NamedTuple):
    """What is known of each file of a chunk, by its place; see core/index_build.py."""

    prefix: bytes
    flags: bytes
    lows: bytes
    highs: bytes


class Entry(NamedTuple):
    """A field in a chunk."""

    field_id: int
    chunk: int
    zone: Zone
    bounds: Bounds


def get_extent(tx: Tx, table_id: TableId) -> Extent | None:
    row = tx.one(
        "SELECT width, chunks FROM file_indexes WHERE table_id = ? AND layout = ?",
        (table_id, _LAYOUT),
    )
    return Extent(*row) if row else None


def lock_extent(tx: Tx, table_id: TableId, width: int) -> Extent:
    """The index as it is, held until the transaction ends; an empty one is made if there is none.

    One of another layout is emptied.
    """
    tx.run(
        "INSERT INTO file_indexes (table_id, layout, width, chunks) VALUES (?, ?, ?, 0)"
        " ON CONFLICT (table_id) DO NOTHING",
        (table_id, _LAYOUT, width),
    )
    row = tx.locked(
        "SELECT layout, width, chunks FROM file_indexes WHERE table_id = ?", (table_id,)
    )
    assert row is not None, table_id
    if row[0] != _LAYOUT:
        delete_index(tx, table_id)
        return lock_extent(tx, table_id, width)
    return Extent(row[1], row[2])


def insert_chunks(tx: Tx, table_id: TableId, entries: Sequence[Entry], chunks: int) -> None:
    """Add chunks behind those that are there; `chunks` is how many there are then."""
    tx.run_many(
        "INSERT INTO file_zones (table_id, field_id, chunk, low, high, flags)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [(table_id, e.field_id, e.chunk, *e.zone) for e in entries],
    )
    tx.run_many(
        "INSERT INTO file_bounds (table_id, field_id, chunk, prefix, flags, lows, highs)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(table_id, e.field_id, e.chunk, *e.bounds) for e in entries],
    )
    tx.run("UPDATE file_indexes SET chunks = ? WHERE table_id = ?", (chunks, table_id))


def delete_index(tx: Tx, table_id: TableId) -> None:
    for statement in _DELETES:
        tx.run(statement, (table_id,))


_DELETES = (
    "DELETE FROM file_bounds WHERE table_id = ?",
    "DELETE FROM file_zones WHERE table_id = ?",
    "DELETE FROM file_indexes WHERE table_id = ?",
)


def list_zones(tx: Tx, table_id: TableId, field_id: int) -> dict[int, Zone]:
    """By chunk."""
    rows = tx.bulk(
        "SELECT chunk, low, high, flags FROM file_zones WHERE table_id = ? AND field_id = ?",
        (table_id, field_id),
    )
    return {chunk: Zone(low, high, flags) for chunk, low, high, flags in rows}


def get_bounds(
    tx: Tx, table_id: TableId, field_id: int, chunks: Sequence[int]
) -> dict[int, Bounds]:
    """Of some chunks, in order; those in which nothing is known of the field are left out."""
    found: dict[int, Bounds] = {}
    for at in range(0, len(chunks), _TOGETHER):
        some = chunks[at : at + _TOGETHER]
        padded = [*some, *[some[-1]] * (_TOGETHER - len(some))] if len(some) > 1 else some
        rows = tx.bulk(
            _BOUNDS + ("(" + ", ".join("?" * len(padded)) + ")"), (table_id, field_id, *padded)
        )
        found |= {row[0]: Bounds(*row[1:]) for row in rows}
    return found


_BOUNDS = (
    "SELECT chunk, prefix, flags, lows, highs FROM file_bounds"
    " WHERE table_id = ? AND field_id = ? AND chunk IN "
)
