"""Ranges of one object, straight from the store; the tail comes with the size."""

from dataclasses import dataclass
from typing import Protocol

import obstore
from obstore.exceptions import GenericError, NotSupportedError

from lakebed.storage.objects.connect import Client
from lakebed.storage.objects.failures import Failures
from lakebed.storage.place import Place

# Most Parquet footers, and small files whole, come with the request that tells the size.
TAIL_BYTES = 64 << 10
# One more megabyte costs less than one more request.
_AHEAD_BYTES = 1 << 20


class Ranges(Protocol):
    size: int
    tail: memoryview

    def ahead(self, start: int, stop: int) -> tuple[int, int]:
        """What to fetch when these bytes are asked for: them, or more to keep for the next read."""

    def fetch(self, start: int, stop: int) -> memoryview: ...


@dataclass(frozen=True, slots=True)
class ObjectAt:
    """One object of a store; what is refused is told with its path."""

    client: Client
    key: str
    path: str
    place: Place

    @property
    def uri(self) -> str:
        return f"{self.place.uri}/{self.path}"

    def open(self, tail_bytes: int) -> tuple[int, memoryview]:
        """The object's size and its last bytes."""
        with Failures("read", self.path, self.place):
            try:
                answer = obstore.get(
                    self.client, self.key, options={"range": {"suffix": tail_bytes}}
                )
            except (GenericError, NotSupportedError):
                # Azure has no ranges from the end, and an empty object has no range at all.
                return obstore.head(self.client, self.key)["size"], memoryview(b"")
            return answer.meta["size"], memoryview(answer.bytes())

    def fetch(self, start: int, stop: int) -> memoryview:
        with Failures("read", self.path, self.place):
            return memoryview(obstore.get_range(self.client, self.key, start=start, end=stop))


class StoreRanges:
    def __init__(self, at: ObjectAt, *, tail_bytes: int = TAIL_BYTES) -> None:
        self._at = at
        self.size, self.tail = at.open(tail_bytes)

    def ahead(self, start: int, stop: int) -> tuple[int, int]:
        return start, min(self.size, max(stop, start + _AHEAD_BYTES))

    def fetch(self, start: int, stop: int) -> memoryview:
        return self._at.fetch(start, stop)
