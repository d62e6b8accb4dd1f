"""Expressions with the values of their parameters written out, for engines that take text alone."""

from collections.abc import Callable, Mapping

from lakebed.model.errors import SqlUnsupported
from lakebed.sql.query import Expression, Select
from lakebed.sql.source import Source


def inlined(
    expression: Expression | Select, values: Mapping[str, object], literal: Callable[[object], str]
) -> str:
    """`literal` writes a value as SQL."""
    if not expression.parameters:
        return expression.sql
    pieces, at = [], 0
    for token in Source(expression.sql).tokens:
        if token.kind == "parameter":
            name = expression.sql[token.start + 1 : token.end]
            pieces += [expression.sql[at : token.start], literal(values[name])]
            at = token.end
    return "".join([*pieces, expression.sql[at:]])


def condition_text(condition: Expression) -> str:
    """The text of a condition that is kept with a table: it can depend on its rows alone."""
    if condition.tables or condition.parameters:
        raise SqlUnsupported(
            "a constraint cannot have subqueries or parameters",
            hint="use the columns of the table and literals",
            line=condition.span.line,
        )
    return condition.sql
