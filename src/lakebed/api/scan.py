"""A scan: what to read of which version, turned into Arrow, batches or a DataFrame when asked."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lakebed.api.options import check_names, check_number
from lakebed.api.parts import Parts
from lakebed.api.read_task import ReadTask, read_tasks
from lakebed.core.lease import AFTER_S, Hold, leased
from lakebed.core.plan import Plan
from lakebed.engines import lazy_frame_of, relation_of
from lakebed.engines.arrow.read import read, read_schema
from lakebed.model.errors import InvalidInput, MissingExtra
from lakebed.model.expressions import Predicate
from lakebed.model.ids import TableId
from lakebed.sql.predicate import parse_predicate
from lakebed.storage.base import Storage

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

T = TypeVar("T")


class Scan:
    """Planned when first used; the plan is one version, whatever is committed meanwhile."""

    def __init__(self, parts: Parts, table_id: TableId | None, plan: Callable[[], Plan]) -> None:
        self._parts = parts
        self._table_id = table_id  # None: of a transaction, whose files nobody else knows
        self._make = plan
        self._plan: Plan | None = None

    def plan(self) -> Plan:
        """The files that will be read, and how many were left out."""
        if self._plan is None:
            self._plan = self._make()
        return self._plan

    def to_arrow(self) -> pa.Table:
        plan = self.plan()
        return pa.Table.from_batches(self._batches(plan, after_s=AFTER_S), read_schema(plan))

    def to_batches(self) -> pa.RecordBatchReader:
        """A stream: memory is bounded by a batch; a lease keeps the version while it is read."""
        plan = self.plan()
        return pa.RecordBatchReader.from_batches(
            read_schema(plan), self._batches(plan, after_s=0.0)
        )

    def tasks(self) -> list[ReadTask]:
        """The same rows for other processes to read: tasks pickle, and need the warehouse alone.

        A lease keeps the version for `lease.ttl-s` from now on.
        """
        plan = self.plan()
        if self._table_id is not None:
            self._parts.leases.grant(self._table_id, plan.version)
        return read_tasks(self._parts.storage.root_uri, plan)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For everything that takes Arrow streams: `table.append(other.scan(where=…))`."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> "pd.DataFrame":
        try:
            frame: pd.DataFrame = self.to_arrow().to_pandas()
        except ImportError as error:
            raise MissingExtra(
                "pandas is not installed", hint="pip install 'lakebed[pandas]'"
            ) from error
        return frame

    def to_polars(self) -> "pl.LazyFrame":
        """A lazy frame: its filters leave files out, and only the columns it uses are read.

        Every collect reads the same version, under a lease; the order of rows is not promised.
        """
        return self.read_by(lazy_frame_of)

    def to_duckdb(self, connection: "DuckDBPyConnection | None" = None) -> "DuckDBPyRelation":
        """A relation of your connection, or of DuckDB's default one; filters are handed down."""
        return self.read_by(partial(relation_of, connection=connection))

    def read_by(self, engine: Callable[[Plan, Storage, Hold], T]) -> T:
        """What an engine makes of the plan; it holds the version while it reads."""
        plan = self.plan()
        return engine(plan, self._parts.storage, self._hold(plan, after_s=0.0))

    def _batches(self, plan: Plan, *, after_s: float) -> Iterator[pa.RecordBatch]:
        return leased(self._hold(plan, after_s=after_s), read(plan, self._parts.storage))

    def _hold(self, plan: Plan, *, after_s: float) -> Hold:
        if self._table_id is None:
            return nullcontext
        return partial(self._parts.leases.reading, self._table_id, plan.version, after_s=after_s)


def to_time_ms(timestamp: datetime | str | int) -> int:
    """A moment as milliseconds: a datetime or ISO text (UTC when it names no zone), or a number."""
    if isinstance(timestamp, bool) or not isinstance(timestamp, datetime | str | int):
        raise InvalidInput(
            f"timestamp {timestamp!r} is not a moment",
            hint="give a datetime, ISO text such as 2026-11-01T12:00:00Z, or milliseconds",
        )
    if isinstance(timestamp, int):
        return check_number("timestamp", timestamp)
    try:
        moment = datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp
    except ValueError:
        raise InvalidInput(
            f"timestamp {timestamp!r} is not ISO text", hint="write 2026-11-01T12:00:00Z"
        ) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)


def to_columns(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    return check_names("columns", columns)


def to_predicate(where: str | None) -> Predicate | None:
    return None if where is None else parse_predicate(where)
