"""A local file on its way: written under a temporary name, then whole and durable, or discarded.

The name is hidden and unique, so that neither readers nor other writers ever meet it.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from lakebed.storage.base import UNFINISHED_PREFIX
from lakebed.storage.folders import sync_folder

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}


class Unfinished:
    """What a `with` block does not finish is discarded."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._source = target.with_name(UNFINISHED_PREFIX + uuid4().hex)
        self._file = self._source.open("xb", buffering=0)
        self._gone = False

    def write(self, data: bytes | bytearray | memoryview) -> int:
        rest = memoryview(data).cast("B")
        size_bytes = rest.nbytes
        while rest:
            rest = rest[self._file.write(rest) :]
        return size_bytes

    def finish(self, *, modified_ms: int | None = None) -> bool:
        """Give the file its name, or return False if that is taken."""
        with self:
            self._settle(modified_ms)
            won = _link(self._source, self._target)
        # The loser syncs too: the winner may not have come so far, and callers rely on its file.
        sync_folder(self._target.parent)
        return won

    def replace(self) -> None:
        """Give the file its name, in place of what had it."""
        with self:
            self._settle(None)
            self._source.replace(self._target)
            self._gone = True
        sync_folder(self._target.parent)

    def discard(self) -> None:
        if self._gone:
            return
        self._gone = True
        # Failing to tidy up must not hide how the write itself ended.
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._source.unlink()

    def _settle(self, modified_ms: int | None) -> None:
        if modified_ms is not None:
            modified_ns = modified_ms * 1_000_000
            os.utime(self._source, ns=(modified_ns, modified_ns))
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.discard()


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        return _claim(source, target)
    return True


def _claim(source: Path, target: Path) -> bool:
    """Without hard links: create the name empty, which only one can, then move the file onto it.

    Readers may meet the empty file for a moment, and a crash in between leaves it.
    """
    try:
        target.open("xb").close()
    except FileExistsError:
        return False
    try:
        source.replace(target)
    except OSError:
        target.unlink()
        raise
    return True
