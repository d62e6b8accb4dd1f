"""What a commit does to one table, as values, and what must hold for it to follow other commits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.model.constraints import Constraint
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile
from lakebed.model.ids import MAIN_LINE, FileId, Line, SchemaId, TableId, Version
from lakebed.model.names import TableName
from lakebed.model.partitioning import PartitionSpec, SortOrder
from lakebed.model.runs import RunAttachment
from lakebed.model.schema import Schema
from lakebed.model.vectors import Positions


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Version 0: a table appears, with or without data."""

    name: TableName
    uuid: str
    location: str  # its root, relative to the warehouse
    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    properties: Mapping[str, str]
    formats: tuple[str, ...]
    comment: str | None = None
    constraints: Mapping[str, Constraint] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AppendFiles:
    files: tuple[DataFile, ...]
    schema_id: SchemaId  # the schema the files were written under
    deleted: Mapping[int, Positions] = field(default_factory=dict)  # rows already gone, by place
    has_row_ids: bool = False  # rows that were there before carry the ids they have


@dataclass(frozen=True, slots=True)
class RemoveFiles:
    """`reads` says which rows the decision rests on; None: on the named files alone."""

    file_ids: tuple[FileId, ...]
    reads: Predicate | None


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """Rows of live files, by position, beside those that are gone already.

    `reads` says which rows the decision rests on, as in RemoveFiles.
    """

    positions: Mapping[FileId, Positions]
    reads: Predicate | None


@dataclass(frozen=True, slots=True)
class Restore:
    """The table as it was: its files, their deletion vectors, and its state. No data is added."""

    version: Version


@dataclass(frozen=True, slots=True)
class FastForward:
    """Main becomes what a branch is, in one commit."""

    line: Line


@dataclass(frozen=True, slots=True)
class SetSchema:
    schema: Schema
    last_column_id: int


@dataclass(frozen=True, slots=True)
class SetSpec:
    """New files are partitioned otherwise; those that are there keep their spec."""

    spec: PartitionSpec
    last_partition_id: int


@dataclass(frozen=True, slots=True)
class SetSortOrder:
    sort_order: SortOrder


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """The CHECK constraints from now on, all of them; every row there is has passed them."""

    constraints: Mapping[str, Constraint]


@dataclass(frozen=True, slots=True)
class SetProperties:
    changed: Mapping[str, str]
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetComment:
    """What the table is, for people; None takes it away."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class SetFormats:
    formats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Republish:
    """The same rows again, published whole: how a damaged publication is repaired."""

    formats: tuple[str, ...]


Change = (
    CreateTable
    | AppendFiles
    | RemoveFiles
    | DeleteRows
    | Restore
    | FastForward
    | SetSchema
    | SetSpec
    | SetSortOrder
    | SetConstraints
    | SetProperties
    | SetComment
    | SetFormats
    | Republish
)


@dataclass(frozen=True, slots=True)
class TableChanges:
    """All changes of one commit to one table, decided while looking at `base`."""

    table_id: TableId | None  # None: the first change is CreateTable
    base: Version | None
    operation: str
    changes: tuple[Change, ...]
    app_transaction: tuple[str, int] | None = None
    line: Line = MAIN_LINE
    metrics: Mapping[str, int] = field(default_factory=dict)  # what the operation counted
    sees_all_rows: bool = False  # it rests on every row there was: none may have come since


@dataclass(frozen=True, slots=True)
class UnchangedSince:
    """Requirement: no commit after `version` in a table that a serializable transaction read."""

    table_id: TableId
    version: Version
    line: Line = MAIN_LINE


Requirement = UnchangedSince


@dataclass(frozen=True, slots=True)
class Proposal:
    """One commit over one or several tables."""

    transaction_id: str
    author: str
    message: str | None
    isolation: str  # write_serializable | serializable
    tables: tuple[TableChanges, ...]
    requirements: tuple[Requirement, ...] = ()
    principal: str = "owner"
    idempotency_key: str | None = None
    request_digest: str | None = None
    summary: Mapping[str, str] | None = None  # the caller's own entries
    hold: str | None = None  # the hold on the tables that this is made under
    run: RunAttachment | None = None  # the end of a pipeline's run
