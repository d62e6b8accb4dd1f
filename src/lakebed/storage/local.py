"""A warehouse in a local folder; a write that returned survives a power cut."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from lakebed.storage.base import Output, Stat, is_safe_name, safe_path, safe_prefix
from lakebed.storage.failures import failures
from lakebed.storage.folders import Folders, sync_folder
from lakebed.storage.local_bundle import LocalBundle
from lakebed.storage.output import WholeOutput, taken
from lakebed.storage.unfinished import Unfinished


class LocalStorage:
    def __init__(self, root: Path) -> None:
        # Links above and at the root stay as the user wrote them.
        self._root = os.path.normpath(root.absolute())
        self._below = os.path.join(self._root, "")
        self._folders = Folders(self._root)

    @property
    def root_uri(self) -> str:
        return Path(self._root).as_uri()

    def location(self, path: str) -> str:
        return Path(self._root, safe_prefix(path)).as_posix()

    def get(self, path: str) -> bytes:
        with failures("read", path), open(self._target(path), "rb", buffering=0) as file:
            return file.read()

    def open_input(
        self,
        path: str,
        *,
        size_bytes: int | None = None,  # noqa: ARG002 - a disk needs no cache
    ) -> pa.NativeFile:
        with failures("read", path):
            return _open(self._target(path))

    def open_output(self, path: str) -> Output:
        draft = self.draft(path)
        if draft is None:
            raise taken(path)
        return WholeOutput(path, draft)

    def put_if_absent(self, path: str, data: bytes, *, modified_ms: int | None = None) -> bool:
        draft = self.draft(path)
        with failures("write", path):
            if draft is None:
                sync_folder(os.path.dirname(self._target(path)))
                return False
            with draft as new:
                new.write(data)
                return new.finish(modified_ms=modified_ms)

    def replace(self, path: str, data: bytes) -> None:
        with self.draft_over(path) as new, failures("write", path):
            new.write(data)
            new.replace()

    @contextmanager
    def bundle(self, named: Callable[[str], None]) -> Iterator[LocalBundle]:
        files = LocalBundle(self, named)
        try:
            yield files
            files.finish()
        finally:
            files.discard()

    def draft(self, path: str) -> Unfinished | None:
        """A file on its way to a path, if nothing stands there."""
        target = self._target(path)
        with failures("write", path):
            return None if os.path.lexists(target) else self._unfinished(target)

    def draft_over(self, path: str) -> Unfinished:
        """The same, whatever stands there."""
        with failures("write", path):
            return self._unfinished(self._target(path))

    def list(self, prefix: str) -> Iterator[Stat]:
        folder = safe_prefix(prefix)
        return self._walk(f"{folder}/" if folder else "")

    def stat(self, path: str) -> Stat | None:
        with failures("read", path):
            return _stat(self._target(path), path)

    def delete(self, path: str) -> None:
        target = self._target(path)
        self._folders.refuse_links(os.path.dirname(target))
        # Not synced: a file that comes back after a power cut is an orphan, and is found again.
        with failures("delete", path):
            try:
                os.unlink(target)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return

    def delete_folder(self, path: str) -> None:
        target = self._target(path)
        self._folders.refuse_links(target)
        with failures("delete", path):
            try:
                shutil.rmtree(target)
            except FileNotFoundError:
                return
            finally:
                self._folders.forget()

    def _target(self, path: str) -> str:
        return self._below + safe_path(path)

    def _unfinished(self, target: str) -> Unfinished:
        """In its folder; one that was removed by hand meanwhile is made again, once."""
        folder = os.path.dirname(target)
        self._folders.make(folder)
        try:
            return Unfinished(target)
        except FileNotFoundError:
            self._folders.forget()
            self._folders.make(folder)
            return Unfinished(target)

    def _walk(self, folder: str) -> Iterator[Stat]:
        with failures("read", folder):
            names = _names(self._below + folder)
        for name in names:
            path = folder + name
            if name.endswith("/"):
                yield from self._walk(path)
            elif (found := self.stat(path)) is not None:
                yield found


def _open(target: str) -> pa.NativeFile:
    try:
        return pa.OSFile(target, "rb")
    except OSError as error:
        if os.path.isdir(target):
            # Arrow gives no error number here.
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)) from error
        raise


def _stat(target: str, path: str) -> Stat | None:
    try:
        found = os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Stat(path, found.st_size, found.st_mtime_ns // 1_000_000)


def _names(folder: str) -> list[str]:
    """Names in the folder, folders with a final '/', in the order of the paths they lead to."""
    try:
        with os.scandir(folder) as entries:
            return sorted(
                # A link to a folder counts as a file here, and so is not followed.
                f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                for entry in entries
                if is_safe_name(entry.name)
            )
    except (FileNotFoundError, NotADirectoryError):
        return []
