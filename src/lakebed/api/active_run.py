"""A run of a pipeline that is under way: its tables at one set of versions, its leases, its end."""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from lakebed.api.changes import Changes
from lakebed.api.options import Options
from lakebed.api.parts import Parts
from lakebed.api.points import Point
from lakebed.api.transaction import Transaction
from lakebed.core.crash import crash_point
from lakebed.core.lease import LeaseKeeper
from lakebed.core.plan import Plan
from lakebed.engines import spark_frame
from lakebed.model.errors import CommitUnknown, LakebedError, PipelineInvalid
from lakebed.model.history import Commit, TableHead
from lakebed.model.ids import FileId, TableId, Version
from lakebed.model.names import parse_table_name
from lakebed.model.runs import (
    RUNNING,
    SUCCEEDED,
    Cursor,
    FileMark,
    Run,
    RunAttachment,
    RunReport,
)
from lakebed.model.schema import Schema
from lakebed.rowops.steps import Seen, difference, open_to_all, refuse_narrower

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TTL_S = 60.0
_BEAT_S = 5.0
_SCRATCH = ".lakebed/scratch"
_log = logging.getLogger("lakebed.pipelines")


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table at the version that the run sees."""

    id: TableId
    version: Version
    schema: Schema


class ActiveRun:
    """Alive while its block lasts; what is not finished by then has failed."""

    def __init__(self, parts: Parts, run: Run, options: Options, lost: Run | None = None) -> None:
        self._parts = parts
        self._options = options
        self.run = run
        self.transaction = Transaction(parts, options)
        self._heads: dict[str, TableHead] = {}
        self._cursors = parts.runs.cursors(run.pipeline)
        self._keepers: list[LeaseKeeper] = []
        self._held = ExitStack()
        self._stop = threading.Event()
        self._beat = threading.Thread(target=self._stay_alive, name="lakebed-run", daemon=True)
        self._is_alive = run.status == RUNNING  # one that only looks has no row and no leases
        if self._is_alive:
            self._beat.start()
        if lost is not None:
            self._clear(lost.id)

    @property
    def id(self) -> str:
        return self.run.id

    def look(self, names: Sequence[str]) -> Mapping[str, PinnedTable]:
        """Pin those of the tables that are there, all of them as they are at this moment."""
        catalog = self._parts.catalog
        wanted = [parse_table_name(name) for name in names]
        heads = catalog.find_many([name for name in wanted if catalog.exists(name)])
        for head in heads:
            self._heads[str(head.name)] = head
            self.transaction.pin(head)
            self._hold(self._parts.leases.reading(head.id, head.version))
        return {
            str(head.name): PinnedTable(
                head.id, head.version, catalog.state(head, head.state_id).schema
            )
            for head in heads
        }

    def will_write(self, name: str) -> None:
        """Keep what is staged for a table from being cleaned before it is committed."""
        head = self._heads.get(name)
        if head is not None:
            self._hold(self._parts.leases.writing(head.id, "data/"))

    def cursor(self, step: str, given: str) -> Cursor | None:
        return self._cursors.get((step, given))

    def cursor_of(self, step: str, kind: str, table: TableId) -> Cursor | None:
        """Up to where a step has read a table under another name."""
        found = (c for (s, i), c in self._cursors.items() if s == step and i.startswith(kind))
        return max(
            (c for c in found if c.table_id == table and c.version is not None),
            key=lambda c: c.version or 0,
            default=None,
        )

    def marks(
        self, step: str, given: str, paths: Sequence[str], others: Sequence[str] = ()
    ) -> dict[str, FileMark]:
        """Those of some files that the step has read, by path; not for its inputs `others`."""
        found = self._parts.runs.marks(self.run.pipeline, step, given, paths, others)
        return {mark.path: mark for mark in found}

    def scratch(self, name: str) -> str:
        """A place for rows of this run that are no table's; it is cleared at the end."""
        return self._parts.storage.location(f"{_SCRATCH}/{self.id}/{name}")

    def changed_rows(
        self, session: "SparkSession", name: str, after: Version | None
    ) -> "tuple[DataFrame | None, DataFrame | None]":
        """Rows that are gone and rows that came since a version, as this run sees the table.

        A row that was only copied into another file is in both.
        """
        plan = self._plan(name)
        if after is None:
            return None, self._frame(session, plan)
        gone, came = self._since(name, plan, after)
        return (
            self._frame(session, gone) if gone.files else None,
            self._frame(session, came) if came.files else None,
        )

    def rows_since(self, name: str, after: Version | None) -> int:
        """How many rows `changed_rows` has, on both sides; files alone tell."""
        plan = self._plan(name)
        sides = (plan,) if after is None else self._since(name, plan, after)
        return sum(
            f.file.record_count - len(side.deleted.get(f.id, ()))
            for side in sides
            for f in side.files
        )

    def feed(self, name: str, after: Version | None, until: Version) -> pa.Table:
        """Every change after one version up to another, with `_op`, `_version` and `_time`."""
        return Changes(
            self._parts,
            self._heads[name],
            Point(version=after),
            Point(version=until),
            columns=None,
            where=None,
        ).to_arrow()

    def has_changed(self, name: str, after: Version | None) -> bool:
        """Are there rows that are gone or that came since a version? Files alone tell."""
        plan = self._plan(name)
        if after is None:
            return True
        return any(side.files for side in self._since(name, plan, after))

    def staged_count(self, name: str) -> int:
        """How many rows this run has staged for a table."""
        return sum(f.rows for f in self._plan(name).files if f.id < FileId(0))

    def is_changed(self, name: str) -> bool:
        """Has this run staged a change of the table?"""
        return self.transaction.has(name) and self.transaction.table(name).is_changed

    def staged_rows(self, session: "SparkSession", name: str) -> "DataFrame":
        """The rows that this run has staged for a table, without those that were there."""
        plan = self._plan(name)
        own = tuple(f for f in plan.files if f.id < FileId(0))
        kept = {f.id for f in own}
        deleted = {i: gone for i, gone in plan.deleted.items() if i in kept}
        return self._frame(session, replace(plan, files=own, deleted=deleted))

    def begin_again(self) -> None:
        """Forget what is staged and what was seen: the tables are looked at anew."""
        self.transaction.discard()
        self.transaction = Transaction(self._parts, self._options)
        self._heads.clear()
        self._clear(self.id)

    def finish(
        self, attachment: RunAttachment, *, changed: bool, unmoved: Iterable[str] = ()
    ) -> dict[str, Commit]:
        """Commit everything; without a change of a table, only where the inputs stand.

        When somebody else has changed one of the tables `unmoved`, nothing is committed.
        """
        crash_point("run_before_commit")
        if not changed:
            self.transaction.discard()
            self._parts.runs.finish_unchanged(attachment)
            return {}
        self.transaction.end_run(attachment, unmoved)
        try:
            return self.transaction.commit()
        except CommitUnknown:
            # The run's own row is in the same transaction: it knows.
            if self._parts.runs.get(self.id).status == SUCCEEDED:
                return {}
            raise

    def fail(self, status: str, report: RunReport) -> None:
        """Nothing is committed; the run's record says why."""
        try:
            if self._parts.runs.end(self.id, status, report):
                # Surely not committed, and never will be: what was written is nobody's.
                self.transaction.discard()
        except LakebedError as error:
            _log.warning("run %s ended, which could not be recorded: %s", self.id, error.message)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._is_alive:
            return
        self._stop.set()
        self._beat.join()
        with suppress(LakebedError):
            self._held.close()
        self._clear(self.id)

    def _plan(self, name: str) -> Plan:
        table = self.transaction.table(name)
        plan = table.scan().plan()
        schema = open_to_all(plan.schema)
        return replace(plan, schema=schema)

    def _since(self, name: str, plan: Plan, after: Version) -> tuple[Plan, Plan]:
        head, planner = self._heads[name], self._parts.planner
        if after > head.version:
            raise PipelineInvalid(
                f"table {name} has no version {after}, up to which it was read before",
                hint="--full-refresh the step",
            )
        then = planner.look(head, after)
        refuse_narrower([then.state], plan.schema)
        old = Seen(then.live, lambda files: planner.positions(head, files))
        new = Seen(plan.files, lambda _: plan.deleted)
        return difference(old, new, plan)

    def _frame(self, session: "SparkSession", plan: Plan) -> "DataFrame":
        return spark_frame(session, plan, self._parts.storage)

    def _hold(self, keeper: LeaseKeeper) -> None:
        if self._is_alive:
            self._held.enter_context(keeper)
            self._keepers.append(keeper)

    def _stay_alive(self) -> None:
        while not self._stop.wait(_BEAT_S):
            try:
                for keeper in list(self._keepers):
                    keeper.touch()
                self._parts.runs.renew(self.id, ttl_s=TTL_S)
            except LakebedError as error:
                _log.warning("run %s is not renewed: %s", self.id, error.message)

    def _clear(self, run_id: str) -> None:
        with suppress(LakebedError):
            self._parts.storage.delete_folder(f"{_SCRATCH}/{run_id}")
