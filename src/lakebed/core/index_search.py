"""Searches the index of files: by zones for chunks first, then in those, file by file."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from threading import Lock
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.core.index_keys import FIRST, HIGHEST, LAST, LOWEST, word_of
from lakebed.core.index_probe import (
    NANS,
    NULLS,
    VALUES,
    Among,
    Every,
    Holds,
    Probe,
    Range,
    Some,
)
from lakebed.meta import index
from lakebed.meta.index import Bounds, Extent, Zone
from lakebed.meta.store import Tx
from lakebed.model.ids import TableId

_PAGE_BYTES = 2 * 1024 * 1024  # of bounds held in memory, for each field of a predicate
_MOST_PAGES = 32
_WHOLE = 32  # chunks: where fewer can match, they are others every time
_KEPT = "pages of the index of files"
_Ordered = TypeVar("_Ordered", bytes, int)


def find_ids(tx: Tx, table_id: TableId, extent: Extent, probe: Probe) -> Iterator[list[int]]:
    """Ids of files that may match, in order and in pages; not all of them need be there."""
    search = _Search(tx, table_id, extent)
    chunks = sorted(search.chunks(probe))
    page = max(1, _PAGE_BYTES // (extent.width * 16))
    for at in range(0, len(chunks), page):
        yield search.files(probe, chunks[at : at + page])


class _Search:
    def __init__(self, tx: Tx, table_id: TableId, extent: Extent) -> None:
        self._tx = tx
        self._table_id = table_id
        self._width = extent.width
        self._all = frozenset(range(extent.chunks))
        self._zones: dict[int, dict[int, Zone]] = {}

    def chunks(self, probe: Probe) -> frozenset[int]:
        match probe:
            case Every(parts):
                return reduce(frozenset.intersection, map(self.chunks, parts), self._all)
            case Some(parts):
                return frozenset[int]().union(*map(self.chunks, parts))
            case Range(field_id, low, high, nans):
                least, most = low or FIRST, LAST if high is None else high
                return self._matching(
                    field_id,
                    lambda z: (
                        (z.low <= most and z.high >= least and bool(z.flags & VALUES))
                        or (nans and bool(z.flags & NANS))
                    ),
                )
            case Among(field_id, keys):
                return self._matching(
                    field_id,
                    lambda z: bool(z.flags & VALUES) and _is_between(keys, z.low, z.high),
                )
            case Holds(field_id, flags):
                return self._matching(field_id, lambda z: bool(z.flags & flags))

    def _matching(self, field_id: int, fits: Callable[[Zone], bool]) -> frozenset[int]:
        if field_id not in self._zones:
            self._zones[field_id] = index.list_zones(self._tx, self._table_id, field_id)
        zones = self._zones[field_id]
        # In a chunk without a zone anything can be; zones that came meanwhile are of the tail.
        return self._all - {chunk for chunk, zone in zones.items() if not fits(zone)}

    def files(self, probe: Probe, chunks: Sequence[int]) -> list[int]:
        page = _Page(self._tx, self._table_id, self._width, chunks)
        mask, width = page.mask(probe), self._width
        if mask is None:
            return []
        places = pc.indices_nonzero(mask).to_pylist()
        return [chunks[place // width] * width + place % width for place in places]


class _Column(NamedTuple):
    """What is known of one field in the chunks of a page."""

    prefixes: Sequence[bytes]  # by chunk
    flags: pa.Array  # by file, as the others
    lows: pa.Array
    highs: pa.Array


class _Page:
    """Some chunks, looked at together; None in place of a mask is one that nothing passes."""

    def __init__(self, tx: Tx, table_id: TableId, width: int, chunks: Sequence[int]) -> None:
        self._tx = tx
        self._table_id = table_id
        self._width = width
        self._chunks = chunks
        self._columns: dict[int, _Column] = {}
        self._anything = Bounds(
            b"",
            bytes([NULLS | NANS | VALUES]) * width,
            LOWEST.to_bytes(8, "little") * width,
            HIGHEST.to_bytes(8, "little") * width,
        )

    def mask(self, probe: Probe) -> pa.BooleanArray | None:
        match probe:
            case Every(parts):
                return self._every(parts)
            case Some(parts):
                masks = [m for m in map(self.mask, parts) if m is not None]
                return reduce(pc.or_, masks) if masks else None
            case Range():
                return self._range(probe)
            case Among():
                return self._among(probe)
            case Holds(field_id, flags):
                return self._holds(field_id, flags)

    def _every(self, parts: Sequence[Probe]) -> pa.BooleanArray | None:
        found: pa.BooleanArray | None = None
        for part in parts:
            mask = self.mask(part)
            found = mask if found is None or mask is None else pc.and_(found, mask)
            if found is None or not found.true_count:
                return None
        if parts:
            return found
        return pa.repeat(pa.scalar(True), self._width * len(self._chunks))

    def _known(self, field_id: int) -> _Column:
        if field_id not in self._columns:
            if len(self._chunks) < _WHOLE:
                self._columns[field_id] = self._load(field_id)
            else:
                kept = self._tx.keep(_KEPT, _Pages)
                key = (self._table_id, self._width, field_id, *self._chunks)
                self._columns[field_id] = kept.get(key, lambda: self._load(field_id))
        return self._columns[field_id]

    def _load(self, field_id: int) -> _Column:
        found = index.get_bounds(self._tx, self._table_id, field_id, self._chunks)
        known = [found.get(c, self._anything) for c in self._chunks]
        return _Column(
            [b.prefix for b in known],
            self._array([b.flags for b in known], pa.uint8()),
            self._array([b.lows for b in known], pa.uint64()),
            self._array([b.highs for b in known], pa.uint64()),
        )

    def _range(self, probe: Range) -> pa.BooleanArray:
        known = self._known(probe.field_id)
        masks, at = [], 0
        for (least, most), files in self._runs(probe, known.prefixes):
            lows, highs = known.lows.slice(at, files), known.highs.slice(at, files)
            mask: pa.BooleanArray | None = None
            if most < HIGHEST:
                mask = pc.less_equal(lows, pa.scalar(most, pa.uint64()))
            if least > LOWEST or mask is None:
                above = pc.greater_equal(highs, pa.scalar(least, pa.uint64()))
                mask = above if mask is None else pc.and_(mask, above)
            masks.append(mask)
            at += files
        found = masks[0] if len(masks) == 1 else pa.concat_arrays(masks)
        return pc.or_(found, self._holds(probe.field_id, NANS)) if probe.nans else found

    def _runs(
        self, probe: Range, prefixes: Sequence[bytes]
    ) -> Iterator[tuple[tuple[int, int], int]]:
        """Files that follow each other and are asked for the same words, with their number."""
        words = {prefix: _words(probe, prefix) for prefix in set(prefixes)}
        for asked, run in groupby(prefixes, words.__getitem__):
            yield asked, self._width * sum(1 for _ in run)

    def _among(self, probe: Among) -> pa.BooleanArray:
        """File by file: it takes half a microsecond for each."""
        known = self._known(probe.field_id)
        lows, highs = (memoryview(a.buffers()[1]).cast("Q") for a in (known.lows, known.highs))
        found: list[bool] = []
        for prefix, run in groupby(known.prefixes):
            words = _words_of(probe.keys, prefix)
            stop = len(found) + self._width * sum(1 for _ in run)
            found += [_is_between(words, lows[n], highs[n]) for n in range(len(found), stop)]
        return pa.array(found, pa.bool_())

    def _holds(self, field_id: int, wanted: int) -> pa.BooleanArray:
        flags = self._known(field_id).flags
        held = pc.bit_wise_and(flags, pa.scalar(wanted, pa.uint8()))
        return pc.not_equal(held, pa.scalar(0, pa.uint8()))

    def _array(self, parts: Sequence[bytes], kind: pa.DataType) -> pa.Array:
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        length = len(parts) * self._width
        return pa.Array.from_buffers(kind, length, [None, pa.py_buffer(body)])


class _Pages:
    """Bounds of whole pages, the last used: they never change. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pages: dict[tuple[int, ...], _Column] = {}

    def get(self, key: tuple[int, ...], load: Callable[[], _Column]) -> _Column:
        with self._lock:
            found = self._pages.pop(key, None)
        found = load() if found is None else found
        with self._lock:
            self._pages[key] = found
            while len(self._pages) > _MOST_PAGES:
                del self._pages[next(iter(self._pages))]
        return found


def _is_between(those: Sequence[_Ordered], low: _Ordered, high: _Ordered) -> bool:
    """Is one of those, which are in order, from low to high?"""
    at = bisect_left(those, low)
    return at < len(those) and those[at] <= high


def _words_of(keys: Sequence[bytes], prefix: bytes) -> list[int]:
    """In order, as the keys are; of those without the prefix one stands for all."""
    start, stop = bisect_left(keys, prefix), bisect_left(keys, prefix + LAST)
    within = [word_of(key, prefix) for key in keys[start:stop]]
    return [LOWEST] * (start > 0) + within + [HIGHEST] * (stop < len(keys))


def _words(probe: Range, prefix: bytes) -> tuple[int, int]:
    """Numbers have no prefix, so that one pair does for all chunks."""
    least = LOWEST if probe.low is None else word_of(probe.low, prefix)
    most = HIGHEST if probe.high is None else word_of(probe.high, prefix)
    return least, most
