"""The one Output: whatever it is kept in meanwhile, a file appears whole or not at all."""

from types import TracebackType
from typing import Protocol, Self

from lakebed.model.errors import StorageError
from lakebed.storage.failures import failures


class Draft(Protocol):
    """Where the bytes of an unfinished file are kept; nobody else sees it."""

    def write(self, data: bytes | bytearray | memoryview) -> int: ...

    def finish(self) -> bool:
        """Make the bytes the file, or return False if its path is taken; the draft is gone."""

    def discard(self) -> None: ...


class WholeOutput:
    def __init__(self, path: str, draft: Draft) -> None:
        self._path = path
        self._draft = draft
        self._size_bytes = 0
        self._broken = False
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        if self._closed:
            raise ValueError(f"write to a closed file: {self._path!r}")
        if self._broken:
            raise _broken(self._path)
        # Until the bytes are down the file has a hole, and nothing may follow or finish it.
        self._broken = True
        with failures("write", self._path):
            size_bytes = self._draft.write(data)
        self._broken = False
        self._size_bytes += size_bytes
        return size_bytes

    def tell(self) -> int:
        return self._size_bytes

    def flush(self) -> None:
        """Nothing is buffered here; `close` is what makes the file durable."""

    def close(self) -> None:
        if self._closed:
            return
        if self._broken:
            self.abort()
            raise _broken(self._path)
        self._closed = True
        with failures("write", self._path):
            finished = self._draft.finish()
        if not finished:
            raise taken(self._path)

    def abort(self) -> None:
        if not self._closed:
            self._closed = True
            self._draft.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def taken(path: str) -> StorageError:
    return StorageError(
        f"cannot write {path!r}: something is there already, and files are never overwritten",
        hint="Choose a new file name.",
        path=path,
    )


def _broken(path: str) -> StorageError:
    return StorageError(
        f"cannot finish {path!r}: an earlier write to it failed; nothing was kept",
        hint="Write the whole file again.",
        path=path,
    )
