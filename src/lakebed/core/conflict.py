"""Pure: may our changes follow the commits that were made since we looked?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakebed.core.prune import might_match
from lakebed.core.state import upgrades
from lakebed.model.changes import (
    AppendFiles,
    Change,
    DeleteRows,
    RemoveFiles,
    SetComment,
    SetConstraints,
    SetFormats,
    SetProperties,
    SetSchema,
    SetSortOrder,
    SetSpec,
    TableChanges,
)
from lakebed.model.constraints import Constraint
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile
from lakebed.model.history import TableState
from lakebed.model.ids import FileId, SchemaId, Version
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema, files_fit
from lakebed.model.vectors import Positions

_METADATA = (
    SetSchema | SetSpec | SetSortOrder | SetConstraints | SetProperties | SetComment | SetFormats
)


@dataclass(frozen=True, slots=True)
class Since:
    """What one commit did that was made after our base."""

    version: Version
    metadata_changed: bool
    blind_append: bool
    added: Sequence[DataFile]
    removed: frozenset[FileId]  # those that only lost rows among them
    losing: frozenset[FileId] = frozenset()  # those that only lost rows


@dataclass(frozen=True, slots=True)
class Clash:
    with_version: Version
    reason: str


def find_clash(
    ours: TableChanges,
    since: Sequence[Since],
    state: TableState,
    *,
    schemas: dict[SchemaId, Schema],
    specs: dict[int, PartitionSpec],
    serializable: bool,
    deleted: Mapping[FileId, Positions],
    base: TableState | None = None,
) -> Clash | None:
    """The first commit ours cannot follow; None when ours may be rebased onto the head.

    `deleted` are the rows gone by now of the files that lose rows to ours; `base` is the state that
    ours was made on.
    """
    removes = frozenset(i for c in ours.changes if isinstance(c, RemoveFiles) for i in c.file_ids)
    losing = {
        i: p for c in ours.changes if isinstance(c, DeleteRows) for i, p in c.positions.items()
    }
    looking = [c for c in ours.changes if isinstance(c, RemoveFiles | DeleteRows)]
    reads = [c.reads for c in looking if c.reads is not None]
    changes_metadata = any(isinstance(c, _METADATA) for c in ours.changes)
    if not _still_fits(ours, schemas, state.schema):
        changed = [theirs.version for theirs in since if theirs.metadata_changed]
        newest = max(changed, default=ours.base or Version(0))
        return Clash(newest, "the schema changed and the new files do not fit it")
    newest = max((t.version for t in since if t.metadata_changed), default=Version(0))
    if base is not None and not _were_checked(ours, base.constraints, state):
        return Clash(newest, "it added a constraint that the new rows have not passed")
    if looking and upgrades(base, state) and any(_loses_ids(c) for c in ours.changes):
        return Clash(newest, "rows have ids since then, which the rewritten ones would lose")
    for theirs in since:
        if ours.sees_all_rows and theirs.added:
            return Clash(theirs.version, "it added rows that this change has not looked at")
        if theirs.metadata_changed and changes_metadata:
            return Clash(theirs.version, "both change the table's metadata")
        if removes & theirs.removed:
            return Clash(theirs.version, "both remove or change the same data file")
        if losing.keys() & (theirs.removed - theirs.losing):
            return Clash(theirs.version, "it rewrote a data file that this change takes rows from")
        both = losing.keys() & theirs.losing
        if any(losing[i].overlaps(deleted[i]) for i in both if i in deleted):
            return Clash(theirs.version, "both change the same rows")
        if (serializable or not theirs.blind_append) and _touches(
            reads, theirs.added, state.schema, specs
        ):
            return Clash(theirs.version, "it added rows that this change would have had to see")
    return None


def _still_fits(ours: TableChanges, schemas: dict[SchemaId, Schema], current: Schema) -> bool:
    return all(
        files_fit(schemas[c.schema_id], current)
        for c in ours.changes
        if isinstance(c, AppendFiles) and c.schema_id in schemas
    )


def _writes(change: Change) -> bool:
    return isinstance(change, AppendFiles) and bool(change.files)


def _loses_ids(change: Change) -> bool:
    return isinstance(change, AppendFiles) and bool(change.files) and not change.has_row_ids


def _were_checked(ours: TableChanges, passed: Mapping[str, Constraint], state: TableState) -> bool:
    writes = any(_writes(change) for change in ours.changes)
    return not writes or state.constraints.items() <= passed.items()


def _touches(
    reads: Sequence[Predicate],
    added: Sequence[DataFile],
    schema: Schema,
    specs: dict[int, PartitionSpec],
) -> bool:
    return any(
        might_match(predicate, file, specs.get(file.spec_id), schema)
        for predicate in reads
        for file in added
    )
