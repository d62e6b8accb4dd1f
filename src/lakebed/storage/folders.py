"""Folders of a local warehouse: made durably, remembered once made, never reached through links."""

import errno
import os
from pathlib import Path

from lakebed.model.errors import InvalidName

# Windows cannot open a folder; its file systems journal the entry themselves.
_CAN_SYNC = hasattr(os, "O_DIRECTORY")
_SYNC_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP}


class Folders:
    """Knows which folders this process has made durable, so that a small write pays only once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: set[Path] = set()

    def make(self, folder: Path) -> None:
        """Make the folder and its parents, durably; free once known."""
        if folder in self._known:
            return
        if folder == self._root:
            _make_root(folder)
        else:
            self.make(folder.parent)
            _refuse_link(folder)
            _make_one(folder)
            # Also when the folder stood already: whoever made it may not have synced it yet.
            sync_folder(folder.parent)
        self._known.add(folder)

    def forget(self) -> None:
        """Somebody removed a folder by hand: believe nothing."""
        self._known.clear()

    def refuse_links(self, folder: Path) -> None:
        """InvalidName if a folder on the way down from the root is a link."""
        while folder != self._root and folder not in self._known:
            _refuse_link(folder)
            folder = folder.parent


def sync_folder(folder: Path) -> None:
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


def _make_root(folder: Path) -> None:
    """Like `mkdir -p`, durably; what stands above the root already is the user's."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        _make_root(folder.parent)
    _make_one(folder)
    sync_folder(folder.parent)


def _make_one(folder: Path) -> None:
    try:
        folder.mkdir()
    except FileExistsError as error:
        if not folder.is_dir():
            reason = os.strerror(errno.ENOTDIR)
            raise NotADirectoryError(errno.ENOTDIR, reason, str(folder)) from error


def _refuse_link(folder: Path) -> None:
    if folder.is_symlink():
        raise InvalidName(
            f"{str(folder)!r} is a symbolic link; folders below the warehouse root must be real",
            hint="Replace the link by a folder, or mount the other disk there.",
            path=str(folder),
        )
