"""SQLite: the embedded default. WAL, synchronous=FULL; writers queue on a lock file."""

import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, cast

from lakebed.meta.dialect import Connection, Row
from lakebed.meta.filelock import FileLock
from lakebed.model.errors import (
    DatabaseCorrupt,
    DatabaseError,
    DatabaseLocked,
    DatabaseUnavailable,
    LakebedError,
    StorageFull,
    StorageReadOnly,
)

_NAME = re.compile(r"[a-z0-9-]+")


class _Connection(sqlite3.Connection):
    file: tuple[int, int] | None = None  # which file it has open
    durable = True  # how it syncs


class SqliteDialect:
    """`path` None: a database in memory, with the one connection it lives on."""

    name = "sqlite"
    words: Mapping[str, str] = {
        "id": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "blob": "BLOB",
        "key": "TEXT",
        "packed": "WITHOUT ROWID",  # small rows beside each other in the order of their key
    }
    now_ms: str | None = None
    for_update = ""

    def __init__(self, path: Path | None, *, timeout_s: float, pool_size: int) -> None:
        self.path = path
        self.pool_size = pool_size if path is not None else 1
        self._timeout_s = timeout_s
        self._memory_write = threading.Lock()
        self._named: dict[str, threading.Lock] = {}
        self._mutex = threading.Lock()
        self._place = str(path)
        self._queue = FileLock(f"{path}.lock", timeout_s=timeout_s) if path else None

    def connect(self) -> Connection:
        target = str(self.path) if self.path is not None else ":memory:"
        if self.path is not None and not self.path.exists():
            raise DatabaseUnavailable(
                f"the database file {self.path} is gone", hint="restore it or open another lake"
            )
        connection = sqlite3.connect(
            target,
            timeout=self._timeout_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
            factory=_Connection,
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
            # What a savepoint may have to undo is little, and needs no file of its own.
            connection.execute("PRAGMA temp_store = MEMORY")
            if self.path is not None:
                self._use_wal(connection)
                connection.file = _identity(self._place)
        except BaseException:
            connection.close()
            raise
        return cast(Connection, connection)  # sqlite3 takes more kinds of parameters

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """A new file is switched once; SQLite does not wait when two try that in one moment."""
        give_up = time.monotonic() + self._timeout_s
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() >= give_up:
                    raise
            time.sleep(random.uniform(0.001, 0.02))

    def keep_copy(self, suffix: str) -> Path | None:
        """A copy of the database beside it, whole even while others write."""
        if self.path is None:
            return None
        target = self.path.with_name(f"{self.path.name}.{suffix}")
        try:
            with (
                closing(sqlite3.connect(self.path)) as source,
                closing(sqlite3.connect(target)) as copy,
            ):
                source.backup(copy)
        except sqlite3.Error as error:
            raise self.translate(error) or error from error
        return target

    def begin(self, connection: Connection, *, write: bool, durable: bool) -> None:
        assert isinstance(connection, _Connection)
        if self.path is not None and connection.file != _identity(self._place):
            # Rows written to a file that has lost its name would vanish with it.
            raise DatabaseUnavailable(
                f"the database file {self.path} was removed or replaced", hint="open the lake again"
            )
        if write and connection.durable != durable:
            # A record that can be made again need not wait for the disk; WAL keeps it consistent.
            connection.execute(
                "PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL"
            )
            connection.durable = durable
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def statement(self, sql: str) -> str:
        return sql

    def fetch_bulk(self, connection: Connection, sql: str, parameters: Sequence[Any]) -> list[Row]:
        return connection.execute(sql, parameters).fetchall()

    def execute_many(self, connection: Connection, sql: str, rows: Iterable[Row]) -> None:
        assert isinstance(connection, sqlite3.Connection)
        connection.executemany(sql, rows)

    def translate(self, error: Exception) -> LakebedError | None:
        if not isinstance(error, sqlite3.Error):
            return None
        where = str(self.path or "the database in memory")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        text = str(error)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return DatabaseLocked(
                f"{where} is locked by another program",
                hint="try again; if it stays locked, find who holds the file open",
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return DatabaseCorrupt(
                f"{where} is damaged or no SQLite database: {text}",
                hint="restore the file from a backup; data files are not affected",
            )
        if code == sqlite3.SQLITE_FULL:
            return StorageFull(f"no room left for {where}", hint="free some space and try again")
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) and self._is_read_only():
            return StorageReadOnly(
                f"the folder of {where} cannot be written, which SQLite needs even to read",
                hint="make the folder writable for this user, or copy the lake",
            )
        if code == sqlite3.SQLITE_READONLY:
            return StorageReadOnly(f"{where} cannot be written: {text}", hint="check permissions")
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR):
            return DatabaseUnavailable(f"{where}: {text}", hint="check the disk and permissions")
        return DatabaseError(
            f"{where}: {text}", hint="this is a defect in lakebed; please report it"
        )

    def _is_read_only(self) -> bool:
        return self.path is not None and not os.access(self.path.parent, os.W_OK)

    def close(self) -> None:
        """Locks are held only while they are used."""

    def writing(self) -> AbstractContextManager[None]:
        return self._queue.held() if self._queue is not None else _held(self._memory_write)

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        assert _NAME.fullmatch(name), name
        with self._mutex:
            if self.path is None:
                return _held(self._named.setdefault(name, threading.Lock()))
            return FileLock(f"{self._place}.{name}.lock", timeout_s=self._timeout_s).held()


@contextmanager
def _held(lock: threading.Lock) -> Iterator[None]:
    with lock:
        yield


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked for by every transaction
    except OSError:
        return None
    return found.st_dev, found.st_ino
