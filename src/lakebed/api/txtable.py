"""A table inside a transaction: writes are staged, reads see them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from lakebed.api.alter import Alter, Step
from lakebed.api.draft import Basis, Draft
from lakebed.api.enforcing import refuse_unfit, refuse_violated
from lakebed.api.merge import Merge, MergeRows, to_aliases, to_on
from lakebed.api.merging import merge_steps
from lakebed.api.options import CommitOptions
from lakebed.api.parts import Parts
from lakebed.api.points import Point, to_point
from lakebed.api.restore import forward, restore
from lakebed.api.rowops import RowChanger, open_bench, to_condition, to_values
from lakebed.api.scan import Scan, to_columns, to_predicate
from lakebed.api.staging import PositionsById, Staged
from lakebed.api.writing import write_files
from lakebed.core.overlap import in_partitions
from lakebed.core.plan import Plan
from lakebed.core.scan import make_plan, partitions_predicate, pruned_plan
from lakebed.core.state import next_state
from lakebed.model.binding import bind
from lakebed.model.changes import (
    AppendFiles,
    Change,
    SetFormats,
    SetProperties,
    SetSchema,
    SetSortOrder,
    SetSpec,
)
from lakebed.model.counts import NO_ROWS, RowCounts
from lakebed.model.errors import (
    CommitConflict,
    InvalidInput,
    LakebedError,
    NoChanges,
    UnsupportedFeature,
)
from lakebed.model.expressions import TRUE, Predicate
from lakebed.model.files import LiveFile
from lakebed.model.history import DELTA, TableHead
from lakebed.model.ids import Line, StateId
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.properties import check_properties, check_removed
from lakebed.model.schema import Schema
from lakebed.model.settings import parse_formats
from lakebed.rowops.condition import Condition
from lakebed.rowops.workbench import Prepare
from lakebed.security.policy import require


@dataclass(frozen=True, slots=True)
class Append:
    """Rows already written, and what they need of the table; decided on one state of it."""

    files: AppendFiles
    state_id: StateId
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Rows already written, and which rows of the table they take the place of."""

    files: AppendFiles
    where: Condition | None
    partitions: bool  # replace the partitions the new rows fall in


