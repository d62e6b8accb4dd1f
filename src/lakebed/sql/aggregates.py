"""Queries that only count, or ask for the least or greatest values of a whole table."""

from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakebed.sql.keywords import written_name
from lakebed.sql.query import Select

_PARTS = {"expressions", "from_", "kind"}
_FUNCTIONS: dict[type, str] = {exp.Min: "min", exp.Max: "max"}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One column of the answer; count(*) has no column of the table."""

    name: str
    function: str
    column: str | None


def aggregates_of(select: Select) -> tuple[Aggregate, ...] | None:
    """What `SELECT count(*), min(a) … FROM t` asks for; None for any other query."""
    if len(select.tables) != 1 or select.parameters:
        return None
    try:
        tree = sqlglot.parse_one(select.sql, dialect="duckdb")
    except SqlglotError:
        return None
    if not isinstance(tree, exp.Select) or {k for k, v in tree.args.items() if v} - _PARTS:
        return None
    source = tree.args["from_"].this if tree.args.get("from_") else None
    if not isinstance(source, exp.Table) or source.name != select.tables[0].placeholder:
        return None
    if {k for k, v in source.args.items() if v} - {"this", "alias"}:
        return None
    found = [_aggregate(each) for each in tree.expressions]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) and known else None


def _aggregate(tree: exp.Expression) -> Aggregate | None:
    alias = tree.alias if isinstance(tree, exp.Alias) else ""
    inner = tree.this if isinstance(tree, exp.Alias) else tree
    if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star):
        return Aggregate(alias or "count_star()", "count", None)
    function = _FUNCTIONS.get(type(inner))
    column = inner.this if function else None
    if function is None or inner.expressions or not isinstance(column, exp.Column):
        return None
    if len(column.parts) > 1:
        return None
    return Aggregate(alias or f"{function}({written_name(column.name)})", function, column.name)
