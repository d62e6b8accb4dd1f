"""A table as a stream: how far one has read, how far one can read next, and what lies between.

Nothing is kept here: the reader keeps its offset, and the same two offsets give the same rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args
from weakref import ref

from lakebed.api.offset import Offset
from lakebed.api.options import check_number
from lakebed.api.parts import Parts
from lakebed.api.read_task import ChangeTask, ReadTask, read_tasks, slim, split_plan
from lakebed.core.scan import chosen_columns, make_plan
from lakebed.model.binding import bind
from lakebed.model.errors import InvalidInput, StreamChanged, VersionNotFound
from lakebed.model.expressions import Predicate
from lakebed.model.history import CommitRecord, TableHead
from lakebed.model.ids import Version
from lakebed.model.schema import Schema
from lakebed.model.types import is_scalar
from lakebed.rowops.feed import refuse_clash
from lakebed.rowops.steps import Step, narrowed, open_to_all, step_of, widest

OnChange = Literal["refuse", "skip", "skip_deletes", "rows"]
LATEST = "latest"


@dataclass(frozen=True, slots=True)
class FollowOptions:
    starting_version: int | Literal["latest"] | None = None
    starting_time_ms: int | None = None
    change_feed: bool = False
    on_change: OnChange = "refuse"
    max_versions: int | None = None
    max_files: int | None = None
    columns: tuple[str, ...] | None = None
    where: Predicate | None = None  # unbound

    def __post_init__(self) -> None:
        if self.starting_version is not None and self.starting_time_ms is not None:
            raise InvalidInput("give a version or a time to start at", hint="leave one out")
        if self.on_change not in get_args(OnChange):
            raise InvalidInput(
                f"on_change is {self.on_change!r}",
                hint=f"use one of {', '.join(get_args(OnChange))}",
            )
        for name in ("max_versions", "max_files"):
            limit = getattr(self, name)
            if limit is not None and check_number(name, limit) < 1:
                raise InvalidInput(f"{name} is {limit}", hint="give at least 1, or leave it out")


class Following:
    """Made for the schema that the table has now: a later one ends the stream with an error."""

    def __init__(self, parts: Parts, line: Callable[[], TableHead], options: FollowOptions) -> None:
        self._parts = parts
        self._line = line
        self._options = options
        head = line()
        self._ledger = parts.outbox.ledger(head.id)
        self._known = head.version
        self._held = -1  # the version from which on rows are being read
        state = parts.planner.state(head, head.version)
        self._shape = _shape(state.schema)
        self._schema = open_to_all(state.schema)
        self._columns = chosen_columns(self._schema, options.columns)
        if options.change_feed:
            refuse_clash(self._columns)
        self._where = None if options.where is None else bind(options.where, self._schema)

    @property
    def schema(self) -> Schema:
        """Of the rows, beside what a change feed tells of them."""
        by_name = {field.name: field for field in self._schema.fields}
        return replace(
            self._schema, fields=tuple(by_name[name] for name in self._columns), primary_key=()
        )

    def first(self) -> Offset:
        """Where a new reader begins: before the table as it is, unless it was told otherwise."""
        head = self._line()
        return replace(self._first_of(head), table=head.uuid)

    def _first_of(self, head: TableHead) -> Offset:
        options = self._options
        if options.starting_time_ms is not None:
            return Offset(self._version_at(head, options.starting_time_ms) - 1)
        if options.starting_version is None:
            return Offset(-1, snapshot=True)
        if options.starting_version == LATEST:
            return Offset(head.version, since=head.version)
        wanted = check_number("starting_version", options.starting_version)
        if not 0 <= wanted <= head.version + 1:
            raise VersionNotFound(
                f"table {head.name} has no version {wanted}",
                hint=f"its versions are 0 to {head.version}",
                version=wanted,
            )
        return Offset(wanted - 1)

    def next(self, position: Offset) -> Offset:
        """As far as the limits let one batch go; the position itself when nothing is new."""
        head = self._line()
        _refuse_other_table(head, position)
        if position.snapshot:
            return replace(self._next_of_snapshot(head, position), table=head.uuid)
        end = self._next_of_versions(head, position)
        if end == position:
            return position
        begins = position.since == position.version
        return replace(end, since=position.since if begins else None, table=head.uuid)

    def tasks(self, start: Offset, end: Offset) -> list[ReadTask] | list[ChangeTask]:
        """What is between two offsets, for workers to read; kept until other ones are asked for."""
        if start == end:
            return []
        self._hold(end.version if start.snapshot else max(start.version, 0))
        _refuse_other_table(self._line(), end)
        if end.since is not None:
            start = Offset(end.since)
        if start.version > end.version:
            raise InvalidInput(
                f"the stream was at version {start.version} and would go back to {end.version}",
                hint="the table or the checkpoint is not the one that this stream was made for",
            )
        parts = list(self._parts_between(start, end))
        if self._options.change_feed:
            return [task for step in parts for task in self._change_tasks(step)]
        uri = self._parts.storage.root_uri
        return [
            task
            for step in parts
            for task in read_tasks(uri, narrowed(step.came, self._columns, self._where))
        ]

    def _hold(self, version: int) -> None:
        """What comes after a version is kept with it."""
        self._held, this = version, ref(self)
        head = self._line()

        def in_use() -> bool:
            alive = this()
            return alive is not None and alive._held == version  # noqa: SLF001 - of this class

        self._parts.holding.keep(head.id, Version(version), in_use)

    def _parts_between(self, start: Offset, end: Offset) -> Iterator[Step]:
        head = self._line()
        if start.snapshot:
            whole = self._snapshot(head, Version(end.version))
            yield _some_files(whole, start.files, end.files or None)
            return
        commits = self._commits(start, end.version)
        self._refuse_wider(head, commits)
        for commit in commits:
            step = self._step(head, commit)
            if step is not None:
                first = start.files if commit.version == start.version else 0
                last = end.files or None if commit.version == end.version else None
                yield _some_files(step, first, last)

    def _next_of_snapshot(self, head: TableHead, position: Offset) -> Offset:
        version = head.version if position.version < 0 else Version(position.version)
        self._refuse_altered(head, version)
        most = self._options.max_files
        if most is None:
            return Offset(version)
        there = len(self._snapshot(head, version).came.files)
        taken = position.files + most
        return Offset(version) if taken >= there else Offset(version, taken, snapshot=True)

    def _next_of_versions(self, head: TableHead, position: Offset) -> Offset:
        end, options = position, self._options
        room = options.max_files
        for count, commit in enumerate(self._commits(position, head.version)):
            if count == options.max_versions:
                break
            if self._is_altered(commit):
                if end == position:
                    self._refuse_altered(head, commit.version)
                break
            if room is None:
                end = Offset(commit.version)
                continue
            done = position.files if commit.version == position.version else 0
            files = self._files_of(head, commit)
            if files - done > room and not options.change_feed and room > 0:
                return Offset(commit.version, done + room)
            if files - done > room and end != position:
                break
            room -= files - done
            end = Offset(commit.version)
        return end

    def _files_of(self, head: TableHead, commit: CommitRecord) -> int:
        step = self._step(head, commit)
        return 0 if step is None else len(step.gone.files) + len(step.came.files)

    def _commits(self, start: Offset, last: int) -> list[CommitRecord]:
        """In order; of a version that is read in part too."""
        count = last - start.version + (1 if start.files else 0)
        if count <= 0:
            return []
        line = self._line().line
        return self._ledger.commits_until(Version(last), line, count)[::-1]

    def _step(self, head: TableHead, commit: CommitRecord) -> Step | None:
        """What a version did, as far as it is wanted; None: nothing of it is."""
        view = self._ledger.view(commit.version, commit.line)
        step = step_of(view, self._schema, lambda live: self._parts.planner.positions(head, live))
        if self._options.change_feed or not step.gone.files:
            return step
        on_change = self._options.on_change
        if on_change == "skip" or (on_change != "refuse" and not step.came.files):
            return None
        if on_change == "rows":
            return replace(step, gone=replace(step.gone, files=(), deleted={}))
        raise StreamChanged(
            f"version {commit.version} of table {head.name} ({commit.operation}) took rows away,"
            " and this stream only knows rows that are added",
            hint="read the change feed, or say what such versions mean: skipChangeCommits,"
            " ignoreDeletes or ignoreChanges (on_change= in Python)",
            table=str(head.name),
            version=commit.version,
        )

    def _snapshot(self, head: TableHead, version: Version) -> Step:
        """The table as a whole, as if one version had added it."""
        commit = self._parts.catalog.resolve(head, version=version, time_ms=None)
        look = self._parts.planner.look(head, version)
        came = make_plan(
            head,
            version,
            self._schema,
            live=sorted(look.live, key=lambda each: each.id),
            specs=look.specs,
            columns=None,
            predicate=None,  # which files there are must not depend on it
            positions=self._parts.planner.positions,
        )
        return Step(version, commit.time_ms, replace(came, files=(), deleted={}), came, False)

    def _change_tasks(self, step: Step) -> list[ChangeTask]:
        if step.gone.files:
            gone, came = slim(step.gone, step.gone.files), slim(step.came, step.came.files)
            steps = [replace(step, gone=gone, came=came)]
        else:
            steps = [replace(step, came=part) for part in split_plan(step.came)]
        parts = self._parts
        memory = int(parts.settings.value("query.memory-limit")) or None
        uri = parts.storage.root_uri
        return [
            ChangeTask(uri, each, self._schema, self._columns, self._where, memory)
            for each in steps
        ]

    def _refuse_wider(self, head: TableHead, commits: Sequence[CommitRecord]) -> None:
        """After a restore a type may be narrower than values of the versions between."""
        states = [self._ledger.state(i) for i in sorted({c.state_id for c in commits})]
        if widest(self._schema, states) != self._schema:
            raise StreamChanged(
                f"versions {commits[0].version} to {commits[-1].version} of table {head.name} have"
                " a column of a wider type than the table has now",
                hint="begin a new stream, after the version that restored the narrower type",
                table=str(head.name),
            )

    def _version_at(self, head: TableHead, time_ms: int) -> int:
        """The first version that is not older."""
        if time_ms > head.time_ms:
            raise VersionNotFound(
                f"table {head.name} has no version of that time or later yet",
                hint=f"start at {LATEST} to read only what comes from now on",
            )
        try:
            found = self._parts.catalog.resolve(head, version=None, time_ms=time_ms)
        except VersionNotFound:
            return 0  # before there was a table
        return found.version if found.time_ms == time_ms else found.version + 1

    def _is_altered(self, commit: CommitRecord) -> bool:
        if commit.version <= self._known:
            return False  # older rows are read as the newer columns
        return _shape(self._ledger.state(commit.state_id).schema) != self._shape

    def _refuse_altered(self, head: TableHead, version: Version) -> None:
        commit = self._parts.catalog.resolve(head, version=version, time_ms=None)
        if self._is_altered(commit):
            raise StreamChanged(
                f"version {version} of table {head.name} changed its columns, and everything"
                " before it has been read",
                hint="start the query again: it goes on from here with the new columns",
                table=str(head.name),
                version=version,
            )


def _shape(schema: Schema) -> list[tuple[object, ...]]:
    """What a reader sees of the columns: comments and NOT NULL are not among it."""
    return [(f.id, f.name, f.type if is_scalar(f.type) else type(f.type)) for f in schema.walk()]


def _refuse_other_table(head: TableHead, offset: Offset) -> None:
    if offset.table not in (None, head.uuid):
        raise StreamChanged(
            f"table {head.name} is another one than this stream was made for",
            hint="begin a new stream, with a checkpoint of its own",
            table=str(head.name),
        )


def _some_files(step: Step, first: int, last: int | None) -> Step:
    """A part of what a version added; versions that took something away are whole."""
    if first == 0 and last is None:
        return step
    return replace(step, came=slim(step.came, step.came.files[first:last]))
