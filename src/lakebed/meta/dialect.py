"""What differs between the two databases; everything else is SQL written once."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from lakebed.model.errors import LakebedError

Row = tuple[Any, ...]


class Cursor(Protocol):
    rowcount: int

    def fetchall(self) -> list[Row]: ...


class Connection(Protocol):
    """The part of a driver's connection that the store uses."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def close(self) -> None: ...


class Dialect(Protocol):
    name: str
    pool_size: int
    words: Mapping[str, str]  # {id}, {blob}, {key}, {packed} of the migrations
    now_ms: str | None  # an expression: the database's clock; None: it is this machine's
    for_update: str  # what locks the rows of a SELECT

    def connect(self) -> Connection: ...

    def begin(self, connection: Connection, *, write: bool, durable: bool) -> None: ...

    def statement(self, sql: str) -> str:
        """The statement with this driver's parameter marks; SQL is written with `?`."""
        ...

    def fetch_bulk(self, connection: Connection, sql: str, parameters: Sequence[Any]) -> list[Row]:
        """Rows of large values, as the driver gets them fastest."""
        ...

    def execute_many(self, connection: Connection, sql: str, rows: Iterable[Row]) -> None: ...

    def translate(self, error: Exception) -> LakebedError | None:
        """The driver's error as ours; None when it is not the driver's."""
        ...

    def close(self) -> None:
        """Give back what the dialect itself holds open."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Held around a write transaction: queues writers where the database would starve some."""
        ...

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        """Held by at most one thread of one process at a time, for this lake and name."""
        ...
