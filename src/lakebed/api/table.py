"""A table: read it, write it, look at its history. Every write is a commit of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal, TypeVar, Unpack

import pyarrow as pa

from lakebed.api.alter import Alter, Step
from lakebed.api.changes import Changes
from lakebed.api.changing import RowCommit, Stage, unchanged
from lakebed.api.following import Following, FollowOptions, OnChange
from lakebed.api.intake import Intake
from lakebed.api.merge import Merge, MergeRows, to_aliases, to_on
from lakebed.api.options import (
    CommitOptions,
    Options,
    check_number,
    check_options,
    digest_of,
    refuse_keys,
)
from lakebed.api.parts import Parts
from lakebed.api.points import Point, to_point
from lakebed.api.refs import HasRefs, list_commits
from lakebed.api.rowops import RowChanger, open_bench, to_condition, to_values
from lakebed.api.scan import Scan, to_columns, to_predicate, to_time_ms
from lakebed.api.transaction import Transaction, conflict_error, replay
from lakebed.api.txtable import TransactionTable
from lakebed.api.writer import Limits, Writer
from lakebed.core.commit import Committed
from lakebed.core.plan import Plan
from lakebed.core.scan import make_plan
from lakebed.engines.arrow.types import arrow_type, to_arrow
from lakebed.model.binding import bind
from lakebed.model.counts import RowCounts
from lakebed.model.errors import InvalidInput, LakebedError
from lakebed.model.expressions import Predicate
from lakebed.model.history import MAIN, Commit, TableHead, TableState
from lakebed.model.ids import TableId
from lakebed.model.partitioning import PartitionSpec, SortOrder
from lakebed.model.properties import check_properties, check_removed
from lakebed.model.schema import Schema
from lakebed.model.types import Stored
from lakebed.rowops.clause import Clause
from lakebed.security.policy import Action, require

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A data file of a version; `path` is relative to the table's location."""

    path: str
    size_bytes: int
    record_count: int
    partition: Mapping[str, object]
    added_version: int
    deleted_rows: int = 0


def _partition(
    spec: PartitionSpec, schema: Schema, values: Sequence[Stored | None]
) -> dict[str, object]:
    """Partition values as Python's own: a date for `day(ts)`, not a number of days."""
    kinds = spec.types(schema)
    return {
        field.name: pa.scalar(value, arrow_type(kind)).as_py()
        for field, kind, value in zip(spec.fields, kinds, values, strict=True)
    }


