"""Statements as values; nothing here runs anything. Queries are in `query`, ALTER in `alterations`.

Every statement has the `span` of its text. A TableName without a namespace is left to the executor,
who knows what USE set. Expressions are SQL of the engine over relations with the user's aliases.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal as Choice

from lakebed.model.names import TableName
from lakebed.model.types import Type
from lakebed.sql.alterations import Alteration, Path
from lakebed.sql.query import Conjunct, Expression, Parameter, Select, Span

Properties = tuple[tuple[str, str], ...]
Value = bool | int | Decimal | str | bytes | Parameter | tuple["Value", ...] | None


@dataclass(frozen=True, slots=True)
class Target:
    """The table a statement writes; `alias` is how its expressions name it.

    A row that does not pass every conjunct of `where` is not touched by the statement.
    """

    name: TableName
    span: Span
    alias: str = ""
    branch: str | None = None
    where: tuple[Conjunct, ...] = ()


@dataclass(frozen=True, slots=True)
class Explain:
    select: Select
    span: Span
    analyze: bool = False


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """One column of INSERT … PARTITION (day = '…'); without a value it comes from the rows."""

    column: str
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows go into `columns` in order (all columns if None), or by their names if `by_name`.

    `overwrite` replaces what is there: the partitions of `partition`, the rows of `replace_where`,
    else the whole table.
    """

    target: Target
    span: Span
    source: Select
    columns: tuple[Path, ...] | None = None
    by_name: bool = False
    overwrite: bool = False
    partition: tuple[PartitionValue, ...] = ()
    replace_where: Expression | None = None
    has_defaults: bool = False  # DEFAULT stands among the values of the source


@dataclass(frozen=True, slots=True)
class Assignment:
    """`path = value`; no value stands for DEFAULT."""

    path: Path
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Update:
    """`source` is the body of the FROM clause: relations that are joined by `where`.

    `source_where` are the parts of `where` that look at those relations alone.
    """

    target: Target
    span: Span
    assignments: tuple[Assignment, ...]
    where: Expression | None = None
    source: Expression | None = None
    source_aliases: tuple[str, ...] = ()
    source_where: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """`source` is the body of the USING clause: relations that are joined by `where`."""

    target: Target
    span: Span
    where: Expression | None = None
    source: Expression | None = None


@dataclass(frozen=True, slots=True)
class MergeClause:
    """WHEN … THEN …; `columns` and `values` belong to insert, `assignments` to update."""

    kind: Choice["matched", "not_matched", "not_matched_by_source"]
    action: Choice["update", "update_all", "delete", "insert", "insert_all", "nothing"]
    condition: Expression | None = None
    assignments: tuple[Assignment, ...] = ()
    columns: tuple[Path, ...] | None = None
    values: tuple[Expression | None, ...] = ()  # None stands for DEFAULT


@dataclass(frozen=True, slots=True)
class Merge:
    """`on` and the clauses see the target and the source under their aliases."""

    target: Target
    span: Span
    source: Select
    source_alias: str
    on: Expression
    clauses: tuple[MergeClause, ...]
    merge_schema: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    target: Target
    span: Span


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """Files into a table. `format` is as written or by the file's name; options are lower case."""

    target: Target
    span: Span
    path: str | Parameter
    format: str | None = None
    columns: tuple[Path, ...] | None = None
    options: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class CopyTo:
    source: Select
    span: Span
    path: str | Parameter
    format: str | None = None
    options: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: str
    type: Type
    span: Span
    required: bool = False
    default: Expression | None = None
    generated: Expression | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    name: str | None
    condition: Expression


@dataclass(frozen=True, slots=True)
class CreateTable:
    """No columns and a `select`: CREATE TABLE AS. `like`: the columns of that table.

    `partition_by` and `sort_by` are texts as model.partitioning reads them. `provider` is what
    stood behind USING: every table is published in both formats unless properties say otherwise.
    """

    name: TableName
    span: Span
    columns: tuple[ColumnDefinition, ...] = ()
    primary_key: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    properties: Properties = ()
    comment: str | None = None
    provider: str | None = None
    if_not_exists: bool = False
    or_replace: bool = False
    select: Select | None = None
    like: TableName | None = None


@dataclass(frozen=True, slots=True)
class DropTable:
    name: TableName
    span: Span
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True, slots=True)
class AlterTable:
    """All actions are one commit; refs take one action alone."""

    name: TableName
    span: Span
    actions: tuple[Alteration, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    namespace: tuple[str, ...]
    span: Span
    if_not_exists: bool = False
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class DropNamespace:
    namespace: tuple[str, ...]
    span: Span
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    """`select.text` is the SELECT as the user wrote it: what the lake keeps."""

    name: TableName
    span: Span
    select: Select
    columns: tuple[tuple[str, str | None], ...] = ()  # names with comments
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class DropView:
    name: TableName
    span: Span
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CommentOn:
    """`path` is set for a column only; no comment removes the old one."""

    kind: Choice["table", "view", "column", "namespace"]
    name: tuple[str, ...]
    span: Span
    comment: str | None
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A procedure of the lake, never one of the engine."""

    procedure: tuple[str, ...]
    span: Span
    positional: tuple[Value, ...] = ()
    named: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Begin:
    span: Span


@dataclass(frozen=True, slots=True)
class Commit:
    span: Span


@dataclass(frozen=True, slots=True)
class Rollback:
    span: Span


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW TABLES, VIEWS or NAMESPACES, inside a namespace and with names LIKE a pattern."""

    what: Choice["tables", "views", "namespaces"]
    span: Span
    namespace: tuple[str, ...] | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCreate:
    name: TableName
    span: Span


@dataclass(frozen=True, slots=True)
class ShowProperties:
    name: TableName
    span: Span
    property: str | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """The columns of a table; `extended` asks for everything about it, `path` for one column."""

    name: TableName
    span: Span
    extended: bool = False
    path: Path = ()


@dataclass(frozen=True, slots=True)
class DescribeNamespace:
    namespace: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Use:
    namespace: tuple[str, ...]
    span: Span


Statement = (
    Select
    | Explain
    | Insert
    | Update
    | Delete
    | Merge
    | Truncate
    | CopyFrom
    | CopyTo
    | CreateTable
    | DropTable
    | AlterTable
    | CreateNamespace
    | DropNamespace
    | CreateView
    | DropView
    | CommentOn
    | Call
    | Begin
    | Commit
    | Rollback
    | Show
    | ShowCreate
    | ShowProperties
    | Describe
    | DescribeNamespace
    | Use
)
