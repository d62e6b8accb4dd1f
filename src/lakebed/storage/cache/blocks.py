"""A cache of blocks in a folder of the user's, which several processes may share.

A block that is damaged in any way is a miss; a folder that cannot be used is an empty cache.
"""

import logging
import os
import stat
import struct
import threading
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256

from lakebed.storage.base import UNFINISHED_PREFIX
from lakebed.storage.cache.room import Room

# What the reader of objects reads ahead: one more megabyte costs less than one more request.
BLOCK_BYTES = 1 << 20
_log = logging.getLogger("lakebed")
# What the folder holds is of this form; another form gets another folder.
_FORM = "blocks-1"
_HEAD = struct.Struct("<4sII")  # mark, length, checksum
_MARK = b"LBB1"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class CacheUse:
    """What the cache did for one lake handle, counted in blocks and bytes, and what it holds."""

    folder: str
    limit_bytes: int
    used_bytes: int = 0  # by all processes that share the folder
    hits: int = 0
    misses: int = 0
    bytes_from_cache: int = 0
    bytes_from_store: int = 0

    @property
    def hit_rate(self) -> float | None:
        """None: nothing was looked for yet."""
        looked = self.hits + self.misses
        return self.hits / looked if looked else None


class BlockCache:
    """No failure of the disk leaves here: reads go on without the cache, after one warning."""

    def __init__(self, folder: str, limit_bytes: int) -> None:
        self._folder = os.path.join(folder, _FORM)
        self._room = Room(self._folder, limit_bytes)
        self._lock = threading.Lock()
        self._use = CacheUse(folder, limit_bytes)
        self._is_safe: bool | None = None  # not looked at yet
        self._writable = True

    def use(self) -> CacheUse:
        try:
            used_bytes = self._room.used_bytes()
        except OSError:
            used_bytes = 0
        return replace(self._use, used_bytes=used_bytes)

    def get(self, name: str, number: int, size_bytes: int) -> bytes | None:
        """The block of that length, or None."""
        found = self._read(self._path(name, number), size_bytes) if self._is_ready() else None
        with self._lock:
            use = self._use
            if found is None:
                self._use = replace(use, misses=use.misses + 1)
            else:
                total = use.bytes_from_cache + size_bytes
                self._use = replace(use, hits=use.hits + 1, bytes_from_cache=total)
        return found

    def put(self, name: str, number: int, block: memoryview) -> None:
        """Keep a block that came from the store."""
        with self._lock:
            use = self._use
            self._use = replace(use, bytes_from_store=use.bytes_from_store + block.nbytes)
        if not self._writable or not self._is_ready():
            return
        path = self._path(name, number)
        try:
            try:
                self._keep(path, block)
            except FileNotFoundError:  # somebody removed the folder
                _make_private(self._folder)
                self._keep(path, block)
        except OSError as error:
            self._give_up(error)

    def _is_ready(self) -> bool:
        if self._is_safe is None:
            try:
                _make_private(self._folder)
                self._is_safe = True
            except OSError as error:
                self._is_safe = False
                self._give_up(error)
        return self._is_safe

    def _keep(self, path: str, block: memoryview) -> None:
        if self._room.take(_HEAD.size + block.nbytes):
            self._write(path, block)

    def _path(self, name: str, number: int) -> str:
        digest = sha256(name.encode()).hexdigest()
        return os.path.join(self._folder, digest[:2], f"{digest[2:]}-{number}")

    def _read(self, path: str, size_bytes: int) -> bytes | None:
        try:
            with open(path, "rb", buffering=0) as file:
                head = file.read(_HEAD.size)
                block = file.read(size_bytes + 1)
            if len(block) != size_bytes or head != _head(memoryview(block)):
                os.unlink(path)
                return None
        except OSError:
            return None  # most often: there is none
        with suppress(OSError):  # gone, or not ours to touch: the bytes are right
            os.utime(path)
        return block

    def _write(self, path: str, block: memoryview) -> None:
        folder = os.path.dirname(path)
        # In the same folder as the block, and so on the same file system.
        source = os.path.join(folder, f"{UNFINISHED_PREFIX}{os.urandom(16).hex()}")
        os.makedirs(folder, 0o700, exist_ok=True)
        handle = os.open(source, _NEW, 0o600)
        try:
            with open(handle, "wb", buffering=0) as file:
                _write_all(file.fileno(), _head(block))
                _write_all(file.fileno(), block)
            # Not synced: what a power cut tears fails its checksum.
            os.replace(source, path)
        except BaseException:
            os.unlink(source)
            raise

    def _give_up(self, error: OSError) -> None:
        with self._lock:
            was_writable, self._writable = self._writable, False
        if was_writable:
            _log.warning(
                "nothing more is kept in the cache %s: %s",
                self._use.folder,
                error.strerror or error,
            )


def _head(block: memoryview) -> bytes:
    return _HEAD.pack(_MARK, block.nbytes, zlib.crc32(block))


def _write_all(handle: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _make_private(folder: str) -> None:
    """Nobody else may read rows there, or put other bytes in their place."""
    os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        found = os.lstat(folder)
        owner = getattr(os, "geteuid", lambda: found.st_uid)()
        is_shared = os.name == "posix" and found.st_mode & 0o077
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or is_shared:
            raise PermissionError(0, "others can reach it; its owner alone may") from None
