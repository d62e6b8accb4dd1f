"""Pure: may our changes follow the commits that were made since we looked?"""

from collections.abc import Sequence
from dataclasses import dataclass

from lakebed.core.prune import might_match
from lakebed.model.changes import (
    AppendFiles,
    RemoveFiles,
    SetFormats,
    SetProperties,
    SetSchema,
    TableChanges,
)
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile
from lakebed.model.history import TableState
from lakebed.model.ids import FileId, SchemaId, Version
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema, files_fit


@dataclass(frozen=True, slots=True)
class Since:
    """What one commit did that was made after our base."""

    version: Version
    metadata_changed: bool
    blind_append: bool
    added: Sequence[DataFile]
    removed: frozenset[FileId]


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
) -> Clash | None:
    """The first commit ours cannot follow; None when ours may be rebased onto the head."""
    removes = frozenset(i for c in ours.changes if isinstance(c, RemoveFiles) for i in c.file_ids)
    reads = [c.reads for c in ours.changes if isinstance(c, RemoveFiles) and c.reads is not None]
    changes_metadata = any(
        isinstance(c, SetSchema | SetProperties | SetFormats) for c in ours.changes
    )
    if not _still_fits(ours, schemas, state.schema):
        changed = [theirs.version for theirs in since if theirs.metadata_changed]
        newest = max(changed, default=ours.base or Version(0))
        return Clash(newest, "the schema changed and the new files do not fit it")
    for theirs in since:
        if theirs.metadata_changed and changes_metadata:
            return Clash(theirs.version, "both change the table's metadata")
        if removes & theirs.removed:
            return Clash(theirs.version, "both remove the same data file")
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
