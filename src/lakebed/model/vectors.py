"""Deletion vectors: which rows of a data file are gone, by position. Sole owner of pyroaring."""

import struct
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from pyroaring import BitMap64

from lakebed.model.errors import DataCorrupt
from lakebed.model.ids import SnapshotId, VectorId

_MAGIC = struct.pack("<I", 1681511377)
# A vector up to this size stands in Delta's log itself; a larger one in a file of its commit.
INLINE_BYTES = 8 * 1024
FRAME_BYTES = 8  # length and checksum of a blob around its payload
_PUFFIN_FIRST = 4  # after the magic of a Puffin file
# DuckDB's Iceberg reader (to 1.5.5) may read on from one vector to something it read before, when
# what lies between is not longer, and then takes that vector for each one it read on over. It never
# does so when vectors grow along the file and a byte lies between any two.
_PUFFIN_GAP = 1
_DELTA_FIRST = 1  # after the version byte of Delta's file


class Positions:
    """A set of row positions; never changed once made."""

    __slots__ = ("bits",)

    def __init__(self, positions: Iterable[int] = ()) -> None:
        """Fastest from an `array('Q')`."""
        self.bits = positions if isinstance(positions, BitMap64) else BitMap64(positions)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """From the portable form of 64-bit Roaring bitmaps."""
        try:
            return cls(BitMap64.deserialize(data))
        except ValueError as error:
            raise DataCorrupt(
                "a deletion vector is no Roaring bitmap", hint="run `lakebed check`"
            ) from error

    def to_bytes(self) -> bytes:
        bits = self.bits.copy()
        bits.run_optimize()
        return bytes(bits.serialize())

    def __len__(self) -> int:
        return len(self.bits)

    def __contains__(self, position: int) -> bool:
        return position in self.bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Positions) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __or__(self, other: "Positions") -> "Positions":
        return Positions(self.bits | other.bits)

    def __sub__(self, other: "Positions") -> "Positions":
        return Positions(self.bits - other.bits)

    def others(self, record_count: int) -> "Positions":
        """The positions of a file of so many rows that are not among these."""
        return Positions(BitMap64(range(record_count)) - self.bits)

    def covers(self, first: int, stop: int) -> bool:
        """Are all positions from `first` up to `stop`, which is left out, among these?"""
        return first < stop and self.bits.contains_range(first, stop)

    def overlaps(self, other: "Positions") -> bool:
        return self.bits.intersect(other.bits)

    def last(self) -> int:
        return int(self.bits.max())

    def to_array(self) -> "array[int]":
        """All of them in order, as unsigned 64-bit numbers."""
        return self.bits.to_array()

    def between(self, first: int, stop: int) -> "array[int]":
        """Those from `first` up to `stop`, which is left out."""
        return (self.bits & BitMap64(range(first, stop))).to_array()


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """One file's deleted positions as a commit left them; the bitmap itself is kept apart.

    The offsets are those of its blob in the files both formats write for its snapshot.
    """

    id: VectorId
    cardinality: int
    size_bytes: int  # of the payload: magic and bitmap
    sequence_number: int
    snapshot_id: SnapshotId
    delta_offset: int | None  # None: inline in the log
    puffin_offset: int


def payload_of(bitmap: bytes) -> bytes:
    """What both formats hold of a vector, and what a Delta log holds inline."""
    return _MAGIC + bitmap


def blob_of(bitmap: bytes) -> bytes:
    """The payload with its length before and its checksum after it, the same in both formats."""
    payload = payload_of(bitmap)
    return struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))


def positions_of(payload: bytes) -> Positions:
    """The reverse of `payload_of`."""
    if payload[: len(_MAGIC)] != _MAGIC:
        raise _damaged("it does not begin as one")
    return Positions.from_bytes(payload[len(_MAGIC) :])


def positions_in(blob: bytes) -> Positions:
    """The reverse of `blob_of`."""
    payload = blob[4:-4]
    if len(blob) < 8 or blob[:4] != struct.pack(">I", len(payload)):
        raise _damaged("its length is wrong")
    if blob[-4:] != struct.pack(">I", zlib.crc32(payload)):
        raise _damaged("its checksum is wrong")
    return positions_of(payload)


def _damaged(why: str) -> DataCorrupt:
    return DataCorrupt(f"a deletion vector is damaged: {why}", hint="run `lakebed check`")


def place_vectors(
    deleted: Iterable[tuple[bytes, int]],
    first: VectorId,
    *,
    sequence_number: int,
    snapshot_id: SnapshotId,
) -> list[DeletionVector]:
    """Vectors of one snapshot from (bitmap, cardinality), the smallest first, as its files hold
    them."""
    placed = []
    delta, puffin = _DELTA_FIRST, _PUFFIN_FIRST
    for number, (bitmap, cardinality) in enumerate(deleted):
        size = len(_MAGIC) + len(bitmap)
        inline = size <= INLINE_BYTES
        placed.append(
            DeletionVector(
                id=VectorId(first + number),
                cardinality=cardinality,
                size_bytes=size,
                sequence_number=sequence_number,
                snapshot_id=snapshot_id,
                delta_offset=None if inline else delta,
                puffin_offset=puffin,
            )
        )
        framed = size + FRAME_BYTES
        puffin += framed + _PUFFIN_GAP
        delta += 0 if inline else framed
    return placed
