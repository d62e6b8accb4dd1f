"""Deletion vectors as a condition of DuckDB: bits that a scan looks into by position.

A join against the deleted positions would hide from the optimizer how many rows a table has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.files import LiveFile
from lakebed.model.vectors import Positions

# DuckDB copies a constant for every 2,048 rows, and makes a state for every part of a condition.
_PIECE_BITS = 1 << 20
_MOST_PIECES = 32

Keep = Callable[[bytes], str]  # keeps bits for the session, gives the SQL that reads them


@dataclass(frozen=True, slots=True)
class Gone:
    """The deleted rows of files that one scan reads; file n has the bits from `n * stride`."""

    positions: tuple[Positions, ...]
    stride: int

    def condition(self, keep: Keep) -> str:
        """TRUE for rows that are still there, in terms of `file_index` and `file_row_number`."""
        place = "file_row_number"
        if len(self.positions) > 1:
            place = f"(CAST(file_index AS BIGINT) * {self.stride} + file_row_number)"
        total = len(self.positions) * self.stride
        pieces = [
            _piece(self._bits(first, min(first + _PIECE_BITS, total)), place, first, keep)
            for first in range(0, total, _PIECE_BITS)
        ]
        return _choice(pieces, place, 0, len(pieces))

    def _bits(self, first: int, stop: int) -> bytes | None:
        """One bit per row, the highest of a byte first; None if no row is gone."""
        parts = [self._offsets(n, first, stop) for n in self._files(first, stop)]
        offsets = pa.concat_arrays(parts)
        if not len(offsets):
            return None
        # Arrow's bits begin with the lowest of a byte.
        flipped = pc.bit_wise_xor(offsets, pa.scalar(7, pa.int64()))
        found = pc.inverse_permutation(flipped, max_index=stop - first - 1).is_valid()
        return bytes(found.buffers()[1][: (stop - first) // 8])

    def _files(self, first: int, stop: int) -> range:
        return range(first // self.stride, -(-stop // self.stride))

    def _offsets(self, number: int, first: int, stop: int) -> pa.Array:
        start = number * self.stride
        gone = self.positions[number].between(max(first - start, 0), stop - start)
        places = pa.Array.from_buffers(pa.int64(), len(gone), [None, pa.py_buffer(gone)])
        return pc.add(places, pa.scalar(start - first, pa.int64()))


def stride_of(live: LiveFile) -> int:
    """Bits per file: a power of two, so that pieces begin where files do."""
    return max(8, 1 << (live.file.record_count - 1).bit_length())


def most_files(stride: int) -> int:
    """How many files of this stride one scan may read."""
    return max(1, _MOST_PIECES * _PIECE_BITS // stride)


def _piece(bits: bytes | None, place: str, first: int, keep: Keep) -> str:
    if bits is None:
        return "TRUE"
    return f"get_bit({keep(bits)}, CAST({place} - {first} AS INTEGER)) = 0"


def _choice(pieces: Sequence[str], place: str, low: int, high: int) -> str:
    if high - low == 1:
        return pieces[low]
    middle = (low + high) // 2
    below, above = _choice(pieces, place, low, middle), _choice(pieces, place, middle, high)
    limit = middle * _PIECE_BITS
    return f"CASE WHEN {place} < {limit} THEN {below} ELSE {above} END"
