"""The room that blocks may take on the disk: counted for all processes, the oldest go first.

The count is the length of a file, in pages: processes append to it as they write, which needs no
lock and outlives them, and a sweep sets it right. So no read or write looks through the folder.
"""

import os
import threading
from collections.abc import Iterator
from operator import itemgetter

_PAGE_BYTES = 4096
# A sweep makes room for some time: the folder is looked through once per tenth of it written.
_KEPT = 0.9
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class Room:
    """What is in `folder`/xx/, within `limit_bytes`; a name's time is that of its last use."""

    def __init__(self, folder: str, limit_bytes: int) -> None:
        self._folder = folder
        self._count = os.path.join(folder, "pages")
        self.limit_bytes = limit_bytes
        self._sweeping = threading.Lock()

    def used_bytes(self) -> int:
        """As counted; 0 where nothing was counted yet."""
        return (self._counted() or 0) * _PAGE_BYTES

    def take(self, size_bytes: int) -> bool:
        """Count one more file in; False: there is no room for it, or none yet."""
        needed, limit = _pages(size_bytes), self.limit_bytes // _PAGE_BYTES
        if needed > limit:
            return False
        counted = self._counted()
        # Without a count there may be files all the same.
        if counted is None or counted + needed > limit:
            # Others do not write while room is made: they would outrun it.
            if not self._sweeping.acquire(blocking=False):
                return False
            try:
                left = self._sweep(counted or 0, limit - needed)
            finally:
                self._sweeping.release()
            if left + needed > limit:
                return False
        self._append(needed)
        return True

    def _counted(self) -> int | None:
        try:
            return os.stat(self._count).st_size
        except FileNotFoundError:
            return None

    def _append(self, pages: int) -> None:
        handle = os.open(self._count, _APPEND, 0o600)
        try:
            os.write(handle, bytes(pages))
        finally:
            os.close(handle)

    def _sweep(self, counted: int, most: int) -> int:
        """Leave at most so many pages, and set the count right."""
        found = sorted(self._found(), key=itemgetter(0))
        pages = sum(size for _, size, _ in found)
        if pages > most:
            for _, size, path in found:
                if pages <= most * _KEPT:
                    break
                pages -= size if _removed(path) else 0
        self._append(0)  # there is a file from now on
        # What other processes wrote meanwhile may have been seen, or not.
        pages += max(0, os.stat(self._count).st_size - counted)
        os.truncate(self._count, pages)
        return pages

    def _found(self) -> Iterator[tuple[float, int, str]]:
        """Time of last use, pages and path of every file; what a crash left ages like the rest."""
        for folder in _entries(self._folder):
            if not folder.is_dir(follow_symlinks=False):
                continue
            for entry in _entries(folder.path):
                try:
                    stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                yield stat.st_mtime, _pages(stat.st_size), entry.path


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True  # by another process
    except OSError:
        return False
    return True


def _pages(size_bytes: int) -> int:
    return -(-size_bytes // _PAGE_BYTES)
