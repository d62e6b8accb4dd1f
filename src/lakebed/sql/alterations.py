"""The actions of ALTER TABLE as values. A path names a column, or a member of a struct column."""

from dataclasses import dataclass

from lakebed.model.names import TableName
from lakebed.model.types import Type
from lakebed.sql.query import Expression, Parameter

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """FIRST when `after` is None, else behind that sibling."""

    after: str | None = None


@dataclass(frozen=True, slots=True)
class AddColumn:
    path: Path
    type: Type
    required: bool = False
    default: Expression | None = None
    comment: str | None = None
    position: Position | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    path: Path
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class SetColumnType:
    path: Path
    type: Type


@dataclass(frozen=True, slots=True)
class SetColumnRequired:
    """SET NOT NULL, or DROP NOT NULL when `required` is False."""

    path: Path
    required: bool


@dataclass(frozen=True, slots=True)
class SetColumnDefault:
    """SET DEFAULT, or DROP DEFAULT when `default` is None."""

    path: Path
    default: Expression | None


@dataclass(frozen=True, slots=True)
class SetColumnComment:
    path: Path
    comment: str | None


@dataclass(frozen=True, slots=True)
class MoveColumn:
    path: Path
    position: Position


@dataclass(frozen=True, slots=True)
class RenameTable:
    """A new name without a namespace stays in the old one."""

    name: TableName


@dataclass(frozen=True, slots=True)
class SetTableComment:
    comment: str | None


@dataclass(frozen=True, slots=True)
class SetProperties:
    properties: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    names: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddCheck:
    """A constraint without a name gets one from the executor."""

    name: str | None
    condition: Expression


@dataclass(frozen=True, slots=True)
class DropConstraint:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetPrimaryKey:
    """No columns: the table has no primary key any more."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddPartitionField:
    """`term` is the text that model.partitioning reads: region, day(ts), bucket(16, id)."""

    term: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DropPartitionField:
    """`term` is a transform of a column, or the name of a partition field."""

    term: str


@dataclass(frozen=True, slots=True)
class ReplacePartitionField:
    old: str
    term: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class SetPartitioning:
    """The whole spec at once; no terms: unpartitioned."""

    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetSortOrder:
    """Terms as model.partitioning reads them: amount desc nulls last; none: unsorted."""

    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreateRef:
    """A branch or tag, at the head unless `version` or `timestamp` say where."""

    kind: str  # branch or tag
    name: str
    version: int | str | Parameter | None = None
    timestamp: Expression | None = None
    if_not_exists: bool = False
    or_replace: bool = False
    retain_ms: int | None = None
    keep_snapshots: int | None = None
    keep_snapshots_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DropRef:
    kind: str  # branch or tag
    name: str
    if_exists: bool = False


Alteration = (
    AddColumn
    | DropColumn
    | RenameColumn
    | SetColumnType
    | SetColumnRequired
    | SetColumnDefault
    | SetColumnComment
    | MoveColumn
    | RenameTable
    | SetTableComment
    | SetProperties
    | UnsetProperties
    | AddCheck
    | DropConstraint
    | SetPrimaryKey
    | AddPartitionField
    | DropPartitionField
    | ReplacePartitionField
    | SetPartitioning
    | SetSortOrder
    | CreateRef
    | DropRef
)
