"""Ranges of one data file by way of the cache: blocks that are not there come from the store."""

import re
from itertools import groupby

from lakebed.storage.cache.blocks import BLOCK_BYTES, BlockCache
from lakebed.storage.objects.ranges import TAIL_BYTES, ObjectAt, Ranges, StoreRanges

# Names with a random part, given once: whatever else is in a bucket may come back with other bytes.
_GIVEN_ONCE = re.compile(
    r"(?:.*/)?data/(?:(?:[^/]+/)*[0-9a-f]{32}[^/]*|[0-9a-f]{32}/[^/]+)\.parquet"
)


def is_given_once(path: str) -> bool:
    """Whether the object of this path is a data file's, and the same for ever."""
    return _GIVEN_ONCE.fullmatch(path) is not None


def cached_ranges(at: ObjectAt, cache: BlockCache, size: int) -> Ranges:
    """`size` is what the rows of the table say; an object of another size is not cached."""
    start = max(0, size - TAIL_BYTES) // BLOCK_BYTES * BLOCK_BYTES
    blocks = CachedBlocks(cache, f"{at.uri}\n{size}", size)
    tail = blocks.between(start, size)
    if tail is None:
        found = StoreRanges(at, tail_bytes=size - start)
        if found.size != size:
            return found
        tail = found.tail
        if len(tail) == size - start:  # Azure sends no tail
            blocks.put(start, tail)
    return CachedRanges(at, blocks, tail)


class CachedBlocks:
    """What the cache has of one object."""

    def __init__(self, cache: BlockCache, name: str, size: int) -> None:
        self._cache = cache
        self._name = name
        self.size = size

    def get(self, number: int) -> bytes | None:
        size_bytes = min(BLOCK_BYTES, self.size - number * BLOCK_BYTES)
        return self._cache.get(self._name, number, size_bytes)

    def put(self, start: int, data: memoryview) -> None:
        """From the start of a block to the end of one, or of the object."""
        for offset in range(0, len(data), BLOCK_BYTES):
            block = data[offset : offset + BLOCK_BYTES]
            self._cache.put(self._name, (start + offset) // BLOCK_BYTES, block)

    def between(self, start: int, stop: int) -> memoryview | None:
        """Whole blocks, or None unless all of them are there."""
        found = [self.get(number) for number in range(start // BLOCK_BYTES, _blocks(stop))]
        whole = [block for block in found if block is not None]
        return memoryview(b"".join(whole)) if len(whole) == len(found) else None


class CachedRanges:
    def __init__(self, at: ObjectAt, blocks: CachedBlocks, tail: memoryview) -> None:
        self._at = at
        self._blocks = blocks
        self.size = blocks.size
        self.tail = tail

    def ahead(self, start: int, stop: int) -> tuple[int, int]:
        if stop - start >= BLOCK_BYTES:
            return start, stop
        return start // BLOCK_BYTES * BLOCK_BYTES, min(self.size, _blocks(stop) * BLOCK_BYTES)

    def fetch(self, start: int, stop: int) -> memoryview:
        first = start // BLOCK_BYTES
        found = {number: self._blocks.get(number) for number in range(first, _blocks(stop))}
        parts: list[bytes | memoryview] = []
        for is_missing, run in groupby(found, key=lambda number: found[number] is None):
            numbers = list(run)
            if is_missing:
                parts.append(self._missing(numbers[0], numbers[-1] + 1))
            else:
                parts.extend(block for number in numbers if (block := found[number]) is not None)
        whole = memoryview(b"".join(parts))
        return whole[start - first * BLOCK_BYTES : stop - first * BLOCK_BYTES]

    def _missing(self, first: int, end: int) -> memoryview:
        """Blocks side by side, in one request."""
        start, stop = first * BLOCK_BYTES, min(self.size, end * BLOCK_BYTES)
        data = self._at.fetch(start, stop)
        if len(data) == stop - start:
            self._blocks.put(start, data)
        return data


def _blocks(size: int) -> int:
    return -(-size // BLOCK_BYTES)
