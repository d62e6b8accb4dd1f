"""Planning: a version and a predicate in, the files that can hold matching rows out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lakebed.core.index import FileIndex
from lakebed.core.ledger import typing_and_specs
from lakebed.core.lines import find_commit
from lakebed.core.plan import Plan
from lakebed.core.prune import might_match
from lakebed.meta import commits, files, tables, vectors
from lakebed.meta.store import Store, Tx
from lakebed.model.binding import bind
from lakebed.model.errors import InvalidInput
from lakebed.model.expressions import TRUE, And, Column, Compare, IsNull, Or, Predicate
from lakebed.model.files import LiveFile
from lakebed.model.history import TableHead, TableState
from lakebed.model.ids import MAIN_LINE, FileId, TableId, Version
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.types import DecimalType, Field, FixedType, Primitive, Stored
from lakebed.model.vectors import Positions

_MOST_PARTITIONS = 100


class Look(NamedTuple):
    """A version's state, every file visible at it, and every spec the table ever had."""

    state: TableState
    live: list[LiveFile]
    specs: dict[int, PartitionSpec]


class Selection(NamedTuple):
    """A version's state, its files that a predicate may match, the number of all its files, and
    every spec the table ever had."""

    state: TableState
    live: list[LiveFile]
    visible: int
    specs: dict[int, PartitionSpec]


# A predicate for the schema of the version that is looked at, bound to it; None: all rows.
Where = Callable[[Schema], Predicate | None]


class Planner:
    def __init__(self, store: Store, index: FileIndex) -> None:
        self._store = store
        self._index = index

    def look(self, head: TableHead, version: Version) -> Look:
        with self._store.read() as tx:
            state = _state_at(tx, head, version)
            typing, specs = typing_and_specs(tx, head.id)
            live = _files_at(tx, head, version, typing)
            return Look(state, live, {int(s.id): s for s in specs})

    def select(self, head: TableHead, version: Version, where: Where) -> Selection:
        """At least the files that can match; those that cannot are left out as far as the index
        knows."""
        with self._store.read() as tx:
            state = _state_at(tx, head, version)
            typing, specs = typing_and_specs(tx, head.id)
            by_id = {int(s.id): s for s in specs}
            predicate = where(state.schema)
            found = None
            visible = _count_at(tx, head, version) if predicate is not None else None
            if predicate is not None and visible is not None:
                found = self._index.find(tx, head, predicate, by_id)
            if found is None or visible is None:
                live = _files_at(tx, head, version, typing)
                visible = len(live)
            else:
                live = files.files_among(
                    tx,
                    head.id,
                    version,
                    typing,
                    ids=found.ids,
                    beyond=found.beyond,
                    line=head.line,
                )
        return Selection(state, live, visible, by_id)

    def build_index(self, table_id: TableId) -> int:
        """Now, where commits would do it later; the number of files that are indexed then."""
        return self._index.build(table_id)

    def state(self, head: TableHead, version: Version) -> TableState:
        with self._store.read() as tx:
            return _state_at(tx, head, version)

    def positions(self, head: TableHead, live: Sequence[LiveFile]) -> dict[FileId, Positions]:
        """The rows that are gone, of those files that have lost some."""
        losing = {f.id: f.vector.id for f in live if f.vector is not None}
        if not losing:
            return {}
        with self._store.read() as tx:
            bitmaps = vectors.get_bitmaps(tx, head.id, list(losing.values()))
        return {i: Positions.from_bytes(bitmaps[vector]) for i, vector in losing.items()}

    def with_row_ids(self, head: TableHead, live: Sequence[LiveFile]) -> list[LiveFile]:
        """Files with the row ids that the upgrade to Iceberg v3 will give them.

        What a change that upgrades writes can then carry the ids of the rows it changed.
        """
        with self._store.read() as tx:
            starts = files.row_starts(tx, head.id)
        return [replace(f, first_row_id=starts.get(f.id)) for f in live]

    def specs(self, head: TableHead) -> dict[int, PartitionSpec]:
        with self._store.read() as tx:
            return {s.id: s for s in tables.list_specs(tx, head.id)}


def _files_at(tx: Tx, head: TableHead, version: Version, typing: files.Typing) -> list[LiveFile]:
    if version == head.version and head.line == MAIN_LINE:
        current = tables.get_table(tx, head.id)
        if current is not None and current.version == version:
            return files.live_files(tx, head.id, typing)
    return files.files_at(tx, head.id, version, typing, head.line)