class Table(HasRefs):
    """A handle: thread-safe, always at the newest version unless told otherwise.

    Opened by `name@ref` it is the table as a branch or tag has it, for reads and writes alike.
    """

    def __init__(self, parts: Parts, head: TableHead, ref: str | None = None) -> None:
        self._parts = parts
        self._id = head.id
        self._name = str(head.name)
        self._ref = ref

    @property
    def name(self) -> str:
        return str(self._head("read").name)

    @property
    def id(self) -> TableId:
        return self._id

    @property
    def version(self) -> int:
        return self._head("read").version

    @property
    def location(self) -> str:
        """The folder that Delta and Iceberg readers open."""
        return self._parts.storage.location(self._head("read").location)

    @property
    def schema(self) -> Schema:
        return self._state().schema

    @property
    def arrow_schema(self) -> pa.Schema:
        return to_arrow(self._state().schema)

    @property
    def partitioning(self) -> PartitionSpec:
        return self._state().spec

    @property
    def sort_order(self) -> SortOrder:
        return self._state().sort_order

    @property
    def properties(self) -> Mapping[str, str]:
        return self._state().properties

    @property
    def formats(self) -> tuple[str, ...]:
        return self._state().formats

    @property
    def comment(self) -> str | None:
        return self._state().comment

    @property
    def constraints(self) -> Mapping[str, str]:
        """The CHECK constraints: names to conditions."""
        return {name: each.sql for name, each in self._state().constraints.items()}

    @property
    def uuid(self) -> str:
        return self._head("read").uuid

    @property
    def row_count(self) -> int:
        """Rows at the newest version, known without reading a file."""
        return self._head("read").live_rows

    def append(
        self, rows: object, *, merge_schema: bool = False, **options: Unpack[CommitOptions]
    ) -> Commit:
        """Add rows: Arrow, batches, pandas, Polars or a list of dicts, each checked first.

        With `merge_schema` the table gets columns and struct members that only the rows have, and
        wider types where theirs are, in the same commit.
        """
        return self._write(
            "append",
            options,
            prepare=lambda table: table.prepare_append(rows, merge_schema=merge_schema),
            stage=lambda table, ready: table.stage_append(ready),
            request=("merge_schema",) if merge_schema else (),
        )

    def writer(
        self,
        *,
        max_rows: int = 100_000,
        max_seconds: float | None = 1.0,
        max_bytes: int = 64 * 2**20,
        **options: Unpack[CommitOptions],
    ) -> Writer:
        """Gather small writes: `with table.writer(max_seconds=1) as w: w.write({"id": 1})`.

        A flush, by whichever limit comes first, is one commit with these options. Rows are checked
        when they are written; a crash loses those that were not flushed.
        """
        check_options(refuse_keys(options))

        def look() -> Intake:
            head = self._head("write", options.get("branch"))
            return Intake(self._parts, self._parts.catalog.state(head, head.state_id))

        def append(batches: Sequence[pa.RecordBatch], key: str) -> Commit:
            keyed: CommitOptions = {**options, "idempotency_key": key}
            return self.append(batches, **keyed)

        return Writer(look, append, Limits(max_rows, max_seconds, max_bytes))

    def overwrite(
        self,
        rows: object,
        *,
        where: str | None = None,
        partitions: bool = False,
        **options: Unpack[CommitOptions],
    ) -> Commit:
        """Replace every row, those that match `where`, or the partitions the new rows fall in."""
        return self._write(
            "overwrite",
            options,
            prepare=lambda t: t.prepare_overwrite(rows, where=where, partitions=partitions),
            stage=lambda table, ready: table.stage_overwrite(ready),
            request=(where, partitions),
        )

    def delete(self, where: str, **options: Unpack[CommitOptions]) -> Commit:
        """Delete the rows for which the condition is TRUE; where it is NULL they stay."""
        condition = to_condition(where)
        return self.change("delete", options, lambda t: t.rows().delete(condition), (where,))

    def truncate(self, **options: Unpack[CommitOptions]) -> Commit:
        """Delete every row; older versions keep them."""
        return self.change("truncate", options, lambda table: table.truncate(), ())

    def update(
        self,
        set: Mapping[str, object],
        where: str | None = None,
        **options: Unpack[CommitOptions],
    ) -> Commit:
        """Give columns new values where the condition is TRUE: `update({"n": "n + 1"}, "id = 5")`.

        Values are SQL over the row as it was, or values of Python; a member of a struct is named by
        its path, as in `address.city`.
        """
        values = to_values(set)
        condition = None if where is None else to_condition(where)
        return self.change(
            "update",
            options,
            lambda table: table.rows().update(values, condition),
            (sorted(values.items()), where),
        )

    def merge(
        self, source: object, on: str, *, target_alias: str = "t", source_alias: str = "s"
    ) -> Merge[Commit]:
        """Merge rows by clauses: `merge(rows, "t.id = s.id").when_matched_update_all().execute()`.

        The source is anything that `append` takes, a table, or a scan; it is read once.
        """
        condition, aliases = to_on(on), to_aliases(target_alias, source_alias)

        def run(clauses: tuple[Clause, ...], options: CommitOptions) -> Commit:
            return self._merge_rows(
                source,
                options,
                lambda rows, changer: rows.merge(changer, condition, clauses, aliases),
                ("merge", on, aliases, *map(str, clauses)),
            )

        return Merge(run)

    def upsert(
        self,
        source: object,
        *,
        key: str | Sequence[str] | None = None,
        **options: Unpack[CommitOptions],
    ) -> Commit:
        """Update the rows whose key the source has, and insert the others.

        `key` is the primary key unless given.
        """
        request = ("upsert",) if key is None else ("upsert", key)
        return self._merge_rows(source, options, lambda rows, r: rows.upsert(r, key), request)

    def apply_changes(
        self,
        rows: object,
        *,
        key: str | Sequence[str] | None = None,
        op_column: str = "_op",
        **options: Unpack[CommitOptions],
    ) -> Commit:
        """Apply a change stream: rows that say INSERT, UPDATE or DELETE in a column.

        `key` is the primary key unless given. The last row of a key counts; INSERT and UPDATE both
        make the row what it says, and to delete what is not there changes nothing.
        """
        return self._merge_rows(
            rows,
            options,
            lambda merging, changer: merging.apply_changes(changer, key, op_column),
            ("apply_changes", key, op_column),
        )

    def restore(
        self,
        *,
        version: int | None = None,
        timestamp: datetime | str | int | None = None,
        ref: str | None = None,
        **options: Unpack[CommitOptions],
    ) -> Commit:
        """Make the table what it was, in a commit that adds no data; later versions stay."""
        point = to_point(version, timestamp, ref)
        return self.change(
            "restore",
            options,
            lambda table: table.stage_restore(point),
            (point.version, point.time_ms, point.ref),
        )

    def fast_forward(
        self, name: str = MAIN, *, to: str, **options: Unpack[CommitOptions]
    ) -> Commit:
        """Give main everything that a branch has, in one commit: `fast_forward("main", to="b")`."""
        line = self._forward_line(options.get("branch") or name, to)
        options["branch"] = MAIN  # whatever branch this handle is of
        return self._write(
            "fast-forward",
            options,
            prepare=lambda _: None,
            stage=lambda table, _: table.stage_forward(line),
            request=(to,),
        )

    def changes(
        self,
        *,
        from_version: int | None = None,
        to_version: int | None = None,
        from_timestamp: datetime | str | int | None = None,
        to_timestamp: datetime | str | int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        ref: str | None = None,
    ) -> Changes:
        """The rows that came, went and changed after one version, up to another one.

        Without a beginning the rows of version 0 are the first changes. `_op` is insert, delete,
        update_before or update_after, `_version` and `_time` are those of the commit.
        """
        first = to_point(from_version, from_timestamp)
        last = to_point(to_version, to_timestamp, ref)
        return Changes(
            self._parts,
            self._line(last),
            first,
            last,
            columns=to_columns(columns),
            where=to_predicate(where),
        )

    def follow(
        self,
        *,
        starting_version: int | Literal["latest"] | None = None,
        starting_timestamp: datetime | str | int | None = None,
        change_feed: bool = False,
        on_change: OnChange = "refuse",
        max_versions: int | None = None,
        max_files: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
    ) -> Following:
        """Read the table as a stream: first as it is, or from a version or time on, what is added.

        With `change_feed` rows that change and go are told too; without it `on_change` says what
        a version means that takes rows away: refuse, skip, skip_deletes, or rows (what it added).
        """
        time_ms = None if starting_timestamp is None else to_time_ms(starting_timestamp)
        options = FollowOptions(
            starting_version,
            time_ms,
            change_feed,
            on_change,
            max_versions,
            max_files,
            to_columns(columns),
            to_predicate(where),
        )
        return Following(self._parts, lambda: self._line(Point()), options)

    def last_txn(self, application: str) -> int | None:
        """The number of the last commit that an application made with `txn`, if it made one."""
        head = self._head("read", MAIN)
        known = self._parts.outbox.ledger(head.id).app_transactions(head.version)
        return next((number for app, number, _ in known if app == application), None)

    def set_properties(
        self,
        changed: Mapping[str, str] | None = None,
        *,
        removed: Sequence[str] = (),
        **options: Unpack[CommitOptions],
    ) -> Commit:
        request = (sorted(check_properties(changed or {}).items()), sorted(check_removed(removed)))
        return self._write(
            "set-properties",
            options,
            prepare=lambda _: None,
            stage=lambda table, _: table.set_properties(changed, removed=removed),
            request=request,
        )

    def set_formats(self, formats: str | Sequence[str], **options: Unpack[CommitOptions]) -> Commit:
        """Choose what the table publishes; a format turned on starts at the new version."""
        return self._write(
            "set-formats",
            options,
            prepare=lambda _: None,
            stage=lambda table, _: table.set_formats(formats),
            request=(formats,),
        )

    def alter(self, **options: Unpack[CommitOptions]) -> Alter[Commit]:
        """Collect changes of columns, key, partitioning and the like; they become one commit."""
        head = self._head("alter", options.get("branch"))
        draft = Transaction(self._parts, check_options(options)).pin(head).draft()
        return Alter(draft, lambda steps, words: self._alter(steps, words, options))

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        timestamp: datetime | str | int | None = None,
        ref: str | None = None,
    ) -> Scan:
        """Rows of a version (the newest one by default), as columns and a condition choose them.

        With `ref` the rows of a tag, or of a branch, whose versions `version` then counts.
        """
        point = to_point(version, timestamp, ref)
        head = self._line(point)
        wanted, predicate = to_columns(columns), to_predicate(where)
        return Scan(self._parts, self._id, lambda: self._plan(head, point, wanted, predicate))

    def to_arrow(self) -> pa.Table:
        return self.scan().to_arrow()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The newest rows, for everything that takes Arrow streams: `other.append(table)`."""
        return self.scan().to_batches().__arrow_c_stream__(requested_schema)

    def history(self, limit: int = 1000, *, ref: str | None = None) -> list[Commit]:
        """The newest commits, newest first; of a branch those of main before it began too."""
        head = self._head("read", ref)
        if check_number("limit", limit) < 0:
            raise InvalidInput(f"limit {limit} is below zero", hint="give the most commits to list")
        return list_commits(self._parts, head, limit)

    def files(
        self,
        *,
        version: int | None = None,
        timestamp: datetime | str | int | None = None,
        ref: str | None = None,
    ) -> list[FileEntry]:
        plan = self.scan(version=version, timestamp=timestamp, ref=ref).plan()
        specs = self._parts.planner.specs(self._head("read"))
        return [
            FileEntry(
                f.file.path,
                f.file.size_bytes,
                f.file.record_count,
                _partition(specs[f.file.spec_id], plan.schema, f.file.partition),
                f.added_version,
                f.vector.cardinality if f.vector else 0,
            )
            for f in plan.files
        ]

    def _head(self, action: Action, ref: str | None = None) -> TableHead:
        """The table now, on the branch that is named here or by this handle; main otherwise."""
        require(self._parts.principal, action, self._name)
        main = self._parts.catalog.get(self._id, self._name)
        name = ref or self._ref
        if name is None:
            return main
        refs = self._parts.refs
        return refs.on_ref(main, name) if action == "read" else refs.on_branch(main, name)

    def _line(self, point: Point) -> TableHead:
        main = self._head("read", MAIN)
        return replace(point, ref=point.ref or self._ref).head(self._parts, main)

    def _state(self) -> TableState:
        head = self._head("read")
        return self._parts.catalog.state(head, head.state_id)

    def _plan(
        self,
        head: TableHead,
        point: Point,
        columns: tuple[str, ...] | None,
        predicate: Predicate | None,
    ) -> Plan:
        commit = point.commit(self._parts, head)
        state, live, visible, specs = self._parts.planner.select(
            head, commit.version, lambda schema: predicate and bind(predicate, schema)
        )
        return make_plan(
            head,
            commit.version,
            state.schema,
            live=live,
            visible=visible,
            specs=specs,
            columns=columns,
            predicate=predicate,
            positions=self._parts.planner.positions,
        )

    def _alter(self, steps: list[Step], words: list[str], options: CommitOptions) -> Commit:
        return self._write(
            "alter",
            options,
            prepare=lambda _: None,
            stage=lambda table, _: table.stage_steps(steps),
            request=tuple(words),
        )

    def _write(
        self,
        operation: str,
        given: CommitOptions,
        *,
        prepare: Callable[[TransactionTable], R],
        stage: Callable[[TransactionTable, R], None],
        request: tuple[object, ...] = (),
    ) -> Commit:
        """One commit; after a conflict only the metadata is done again, on the new head."""
        options = check_options(given)
        head = self._head("write", options.branch)
        digest = self._digest(operation, head, options, request)
        earlier = self._answered(options, digest)
        if earlier is not None:
            return earlier
        transaction = Transaction(self._parts, options, digest)
        table = transaction.pin(head)
        ready = prepare(table)
        retries = int(self._parts.settings.value("commit.retries"))
        while True:
            try:
                stage(table, ready)
            except LakebedError:
                table.abandon(ready)  # refused on the new head: what was written has no place
                raise
            outcome = transaction.attempt()
            if isinstance(outcome, Committed):
                return next(iter(transaction.commits.values()))
            if retries == 0:
                transaction.discard()
                raise conflict_error(outcome)
            transaction.discard_copies()
            retries -= 1
            transaction = Transaction(self._parts, options, digest)
            table = transaction.pin(self._head("write", options.branch))

    def _merge_rows(
        self,
        source: object,
        options: CommitOptions,
        stage: Callable[[MergeRows, RowChanger], RowCounts],
        request: tuple[object, ...],
    ) -> Commit:
        roots = (self._head("write").location,)
        with open_bench(self._parts, roots=roots) as bench:
            rows = MergeRows(bench, source)  # read once, however often the merge is tried
            return self.change("merge", options, lambda table: stage(rows, table.rows()), request)

    def change(
        self, operation: str, given: CommitOptions, stage: Stage, request: tuple[object, ...]
    ) -> Commit:
        """One commit of a change of rows, or none when no row is met."""
        options = check_options(given)
        head = self._head("write", options.branch)
        digest = self._digest(operation, head, options, request)
        earlier = self._answered(options, digest)
        if earlier is not None:
            return replace(earlier, operation=operation) if not earlier.changed else earlier
        now = partial(self._head, "write", options.branch)
        return RowCommit(self._parts, operation, options, digest, head, now, stage).run()

    def _digest(
        self, operation: str, head: TableHead, options: Options, request: tuple[object, ...]
    ) -> str:
        branch = options.branch or self._ref
        return digest_of(operation, head.uuid, *request, *([branch] if branch else []))

    def _answered(self, options: Options, digest: str) -> Commit | None:
        """The commit an idempotency key or application transaction made before, if it did."""
        if options.idempotency_key is None:
            return None
        places = self._parts.committer.answered(
            self._parts.principal.name, options.idempotency_key, digest
        )
        if places is None:
            return None
        if not places:
            head = self._head("write", options.branch)
            return unchanged(head, "nothing", options, replayed=True)
        return next(iter(replay(self._parts, places, options.publish).values()))
