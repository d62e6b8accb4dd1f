"""Opens transactions on a lake's database, and keeps its connections. Knows no noun."""

import logging
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, TypeVar, cast

from lakebed.meta.dialect import Connection, Dialect, Row
from lakebed.model.errors import CommitUnknown, DatabaseLocked, DatabaseUnavailable, LakebedError

_log = logging.getLogger("lakebed.meta")
T = TypeVar("T")
_KEPT_MOST = 4096
_INHERITED: list[object] = []


class Tx:
    """One transaction; SQL is written with `?`."""

    def __init__(
        self, connection: Connection, dialect: Dialect, kept: dict[Any, Any], *, writes: bool
    ) -> None:
        self._connection = connection
        self._dialect = dialect
        self._kept = kept
        self._writes = writes
        self._savepoints = 0

    def keep(self, key: Hashable, load: Callable[[], T]) -> T:
        """A value made from rows that never change: read once, then remembered.

        Only reads remember: what a write sees may be rolled back.
        """
        found = self._kept.get(key)
        if found is None:
            found = load()
            if not self._writes:
                if len(self._kept) >= _KEPT_MOST:
                    self._kept.clear()
                self._kept[key] = found
        return cast(T, found)

    def all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(self._dialect.statement(sql), parameters).fetchall()

    def bulk(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Like `all`, for rows of large values."""
        statement = self._dialect.statement(sql)
        return self._dialect.fetch_bulk(self._connection, statement, parameters)

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        rows = self.all(sql, parameters)
        return rows[0] if rows else None

    def locked(self, select: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row, locked until the transaction ends."""
        return self.one(select + self._dialect.for_update, parameters)

    def lock(self, select: str, parameters: Sequence[Any] = ()) -> None:
        """Lock the rows; where one transaction writes at a time it has the lock already."""
        if self._dialect.for_update:
            self.locked(select, parameters)

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Execute; the number of rows touched."""
        return self._connection.execute(self._dialect.statement(sql), parameters).rowcount

    def run_many(self, sql: str, rows: Iterable[Row]) -> None:
        self._dialect.execute_many(self._connection, self._dialect.statement(sql), rows)

    def now_ms(self) -> int:
        if self._dialect.now_ms is None:
            return time.time_ns() // 1_000_000
        row = self.one(_SELECT + self._dialect.now_ms)
        assert row is not None
        return int(row[0])

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undoes what its block did when the block raises; the transaction goes on."""
        self._savepoints += 1
        name = f"member_{self._savepoints}"
        self.run(_SAVEPOINT + name)
        try:
            yield
        except BaseException:
            self.run(_ROLLBACK_TO + name)
            raise
        self.run(_RELEASE + name)


_SELECT, _SAVEPOINT, _ROLLBACK_TO, _RELEASE = (
    "SELECT ",
    "SAVEPOINT ",
    "ROLLBACK TO SAVEPOINT ",
    "RELEASE SAVEPOINT ",
)


class Store:
    """Thread-safe: every transaction has a connection of its own, up to the pool's size."""

    def __init__(self, dialect: Dialect, *, timeout_s: float) -> None:
        self.dialect = dialect
        self.timeout_s = timeout_s
        self._idle: list[Connection] = []
        self.kept: dict[Any, Any] = {}  # made from rows that never change
        self._mutex = threading.Lock()
        self._slots = threading.BoundedSemaphore(dialect.pool_size)
        self._pid = os.getpid()
        self._closed = False

    def read(self) -> AbstractContextManager[Tx]:
        """One consistent view of the rows."""
        return _Transaction(self, write=False, durable=False)

    def write(self, *, durable: bool = True) -> AbstractContextManager[Tx]:
        """All of it or nothing. Not durable = may be lost, whole, with the machine's power."""
        return _Transaction(self, write=True, durable=durable)

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        return self.dialect.exclusive(name)

    def close(self) -> None:
        """Transactions under way end as they would; no other begins."""
        self._closed = True
        self._drop_idle()
        self.dialect.close()

    def take(self, *, write: bool, durable: bool) -> Connection:
        """A connection with a transaction begun, one of at most the pool's size."""
        if not self._slots.acquire(timeout=self.timeout_s):
            raise DatabaseLocked(
                f"no database connection became free within {self.timeout_s:g} s",
                hint="raise database.pool-size, or use fewer threads on one lake handle",
            )
        try:
            return self._begun(write=write, durable=durable)
        except BaseException:
            self._slots.release()
            raise

    def end(self, connection: Connection, error: BaseException | None, *, write: bool) -> None:
        """Commit, or roll back what an error ended; an error of the driver is raised as ours."""
        healthy = False
        try:
            if error is None:
                self._commit(connection, write=write)
                healthy = True
        except BaseException as failed:
            self._raise_known(failed)
            raise
        finally:
            healthy = healthy or self._roll_back(connection)
            self._give_back(connection, healthy=healthy)
            self._slots.release()
        if error is not None:
            self._raise_known(error)

    def _begun(self, *, write: bool, durable: bool) -> Connection:
        """A connection with a transaction begun; idle ones lost meanwhile are replaced, once."""
        if self._closed:
            raise DatabaseUnavailable("the lake was closed", hint="open it again: lakebed.open(…)")
        idle = self._take_idle()
        if idle is not None:
            try:
                return self._begin(idle, write=write, durable=durable)
            except DatabaseUnavailable as error:
                _log.debug("idle connections are given up: %s", error.message)
                self._drop_idle()
                self.kept.clear()  # it may be another database by now
        return self._begin(self._connect(), write=write, durable=durable)

    def _begin(self, connection: Connection, *, write: bool, durable: bool) -> Connection:
        try:
            self.dialect.begin(connection, write=write, durable=durable)
        except BaseException as error:
            self._give_back(connection, healthy=self._roll_back(connection))
            self._raise_known(error)
            raise
        return connection

    def _commit(self, connection: Connection, *, write: bool) -> None:
        try:
            connection.execute("COMMIT")
        except Exception as error:
            if write and isinstance(self._translated(error), DatabaseUnavailable):
                raise CommitUnknown(
                    "the connection was lost while committing: the commit may have happened",
                    hint="repeat the call with the same idempotency_key, which is safe; "
                    "without one, look at the table's history first",
                ) from error
            raise

    def _roll_back(self, connection: Connection) -> bool:
        """False when the connection is gone, and with it the transaction."""
        try:
            connection.execute("ROLLBACK")
        except Exception as error:
            _log.debug("the connection is given up: %s", error)
            return False
        return True

    def _raise_known(self, error: BaseException) -> None:
        known = self._translated(error)
        if known is not error:
            raise known from error

    def _translated(self, error: BaseException) -> BaseException:
        if isinstance(error, LakebedError) or not isinstance(error, Exception):
            return error
        return self.dialect.translate(error) or error

    def _take_idle(self) -> Connection | None:
        with self._mutex:
            if self._pid != os.getpid():
                # A forked child must never use, nor close, its parent's connections: closing one,
                # even by forgetting it, would end the parent's session.
                _INHERITED.extend(self._idle)
                self._idle, self._pid = [], os.getpid()
            return self._idle.pop() if self._idle else None

    def _drop_idle(self) -> None:
        with self._mutex:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connect(self) -> Connection:
        try:
            return self.dialect.connect()
        except Exception as error:
            self._raise_known(error)
            raise

    def _give_back(self, connection: Connection, *, healthy: bool) -> None:
        if healthy and not self._closed:
            with self._mutex:
                self._idle.append(connection)
        else:
            connection.close()


class _Transaction:
    """A class and no generator: every look at the rows passes through it."""

    __slots__ = ("_connection", "_durable", "_store", "_turn", "_write")

    def __init__(self, store: Store, *, write: bool, durable: bool) -> None:
        self._store = store
        self._write = write
        self._durable = durable

    def __enter__(self) -> Tx:
        store = self._store
        self._turn = store.dialect.writing() if self._write else None
        if self._turn is not None:
            self._turn.__enter__()
        try:
            self._connection = store.take(write=self._write, durable=self._durable)
        except BaseException:
            self._give_turn()
            raise
        return Tx(self._connection, store.dialect, store.kept, writes=self._write)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        try:
            self._store.end(self._connection, error, write=self._write)
        finally:
            self._give_turn()

    def _give_turn(self) -> None:
        if self._turn is not None:
            self._turn.__exit__(None, None, None)
