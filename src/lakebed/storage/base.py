"""The storage seam: what every place for bytes must offer, and which paths it accepts.

Objects are immutable once written; only hints are replaced. Folders are not objects.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import unquote

import pyarrow as pa

from lakebed.model.errors import InvalidName

# The dot hides unfinished files from Delta, Iceberg and Spark readers of the same folder.
UNFINISHED_PREFIX = ".tmp-"
# Nearly all paths are such: safe in any reading, without a look at each part.
_PLAIN = re.compile(r"(?:[\w=-][\w=.-]*/)*[\w=-][\w=.-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Stat:
    path: str
    size_bytes: int
    modified_ms: int


class Output(Protocol):
    """A file being written: nobody sees it before `close`. A `with` block that fails aborts it.

    It serves as the sink of a `pyarrow.parquet.ParquetWriter`, which leaves closing to the caller.
    """

    @property
    def closed(self) -> bool: ...

    def write(self, data: bytes | bytearray | memoryview, /) -> int: ...

    def tell(self) -> int: ...

    def flush(self) -> None: ...

    def close(self) -> None:
        """Make the file durable and visible; StorageError if the path was taken meanwhile."""

    def abort(self) -> None:
        """Leave nothing behind."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class Bundle(Protocol):
    """Files that belong together: put in an order in which each may name those before it."""

    def location(self, path: str) -> str: ...

    def get(self, path: str) -> bytes:
        """What stands there; a file of this bundle may not stand there yet."""

    def put_if_absent(self, path: str, data: bytes, *, modified_ms: int | None = None) -> bool:
        """False: something is there already, durably, and nothing was changed."""

    def replace(self, path: str, data: bytes) -> None: ...


class Storage(Protocol):
    """Bytes under one warehouse root; paths are relative, '/'-separated, never leave the root."""

    @property
    def root_uri(self) -> str:
        """What the lake remembers; `open_storage` finds the same bytes by it."""

    def location(self, path: str) -> str:
        """The absolute place other engines open; "" is the root."""

    def get(self, path: str) -> bytes: ...

    def open_input(self, path: str, *, size_bytes: int | None = None) -> pa.NativeFile:
        """Random access to one object.

        Whoever names the size it must have takes it from a cache too; all others see the store.
        """

    def open_output(self, path: str) -> Output:
        """Start a new object; StorageError if the path is taken."""

    def put_if_absent(self, path: str, data: bytes, *, modified_ms: int | None = None) -> bool:
        """False: something is there already, durably, and nothing was changed."""

    def replace(self, path: str, data: bytes) -> None:
        """For hints only: readers see the old bytes or the new ones."""

    def bundle(self, named: Callable[[str], None]) -> AbstractContextManager[Bundle]:
        """All that is put is there, durably, when the block ends well; it appears in its order.

        `named` is called with each path once its file can be seen: at the latest at the end, where
        one sync serves them all.
        """

    def list(self, prefix: str) -> Iterator[Stat]:
        """Every finished object below the folder `prefix` ("" is the root), sorted by path."""

    def stat(self, path: str) -> Stat | None: ...

    def delete(self, path: str) -> None:
        """Remove one object; a missing one is fine."""

    def delete_folder(self, path: str) -> None:
        """Remove everything below a path, unfinished writes too; a missing one is fine."""


def safe_path(path: str) -> str:
    """The path as given, or InvalidName if it could leave the root in any reading of it."""
    if _PLAIN.fullmatch(path):
        return path
    if path.startswith("/"):
        raise _unsafe(path, "it is absolute")
    for part in path.split("/"):
        if not is_safe_name(part):
            raise _unsafe(path, f"the part {part!r} is not allowed")
    return path


def safe_prefix(prefix: str) -> str:
    """Like `safe_path`, and "" for the root."""
    return safe_path(prefix) if prefix else ""


def is_safe_name(name: str) -> bool:
    """Whether a file or folder of this name can be addressed by a path."""
    if not name or name.startswith(UNFINISHED_PREFIX) or "\0" in name or "\\" in name:
        return False
    if not name.isascii() and not _encodes(name):
        return False
    return not any(part in (".", "..") for part in _decoded(name).split("/"))


def _decoded(name: str) -> str:
    # Readers of published paths decode them, some of them twice.
    while "%" in name and (decoded := unquote(name)) != name:
        name = decoded
    return name.replace("\\", "/")


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unsafe(path: str, reason: str) -> InvalidName:
    return InvalidName(
        f"{path!r} is not a path below the warehouse root: {reason}",
        hint="Use a relative path with '/' between non-empty parts, and no '.', '..', backslash or "
        f"NUL (percent-encoded or not); names that begin with {UNFINISHED_PREFIX!r} are reserved.",
        path=path,
    )
