"""Random access to one object, for Arrow; small reads are made larger."""

import io

from lakebed.storage.objects.ranges import Ranges


class RangeReader(io.RawIOBase):
    """Called from one thread at a time."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self.size = ranges.size
        self._position = 0
        self._tail_start = self.size - len(ranges.tail)
        self._ahead = memoryview(b"")
        self._ahead_start = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        start = self._position
        stop = self.size if size < 0 else min(self.size, start + size)
        if stop <= start:
            return b""
        self._position = stop
        if start >= self._tail_start:
            return bytes(self._ranges.tail[start - self._tail_start : stop - self._tail_start])
        return self._between(start, stop)

    def _between(self, start: int, stop: int) -> bytes:
        if not self._holds(start, stop):
            ahead_start, ahead_stop = self._ranges.ahead(start, stop)
            found = self._ranges.fetch(ahead_start, ahead_stop)
            if (ahead_start, ahead_stop) == (start, stop):
                return bytes(found)
            self._ahead, self._ahead_start = found, ahead_start
        return bytes(self._ahead[start - self._ahead_start : stop - self._ahead_start])

    def _holds(self, start: int, stop: int) -> bool:
        return self._ahead_start <= start and stop <= self._ahead_start + len(self._ahead)