def _count_at(tx: Tx, head: TableHead, version: Version) -> int | None:
    """The number of files visible at a version, if it is known without counting them."""
    if version == head.version:
        return head.live_files
    commit = find_commit(tx, head.id, version, head.line)
    if commit is None or commit.snapshot_id is None:
        return None
    snapshot = commits.get_snapshot(tx, head.id, commit.snapshot_id)
    told = snapshot.summary.get("total-data-files") if snapshot else None
    return None if told is None else int(told)


def _state_at(tx: Tx, head: TableHead, version: Version) -> TableState:
    commit = find_commit(tx, head.id, version, head.line)
    assert commit is not None, (head.name, version)
    # A branch shows the rows it has in the schema that the table has now.
    newest = head.line != MAIN_LINE and version == head.version
    return tables.get_state(tx, head.id, head.state_id if newest else commit.state_id)


# Gives the rows that are gone of some files: asked for those that are read, and no others.
PositionsOf = Callable[[TableHead, Sequence[LiveFile]], Mapping[FileId, Positions]]


def make_plan(
    head: TableHead,
    version: Version,
    schema: Schema,
    *,
    live: Sequence[LiveFile],
    specs: dict[int, PartitionSpec],
    columns: Sequence[str] | None,
    predicate: Predicate | None,
    positions: PositionsOf,
    visible: int | None = None,
) -> Plan:
    """`visible` is the number of all files, where those that cannot match are left out."""
    bound = bind(predicate, schema) if predicate is not None else None
    kept = [
        f
        for f in live
        if bound is None or might_match(bound, f.file, specs.get(f.file.spec_id), schema)
    ]
    return Plan(
        root=head.location,
        version=version,
        schema=schema,
        columns=chosen_columns(schema, columns),
        predicate=bound,
        files=tuple(kept),
        pruned=(len(live) if visible is None else visible) - len(kept),
        deleted=positions(head, kept),
        specs=specs,
    )


def pruned_plan(
    head: TableHead,
    version: Version,
    schema: Schema,
    *,
    live: Sequence[LiveFile],
    specs: dict[int, PartitionSpec],
    where: Predicate,
    positions: PositionsOf,
    visible: int | None = None,
) -> Plan:
    """For an engine that applies its own condition: every row of the files where one can match.

    `where` is bound, and may be less than the condition.
    """
    kept = [f for f in live if might_match(where, f.file, specs.get(f.file.spec_id), schema)]
    return Plan(
        root=head.location,
        version=version,
        schema=schema,
        columns=chosen_columns(schema, None),
        predicate=None,
        files=tuple(kept),
        pruned=(len(live) if visible is None else visible) - len(kept),
        deleted=positions(head, kept),
        specs=specs,
    )


def partitions_predicate(
    spec: PartitionSpec, schema: Schema, partitions: Sequence[tuple[Stored | None, ...]]
) -> Predicate:
    """The rows of some partitions; TRUE where transforms hide which rows those are."""
    has_nan = any(v != v for values in partitions for v in values)  # noqa: PLR0124 - NaN alone
    if not spec.is_identity or has_nan or len(partitions) > _MOST_PARTITIONS:
        return TRUE
    fields = [schema.field(p.source_id) for p in spec.fields]
    return Or(
        tuple(
            And(tuple(_equals(f, schema, v) for f, v in zip(fields, values, strict=True)))
            for values in partitions
        )
    )


def _equals(field: Field, schema: Schema, value: Stored | None) -> Predicate:
    path = tuple(f.name for f in schema.path_of(field.id))
    assert isinstance(field.type, Primitive | DecimalType | FixedType)
    column = Column(path, field.id, field.type)
    return IsNull(column) if value is None else Compare(column, "=", value)


def chosen_columns(schema: Schema, wanted: Sequence[str] | None) -> tuple[str, ...]:
    if wanted is None:
        return tuple(f.name for f in schema.fields)
    found = []
    for name in wanted:
        field = schema.find((name,))
        if field is None:
            raise InvalidInput(
                f"there is no column {name!r}",
                hint=f"the columns are: {', '.join(f.name for f in schema.fields)}",
                column=name,
            )
        found.append(field.name)
    if len(set(found)) != len(found):
        raise InvalidInput("a column is asked for twice", hint="name each column once")
    return tuple(found)
