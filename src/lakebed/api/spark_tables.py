"""A table's version as a DataFrame: by Spark's own Parquet reader on the files that the plan names,
or by the Iceberg connector where files are many or have lost rows, and it is published."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast, get_args

from lakebed.api.parts import Parts
from lakebed.core.scan import chosen_columns, make_plan
from lakebed.engines import (
    published_frame,
    spark_frame,
    spark_frame_in_use,
    spark_reads_iceberg,
)
from lakebed.model.binding import bind
from lakebed.model.errors import InvalidInput, LakebedError, SparkError, UnsupportedFeature
from lakebed.model.expressions import Predicate
from lakebed.model.history import ICEBERG, CommitRecord, TableHead, TableState
from lakebed.model.ids import MAIN_LINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Reader = Literal["auto", "iceberg", "parquet"]
_METADATA = "metadata"
_FEW_FILES = 16  # level with the connector at 16, behind it at 64: docs/benchmarks.md
_UNKNOWN_TO_CONNECTOR = ("time", "timestamp_ns", "timestamptz_ns")
_log = logging.getLogger("lakebed.spark")


def to_reader(reader: str) -> Reader:
    if reader in get_args(Reader):
        return cast(Reader, reader)
    raise InvalidInput(
        f"there is no reader {reader!r}", hint=f"the readers are: {', '.join(get_args(Reader))}"
    )


@dataclass(frozen=True, slots=True)
class Pinned:
    """One version of a table, and what is wanted of it."""

    head: TableHead
    commit: CommitRecord
    columns: Sequence[str] | None = None
    where: Predicate | None = None


class SparkTables:
    def __init__(self, parts: Parts, session: "SparkSession") -> None:
        self._parts = parts
        self._session = session

    def frame(self, pinned: Pinned, reader: Reader) -> "DataFrame":
        state = self._parts.planner.state(pinned.head, pinned.commit.version)
        if reader == "auto" and _is_plain(pinned, state):
            with suppress(UnsupportedFeature):  # such as names that Spark takes for hidden
                return self._by_parquet(pinned)
        location = None if reader == "parquet" else self._published(pinned, state, reader)
        if location is None:
            return self._by_parquet(pinned)
        return self._by_iceberg(pinned, state, location)

    def held(self, made: "DataFrame", of: Iterable[Pinned]) -> "DataFrame":
        """The frame; the versions it was made of are not cleaned as long as it is of use."""
        in_use = spark_frame_in_use(made) or self._for_a_time()
        for pinned in of:
            self._parts.holding.keep(pinned.head.id, pinned.commit.version, in_use)
        return made

    def _for_a_time(self) -> Callable[[], bool]:
        """Where nobody can tell, as on Spark Connect."""
        until = time.monotonic() + float(self._parts.settings.value("lease.ttl-s"))
        return lambda: time.monotonic() < until

    def _by_iceberg(self, pinned: Pinned, state: TableState, location: str) -> "DataFrame":
        schema, where = state.schema, pinned.where
        return published_frame(
            self._session,
            location,
            schema,
            columns=chosen_columns(schema, pinned.columns),
            predicate=None if where is None else bind(where, schema),
        )

    def _by_parquet(self, pinned: Pinned) -> "DataFrame":
        planner, head = self._parts.planner, pinned.head
        state, live, visible, specs = planner.select(
            head, pinned.commit.version, lambda schema: pinned.where and bind(pinned.where, schema)
        )
        plan = make_plan(
            head,
            pinned.commit.version,
            state.schema,
            live=live,
            visible=visible,
            specs=specs,
            columns=pinned.columns,
            predicate=pinned.where,
            positions=planner.positions,
        )
        return spark_frame(self._session, plan, self._parts.storage)

    def _published(self, pinned: Pinned, state: TableState, reader: Reader) -> str | None:
        """Where the version's Iceberg metadata is; None: the Parquet reader has to do."""
        refused = self._refused(pinned, state)
        if reader == "auto" and (refused or not spark_reads_iceberg(self._session)):
            return None
        path = None if refused else self._metadata_path(pinned, must=reader == "iceberg")
        if path is None and reader == "iceberg":
            raise SparkError(
                f"version {pinned.commit.version} of {pinned.head.name} cannot be read as Iceberg:"
                f" {refused or 'it has no metadata file'}",
                hint="leave out reader=, and the files are read directly",
            )
        if path is None:
            return None
        return self._parts.storage.location(f"{pinned.head.location}/{path}")

    def _refused(self, pinned: Pinned, state: TableState) -> str | None:
        """Why this version has no Iceberg metadata of its own."""
        if pinned.head.line != MAIN_LINE:
            return "branches have none of their own"
        if ICEBERG not in state.formats:
            return "the table does not publish Iceberg"
        unknown = [f.name for f in state.schema.walk() if str(f.type) in _UNKNOWN_TO_CONNECTOR]
        return f"the connector knows no type of column {unknown[0]!r}" if unknown else None

    def _metadata_path(self, pinned: Pinned, *, must: bool) -> str | None:
        """What waits is published first."""
        found = self._known_path(pinned)
        if found is not None:
            return found
        try:
            drained = self._parts.drainer.drain(
                pinned.head.id, up_to=pinned.commit.version, force=must
            )
        except LakebedError as error:  # one who may only read cannot publish
            if must:
                raise
            _log.info("%s is not published: %s", pinned.head.name, error.message)
            return None
        if must and drained.error is not None:
            raise drained.error
        return self._known_path(pinned)

    def _known_path(self, pinned: Pinned) -> str | None:
        head, version = pinned.head, pinned.commit.version
        ledger = self._parts.outbox.ledger(head.id)
        found = ledger.publication_at(ICEBERG, _METADATA, MAIN_LINE, version)
        if found is None or found.version != version:
            return None
        there = self._parts.storage.stat(f"{head.location}/{found.path}")
        return None if there is None else found.path


def _is_plain(pinned: Pinned, state: TableState) -> bool:
    """Does Spark's own reader do best? It skips pages, where the connector reads row groups; but
    it has to open every file, and leaves out deleted rows by a join."""
    head = pinned.head
    newest = pinned.commit.version == head.version
    laid_out = bool(state.spec.fields or state.sort_order.fields)
    return newest and not laid_out and not head.live_vectors and head.live_files <= _FEW_FILES
