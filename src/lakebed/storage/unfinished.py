"""A local file on its way: written under a temporary name, then whole and durable, or discarded.

The name is hidden and unique, so that neither readers nor other writers ever meet it.
"""

import errno
import os
from types import TracebackType
from typing import Self

from lakebed.storage.base import UNFINISHED_PREFIX
from lakebed.storage.folders import sync_folder

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}


class Unfinished:
    """What a `with` block does not finish is discarded."""

    def __init__(self, target: str) -> None:
        self._target = target
        self.folder = os.path.dirname(target)
        self._source = f"{self.folder}/{UNFINISHED_PREFIX}{os.urandom(16).hex()}"
        self._file = os.open(self._source, _NEW, 0o666)
        self._open = True
        self._gone = False

    def write(self, data: bytes | bytearray | memoryview) -> int:
        rest = memoryview(data).cast("B")
        size_bytes = rest.nbytes
        while rest:
            rest = rest[os.write(self._file, rest) :]
        return size_bytes

    def finish(self, *, modified_ms: int | None = None) -> bool:
        """Make the file durable and give it its name, or return False if that is taken."""
        with self:
            self.settle(modified_ms)
            won = self.take_name()
        # The loser syncs too: the winner may not have come so far, and callers rely on its file.
        sync_folder(self.folder)
        return won

    def replace(self) -> None:
        """Give the file its name, in place of what had it."""
        with self:
            self.settle()
            self.take_over_name()
        sync_folder(self.folder)

    def settle(self, modified_ms: int | None = None) -> None:
        """Make the bytes durable: nothing is written afterwards."""
        if not self._open:
            return
        if modified_ms is not None:
            modified_ns = modified_ms * 1_000_000
            os.utime(self._source, ns=(modified_ns, modified_ns))
        os.fsync(self._file)
        self._close()

    def take_name(self) -> bool:
        """Show a settled file under its name, or return False if that is taken."""
        won = _link(self._source, self._target)
        self.discard()
        return won

    def take_over_name(self) -> None:
        """The same, in place of what had the name."""
        os.replace(self._source, self._target)
        self._gone = True

    def discard(self) -> None:
        if self._gone:
            return
        self._gone = True
        # Failing to tidy up must not hide how the write itself ended.
        try:
            self._close()
            os.unlink(self._source)
        except OSError:
            return

    def _close(self) -> None:
        if self._open:
            self._open = False
            os.close(self._file)

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


def _link(source: str, target: str) -> bool:
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        return _claim(source, target)
    return True


def _claim(source: str, target: str) -> bool:
    """Without hard links: create the name empty, which only one can, then move the file onto it.

    Readers may meet the empty file for a moment, and a crash in between leaves it.
    """
    try:
        os.close(os.open(target, _NEW, 0o666))
    except FileExistsError:
        return False
    try:
        os.replace(source, target)
    except OSError:
        os.unlink(target)
        raise
    return True
