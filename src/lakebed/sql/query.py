"""What the engine runs, as values: SQL text in which every lake table is a placeholder relation.

`sql` is the user's text; only table references, comments and parameters were replaced. A
placeholder such as "__lakebed_1" is unique within a statement. The executor makes a relation of
that name for every `Reference`, binds the parameters named in `parameters`, and runs the text.
"""

from dataclasses import dataclass, field
from typing import Literal as Choice

from lakebed.model.expressions import Predicate
from lakebed.model.names import TableName

MetadataTable = Choice[
    "history", "files", "snapshots", "schemas", "partitions", "refs", "changes", "publications"
]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the script: offsets of its first character and behind its last; from 1 on."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter where a literal could stand; `?` and `$1` have numbers for names."""

    name: str


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A condition that every row of a table must pass to have any effect on the result.

    It is unbound, may name what is no column of the table (then it says nothing about it), and
    has stand-ins for parameters: `where.where_of` makes a predicate of it.
    """

    predicate: Predicate


@dataclass(frozen=True, slots=True)
class Reference:
    """A table or view that a query reads; which of the two it is, the executor finds out.

    At most one of `version`, `timestamp` and `branch` is set. `version` is a number, the name of
    a ref, or a parameter that holds one of them. `arguments` are those of `orders$changes(2, 5)`.
    `columns` holds casefolded names of which some may be columns of the table: a column that is
    not among them is not needed. None means that all are. `query` is set for the name of a WITH
    in front of the statement: its rows, and nothing of the lake by that name. `compared` is what
    the query shows of comparisons: it filters nothing, but its texts must be values of the columns.
    """

    placeholder: str
    name: TableName
    span: Span
    alias: str = ""
    version: "int | str | Parameter | None" = None
    timestamp: "Expression | None" = None
    branch: str | None = None
    metadata: MetadataTable | None = None
    arguments: tuple["int | str | Parameter", ...] = ()
    columns: frozenset[str] | None = None
    where: tuple[Conjunct, ...] = ()
    compared: tuple[Conjunct, ...] = ()
    query: "Select | None" = None


@dataclass(frozen=True, slots=True)
class Expression:
    """One SQL expression, or the body of one clause, in the engine's language."""

    sql: str
    span: Span
    tables: tuple[Reference, ...] = ()
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Select:
    """A query of any shape: SELECT, FROM-first, VALUES, WITH, UNION, PIVOT, SUMMARIZE …"""

    sql: str
    span: Span
    tables: tuple[Reference, ...] = ()
    parameters: tuple[str, ...] = ()
    text: str = field(default="", compare=False)  # as the user wrote it, comments included


def readable(text: str, tables: tuple[Reference, ...]) -> str:
    """The engine's words, such as an error or the name of a column, without placeholders."""
    for table in sorted(tables, key=lambda t: len(t.placeholder), reverse=True):
        shown = str(table.name)
        for name in (f'"{table.placeholder}"', table.placeholder):
            if table.alias == table.name.name:
                for alias in (table.alias, f'"{table.alias}"'):
                    text = text.replace(f"{name} AS {alias}", shown)
            text = text.replace(name, shown)
    return text
