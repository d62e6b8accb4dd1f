"""A warehouse in a local folder; a write that returned survives a power cut."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from lakebed.storage.base import Output, Stat, is_safe_name, safe_path, safe_prefix
from lakebed.storage.failures import failures
from lakebed.storage.folders import Folders, sync_folder
from lakebed.storage.output import WholeOutput, taken
from lakebed.storage.unfinished import Unfinished

T = TypeVar("T")


class LocalStorage:
    def __init__(self, root: Path) -> None:
        # Links above and at the root stay as the user wrote them.
        self._root = Path(os.path.normpath(root.absolute()))
        self._folders = Folders(self._root)

    @property
    def root_uri(self) -> str:
        return self._root.as_uri()

    def location(self, path: str) -> str:
        return (self._root / safe_prefix(path)).as_posix()

    def get(self, path: str) -> bytes:
        with failures("read", path):
            return self._target(path).read_bytes()

    def open_input(self, path: str) -> pa.NativeFile:
        with failures("read", path):
            return _open(self._target(path))

    def open_output(self, path: str) -> Output:
        target = self._target(path)
        with failures("write", path):
            if os.path.lexists(target):
                raise taken(path)
            return WholeOutput(path, self._in_folder_of(target, lambda: Unfinished(target)))

    def put_if_absent(self, path: str, data: bytes, *, modified_ms: int | None = None) -> bool:
        target = self._target(path)

        def put() -> bool:
            with Unfinished(target) as new:
                new.write(data)
                return new.finish(modified_ms=modified_ms)

        with failures("write", path):
            if os.path.lexists(target):
                sync_folder(target.parent)
                return False
            return self._in_folder_of(target, put)

    def replace(self, path: str, data: bytes) -> None:
        target = self._target(path)

        def put() -> None:
            with Unfinished(target) as new:
                new.write(data)
                new.replace()

        with failures("write", path):
            self._in_folder_of(target, put)

    def list(self, prefix: str) -> Iterator[Stat]:
        folder = safe_prefix(prefix)
        return self._walk(f"{folder}/" if folder else "")

    def stat(self, path: str) -> Stat | None:
        with failures("read", path):
            return _stat(self._target(path), path)

    def delete(self, path: str) -> None:
        target = self._target(path)
        self._folders.refuse_links(target.parent)
        # Not synced: a file that comes back after a power cut is an orphan, and is found again.
        with failures("delete", path):
            try:
                target.unlink()
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

    def _target(self, path: str) -> Path:
        return self._root / safe_path(path)

    def _in_folder_of(self, target: Path, write: Callable[[], T]) -> T:
        """Run a write in its folder; one that was removed by hand meanwhile is made again, once."""
        try:
            self._folders.make(target.parent)
            return write()
        except FileNotFoundError:
            self._folders.forget()
            self._folders.make(target.parent)
            return write()

    def _walk(self, folder: str) -> Iterator[Stat]:
        with failures("read", folder):
            names = _names(self._root / folder)
        for name in names:
            path = folder + name
            if name.endswith("/"):
                yield from self._walk(path)
            elif (found := self.stat(path)) is not None:
                yield found


def _open(target: Path) -> pa.NativeFile:
    try:
        return pa.OSFile(str(target), "rb")
    except OSError as error:
        if target.is_dir():
            # Arrow gives no error number here.
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)) from error
        raise


def _stat(target: Path, path: str) -> Stat | None:
    try:
        found = target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Stat(path, found.st_size, found.st_mtime_ns // 1_000_000)


def _names(folder: Path) -> list[str]:
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