class TransactionTable:
    def __init__(
        self, parts: Parts, name: str, staged: Staged, check_open: Callable[[], None]
    ) -> None:
        self._parts = parts
        self._staged = staged
        self._check_open = check_open
        self.name = name

    @property
    def version(self) -> int:
        """The version this transaction is based on; -1 for a table it creates."""
        return self._staged.head.version

    @property
    def location(self) -> str:
        """The folder of its files."""
        return self._staged.head.location

    @property
    def schema(self) -> Schema:
        return self._staged.state.schema

    @property
    def properties(self) -> Mapping[str, str]:
        return self._staged.state.properties

    def append(self, rows: object, *, merge_schema: bool = False) -> None:
        """Add rows; with `merge_schema` the table gets the columns it lacks, and wider types."""
        self.stage_append(self.prepare_append(rows, merge_schema=merge_schema))

    def overwrite(
        self, rows: object, *, where: str | None = None, partitions: bool = False
    ) -> None:
        """Take the place of every row, of those that match, or of the partitions written to."""
        self.stage_overwrite(self.prepare_overwrite(rows, where=where, partitions=partitions))

    def delete(self, where: str) -> RowCounts:
        """Delete the rows for which the condition is TRUE, this transaction's own among them."""
        self._may("write")
        return self.rows().delete(to_condition(where))

    def truncate(self) -> RowCounts:
        """Delete every row."""
        self._may("write")
        return self.rows().truncate()

    def update(self, set: Mapping[str, object], where: str | None = None) -> RowCounts:
        """Give columns new values: SQL of the row as it was; text in quotes, as in SQL."""
        self._may("write")
        condition = None if where is None else to_condition(where)
        return self.rows().update(to_values(set), condition)

    def merge(
        self, source: object, on: str, *, target_alias: str = "t", source_alias: str = "s"
    ) -> Merge[RowCounts]:
        """Merge rows by clauses; its execute() makes them part of this transaction."""
        condition, aliases = to_on(on), to_aliases(target_alias, source_alias)
        return Merge(
            lambda clauses, options: self._merged_rows(
                source, options, lambda rows, r: rows.merge(r, condition, clauses, aliases)
            )
        )

    def upsert(self, source: object, *, key: str | Sequence[str] | None = None) -> RowCounts:
        """Update the rows whose key the source has, and insert the others."""
        return self._merged_rows(source, {}, lambda rows, changer: rows.upsert(changer, key))

    def apply_changes(
        self, rows: object, *, key: str | Sequence[str] | None = None, op_column: str = "_op"
    ) -> RowCounts:
        """Apply rows that say INSERT, UPDATE or DELETE in a column, the last of each key."""
        return self._merged_rows(rows, {}, lambda m, r: m.apply_changes(r, key, op_column))

    def restore(
        self,
        *,
        version: int | None = None,
        timestamp: datetime | str | int | None = None,
        ref: str | None = None,
    ) -> None:
        """Make the table what it was; nothing else can be done to it in this transaction."""
        self.stage_restore(to_point(version, timestamp, ref))

    def set_properties(
        self, changed: Mapping[str, str] | None = None, *, removed: Sequence[str] = ()
    ) -> None:
        self._may("alter")
        if not changed and not removed:
            raise NoChanges("no property is set or removed", hint="name one")
        change = SetProperties(check_properties(changed or {}), check_removed(removed))
        self._staged.change(change, "alter")

    def set_formats(self, formats: str | Sequence[str]) -> None:
        self._may("alter")
        wanted = parse_formats(formats)
        if DELTA in wanted and DELTA not in self._staged.state.formats:
            self.draft().check_delta()
        self._staged.change(SetFormats(wanted), "alter")

    def alter(self) -> Alter[None]:
        """Collect schema changes; its commit() makes them part of this transaction."""
        self._may("alter")
        return Alter(self.draft(), lambda steps, _: self.stage_steps(steps))

    def scan(self, *, columns: Sequence[str] | None = None, where: str | None = None) -> Scan:
        """What this transaction sees of the table: its base and its own writes."""
        self._check_open()
        wanted, predicate = to_columns(columns), to_predicate(where)
        self._staged.scanned = True
        return Scan(self._parts, None, lambda: self._plan(wanted, predicate))

    def prepare_append(self, rows: object, *, merge_schema: bool) -> Append:
        self._may("write")
        state, changes = self._staged.state, list[Change]()
        if merge_schema:
            self._may("alter")
            changes, rows = self._merged(rows)
        after = next_state(state, changes)
        files = write_files(self._parts, self._staged.head, after, rows)
        return Append(AppendFiles(tuple(files), after.schema.id), state.id, changes)

    def stage_append(self, append: Append) -> None:
        if append.changes and append.state_id != self._staged.state.id:
            raise CommitConflict(
                f"table {self.name} was altered while rows with new columns were written",
                hint="append the rows again",
                table=self.name,
            )
        for change in append.changes:
            self._staged.change(change, "append")
        self._staged.append(append.files, "append")

    def prepare_overwrite(self, rows: object, *, where: str | None, partitions: bool) -> Overwrite:
        self._may("write")
        if where is not None and partitions:
            raise InvalidInput("give `where` or `partitions`, not both", hint="leave one out")
        condition = None if where is None else to_condition(where)
        state = self._staged.state
        if partitions and not state.spec.fields:
            raise InvalidInput(
                f"table {self.name} is not partitioned", hint="leave `partitions` out"
            )
        exact = condition if condition and condition.is_exact else None
        bound = exact.bound(state.schema) if exact else None
        files = write_files(self._parts, self._staged.head, state, rows, must_match=bound)
        ready = Overwrite(AppendFiles(tuple(files), state.schema.id), condition, partitions)
        if condition is not None and exact is None:
            try:
                self.rows().refuse_unmatched(files, condition)
            except LakebedError:
                self.abandon(ready)
                raise
        return ready

    def stage_overwrite(self, overwrite: Overwrite) -> None:
        if overwrite.where is not None:
            self.rows().clear(overwrite.where, sum(f.record_count for f in overwrite.files.files))
        elif overwrite.partitions:
            self._staged.remove(*self._in_partitions(overwrite))
        else:
            self._staged.remove(self._visible(), TRUE)
        self._staged.append(overwrite.files, "overwrite")

    def abandon(self, ready: object) -> None:
        """Delete the files of rows that were prepared and cannot be staged."""
        append = ready.files if isinstance(ready, Overwrite | Append) else ready
        for file in append.files if isinstance(append, AppendFiles) else ():
            with suppress(LakebedError):
                self._parts.storage.delete(f"{self._staged.head.location}/{file.path}")

    def stage_steps(self, steps: list[Step]) -> None:
        self._may("alter")
        draft = self.draft()
        for step in steps:
            step(draft)
        changes = draft.changes()
        refuse_unfit(draft.new_constraints(), draft.schema, open_bench(self._parts))
        next_state(self._staged.state, changes)  # refused before any of them is staged
        self._check_rows(draft)
        for change in changes:
            self._staged.change(change, "alter")
        self._staged.sees_all_rows |= draft.sees_all_rows

    def stage_restore(self, point: Point) -> RowCounts:
        self._may("write")
        restore(self._parts, self._staged, point)
        return NO_ROWS

    def stage_forward(self, line: Line) -> None:
        self._may("write")
        forward(self._parts, self._staged, line)

    def draft(self) -> Draft:
        """The table as this transaction sees it, to be changed."""
        staged = self._staged
        schemas = [c.schema for c in staged.metadata if isinstance(c, SetSchema)]
        specs = [c.spec for c in staged.metadata if isinstance(c, SetSpec)]
        orders = [c.sort_order for c in staged.metadata if isinstance(c, SetSortOrder)]
        if staged.create is not None:
            schemas.append(staged.create.schema)
            specs.append(staged.create.spec)
        else:
            ledger = self._parts.outbox.ledger(staged.head.id)
            schemas += ledger.schemas()
            specs += ledger.specs()
            orders += ledger.sort_orders()
        has_files = staged.head.live_files > len(staged.removed) or bool(staged.appended)
        return Draft(Basis(staged.state, schemas, specs, orders, has_files))

    def _check_rows(self, draft: Draft) -> None:
        """No row there is may violate a constraint that is new."""
        new = draft.new_constraints()
        if new:
            bench = open_bench(self._parts)
            refuse_violated(new, draft.schema, self._rows_for(draft), bench, self._parts.storage)

    def _rows_for(self, draft: Draft) -> Callable[[Predicate | None], Plan]:
        """Plans over what this transaction sees, as the draft shows it; predicates are unbound."""
        return lambda predicate: make_plan(
            self._staged.head,
            self._staged.head.version,
            draft.schema,
            live=self._visible(),
            specs=self._specs(),
            columns=None,
            predicate=predicate,
            positions=self._positions,
        )

    def _merged(self, rows: object) -> tuple[list[Change], object]:
        draft = self.draft()
        steps, rows = merge_steps(rows, self._staged.state.schema)
        for step in steps:
            step(draft)
        return draft.changes() if steps else [], rows

    def _may(self, action: str) -> None:
        self._check_open()
        require(self._parts.principal, "alter" if action == "alter" else "write", self.name)

    def _visible(self, where: Predicate | None = None) -> list[LiveFile]:
        """At least the files in which the bound predicate can hold; all of them without one."""
        staged = self._staged
        if staged.live is not None:
            return staged.visible(staged.live)
        planner, place = self._parts.planner, (staged.head, staged.head.version)
        if where is None:
            _, staged.live, staged.specs = planner.look(*place)
            return staged.visible(staged.live)
        _, some, visible, staged.specs = planner.select(*place, lambda _: where)
        if len(some) == visible:
            staged.live = some
        staged.known.update((f.id, f) for f in some)
        return staged.visible(some)

    def _count(self) -> int:
        """Of all files that this transaction sees."""
        staged = self._staged
        base = staged.head.live_files if staged.live is None else len(staged.live)
        return base - len(staged.removed) + len(staged.appended)

    def _merged_rows(
        self,
        source: object,
        options: CommitOptions,
        stage: Callable[[MergeRows, RowChanger], RowCounts],
    ) -> RowCounts:
        self._may("write")
        if options:
            raise InvalidInput("a transaction has one set of options", hint="give them to it")
        with open_bench(self._parts, roots=(self._staged.head.location,)) as bench:
            return stage(MergeRows(bench, source), self.rows())

    @property
    def is_changed(self) -> bool:
        """Has this transaction staged anything for the table?"""
        return bool(self._staged.operations)

    def forget_empty(self) -> None:
        """Writes of no rows are no change, where nothing else was staged."""
        staged = self._staged
        if not (staged.appended or staged.removed or staged.metadata or staged.deleted):
            staged.operations.clear()
            staged.reads.clear()

    def touch(self, operation: str) -> None:
        """A new version though nothing changes."""
        self._staged.operations.append(operation)

    def rows(self, prepare: Prepare | None = None, alias: str | None = None) -> RowChanger:
        """Changes of rows, staged at once."""
        self._may("write")
        return RowChanger(
            self._parts, self.name, self._staged, self._visible, self._specs, prepare, alias
        )

    def _positions(self, head: TableHead, files: Sequence[LiveFile]) -> PositionsById:
        planner = self._parts.planner
        return self._staged.positions(files, lambda base: planner.positions(head, base))

    def _specs(self) -> dict[int, PartitionSpec]:
        staged = self._staged
        new = {int(c.spec.id): c.spec for c in staged.metadata if isinstance(c, SetSpec)}
        if staged.create is not None:
            return {staged.create.spec.id: staged.create.spec, **new}
        if staged.specs is None:
            staged.specs = self._parts.planner.specs(staged.head)
        return {**staged.specs, **new}

    def _in_partitions(self, overwrite: Overwrite) -> tuple[list[LiveFile], Predicate]:
        state = self._staged.state
        written = {f.partition for f in overwrite.files.files}
        old, part = in_partitions(
            self._visible(),
            written,
            spec=state.spec,
            specs=self._specs(),
            schema=state.schema,
        )
        if part:
            raise self._refused(part, "they were written under another partitioning")
        return old, partitions_predicate(state.spec, state.schema, sorted(written, key=repr))

    def _refused(self, part: list[LiveFile], why: str) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"{len(part)} data file(s) hold rows that match and rows that may not,"
            f" among them {part[0].file.path}: {why}",
            hint="overwrite by a condition on partition columns, or whole partitions",
            table=self.name,
        )

    def seen(self, where: Predicate) -> Plan:
        """All rows this transaction sees, of files in which the bound condition can hold."""
        self._check_open()
        self._staged.scanned = True
        return pruned_plan(
            self._staged.head,
            self._staged.head.version,
            self._staged.state.schema,
            live=self._visible(where),
            visible=self._count(),
            specs=self._specs(),
            where=where,
            positions=self._positions,
        )

    def _plan(self, columns: tuple[str, ...] | None, predicate: Predicate | None) -> Plan:
        staged = self._staged
        schema = staged.state.schema
        return make_plan(
            staged.head,
            staged.head.version,
            schema,
            live=self._visible(predicate and bind(predicate, schema)),
            visible=self._count(),
            specs=self._specs(),
            columns=columns,
            predicate=predicate,
            positions=self._positions,
        )
