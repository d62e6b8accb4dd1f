"""Reads of one object by range: the tail comes with the size, small reads are made larger."""

import io

import obstore
from obstore.exceptions import GenericError, NotSupportedError

from lakebed.storage.objects.connect import Client
from lakebed.storage.objects.failures import Failures
from lakebed.storage.place import Place

# Most Parquet footers, and small files whole, come with the request that tells the size.
_TAIL_BYTES = 64 << 10
# One more megabyte costs less than one more request.
_AHEAD_BYTES = 1 << 20


class RangeReader(io.RawIOBase):
    """Random access for Arrow, which calls from one thread at a time."""

    def __init__(self, client: Client, key: str, path: str, place: Place) -> None:
        self._client = client
        self._key = key
        self._path = path
        self._place = place
        self._position = 0
        with self._failures():
            self.size, self._tail = _opened(client, key)
        self._tail_start = self.size - len(self._tail)
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
            return bytes(self._tail[start - self._tail_start : stop - self._tail_start])
        return self._between(start, stop)

    def _between(self, start: int, stop: int) -> bytes:
        if not self._holds(start, stop):
            if stop - start >= _AHEAD_BYTES:
                return bytes(self._fetched(start, stop))
            self._ahead = self._fetched(start, min(self.size, start + _AHEAD_BYTES))
            self._ahead_start = start
        return bytes(self._ahead[start - self._ahead_start : stop - self._ahead_start])

    def _holds(self, start: int, stop: int) -> bool:
        return self._ahead_start <= start and stop <= self._ahead_start + len(self._ahead)

    def _fetched(self, start: int, stop: int) -> memoryview:
        with self._failures():
            return memoryview(obstore.get_range(self._client, self._key, start=start, end=stop))

    def _failures(self) -> Failures:
        return Failures("read", self._path, self._place)


def _opened(client: Client, key: str) -> tuple[int, memoryview]:
    """The object's size and its last bytes."""
    try:
        answer = obstore.get(client, key, options={"range": {"suffix": _TAIL_BYTES}})
    except (GenericError, NotSupportedError):
        # Azure has no ranges from the end, and an empty object has no range at all.
        return obstore.head(client, key)["size"], memoryview(b"")
    return answer.meta["size"], memoryview(answer.bytes())
