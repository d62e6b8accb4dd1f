"""Columns about rows: which file, where in it, and what Iceberg calls row lineage.

A file written by a rewrite may hold the lineage of its rows; else it follows from the position.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.files import LiveFile
from lakebed.model.vectors import Positions

METADATA: dict[str, pa.DataType] = {
    "_file": pa.int32(),
    "_pos": pa.int64(),
    "_row_id": pa.int64(),
    "_last_updated_sequence_number": pa.int64(),
}
STORED = ("_row_id", "_last_updated_sequence_number")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows of a batch stand: `live` is file number `index` of the plan."""

    live: LiveFile
    index: int
    first: int  # position of the batch's first row


def metadata_fields(names: Sequence[str]) -> list[pa.Field]:
    return [pa.field(name, METADATA[name]) for name in names]


def metadata_columns(batch: pa.RecordBatch, place: Place, names: Sequence[str]) -> list[pa.Array]:
    """For the rows of a batch as the file holds them, before any row is left out."""
    return [_column(batch, place, name) for name in names]


def kept(deleted: Positions | None, first: int, stop: int) -> pa.BooleanArray | None:
    """Which of the rows from `first` up to `stop` are still there; None: all of them."""
    gone = deleted.between(first, stop) if deleted is not None else None
    if not gone:
        return None
    # Places that nothing was moved to are null: twenty times cheaper than looking rows up.
    places = pa.Array.from_buffers(pa.int64(), len(gone), [None, pa.py_buffer(gone)])
    offsets = pc.subtract(places, pa.scalar(first, pa.int64()))
    return pc.inverse_permutation(offsets, max_index=stop - first - 1).is_null()


def _column(batch: pa.RecordBatch, place: Place, name: str) -> pa.Array:
    match name:
        case "_file":
            return pa.repeat(pa.scalar(place.index, pa.int32()), batch.num_rows)
        case "_pos":
            return pa.arange(place.first, place.first + batch.num_rows)
        case _:
            derived = _derived(place, name, batch.num_rows)
            index = batch.schema.get_field_index(name)
            return derived if index < 0 else pc.coalesce(batch.column(index), derived)


def _derived(place: Place, name: str, rows: int) -> pa.Array:
    live = place.live
    if name == "_last_updated_sequence_number":
        return pa.repeat(pa.scalar(live.sequence_number, pa.int64()), rows)
    if live.first_row_id is None:
        return pa.nulls(rows, pa.int64())
    first = live.first_row_id + place.first
    return pa.arange(first, first + rows)


def numbers_of(positions: pa.Array) -> "array[int]":
    """Without numpy and without a Python number per row."""
    numbers: array[int] = array("Q")
    plain = positions.cast(pa.int64())
    start = plain.offset * 8
    numbers.frombytes(plain.buffers()[1].slice(start, len(plain) * 8))
    return numbers
