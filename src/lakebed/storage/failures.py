"""The one translation of operating-system errors into errors of the lake."""

import errno
import os
from types import TracebackType
from typing import Literal

from lakebed.model.errors import (
    InvalidName,
    ObjectMissing,
    StorageError,
    StorageFull,
    StorageReadOnly,
)

Action = Literal["read", "write", "delete"]
_FULL = (
    StorageFull,
    "Free some space (`lakebed vacuum` helps) or raise the quota or size limit, then try again.",
)
_NOT_WRITABLE = (
    StorageReadOnly,
    "Give this user write permission to the warehouse folder, or run as its owner.",
)
_MISSING = (
    ObjectMissing,
    "It was removed or never written; `lakebed check` names every file a table has lost.",
)

_WRITING = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: (StorageReadOnly, "Mount the file system of the warehouse writable."),
    errno.EACCES: _NOT_WRITABLE,
    errno.EPERM: _NOT_WRITABLE,
    errno.ENOENT: _MISSING,
    errno.ENOTDIR: (StorageError, "Move away the file that stands where a folder is needed."),
    errno.ENAMETOOLONG: (InvalidName, "Use a shorter namespace, table or partition value."),
}

_NOT_READABLE = (
    StorageError,
    "Give this user read permission to the warehouse folder, or run as its owner.",
)
_READING = _WRITING | {
    errno.EACCES: _NOT_READABLE,
    errno.EPERM: _NOT_READABLE,
    # Folders are not objects, and nothing lies below an object.
    errno.ENOTDIR: _MISSING,
    errno.EISDIR: _MISSING,
}

_OTHER = (StorageError, "Check the disk or mount that holds the warehouse, then try again.")


def failures(action: Action, path: str) -> "Failures":
    """Whatever the operating system refuses inside becomes a StorageError or InvalidName."""
    return Failures(action, path)


class Failures:
    """A class and no generator: every look at a file passes through it."""

    __slots__ = ("_action", "_path")

    def __init__(self, action: Action, path: str) -> None:
        self._action = action
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        if not isinstance(error, OSError):
            return
        table = _READING if self._action == "read" else _WRITING
        found, hint = table.get(error.errno or 0, _OTHER)
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"cannot {self._action} {self._path!r}: {reason}"
        raise found(message, hint=hint, path=self._path) from error
