"""Folders of a local warehouse: made durably, remembered once made, never reached through links."""

import errno
import os
import stat

from lakebed.model.errors import InvalidName

# Windows cannot open a folder; its file systems journal the entry themselves.
_CAN_SYNC = hasattr(os, "O_DIRECTORY")
_SYNC_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP}


class Folders:
    """Knows which folders this process has made durable, so that a small write pays only once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: set[str] = set()

    def make(self, folder: str) -> None:
        """Make the folder and its parents, durably; free once known."""
        if folder in self._known:
            return
        if folder == self._root:
            _make_root(folder)
        else:
            parent = os.path.dirname(folder)
            self.make(parent)
            _make_real(folder)
            # Also when the folder stood already: whoever made it may not have synced it yet.
            sync_folder(parent)
        self._known.add(folder)

    def forget(self) -> None:
        """Somebody removed a folder by hand: believe nothing."""
        self._known.clear()

    def refuse_links(self, folder: str) -> None:
        """InvalidName if a folder on the way down from the root is a link."""
        while folder != self._root and folder not in self._known:
            if os.path.islink(folder):
                raise _linked(folder)
            folder = os.path.dirname(folder)


def sync_folder(folder: str) -> None:
    """Make new names in the folder survive a power cut."""
    if not _CAN_SYNC:
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems sync names by themselves and refuse the call.
        if error.errno not in _SYNC_UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def _make_root(folder: str) -> None:
    """Like `mkdir -p`, durably; what stands above the root already is the user's."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    if parent != folder:
        _make_root(parent)
    _make_one(folder)
    sync_folder(parent)


def _make_one(folder: str) -> None:
    try:
        os.mkdir(folder)
    except FileExistsError as error:
        if not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from error


def _make_real(folder: str) -> None:
    """One look suffices for a folder that stands; a link to one is refused."""
    try:
        found = os.lstat(folder).st_mode
    except FileNotFoundError:
        _make_one(folder)
        return
    if stat.S_ISLNK(found):
        raise _linked(folder)
    if not stat.S_ISDIR(found):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)


def _linked(folder: str) -> InvalidName:
    return InvalidName(
        f"{folder!r} is a symbolic link; folders below the warehouse root must be real",
        hint="Replace the link by a folder, or mount the other disk there.",
        path=folder,
    )
