"""A view inside a query: its own references get names that no other query has."""

from collections.abc import Sequence
from dataclasses import replace

from lakebed.model.quoting import quoted
from lakebed.sql.query import Reference, Select


def nested(
    select: Select, placeholder: str, columns: Sequence[str]
) -> tuple[str, tuple[Reference, ...]]:
    """The view's SQL and references for use behind `placeholder`, its columns renamed if given."""
    sql, inner = select.sql, []
    for number, reference in enumerate(select.tables, 1):
        name = f"{placeholder}_{number}"
        sql = sql.replace(f'"{reference.placeholder}"', f'"{name}"')
        inner.append(replace(reference, placeholder=name))
    if columns:
        names = ", ".join(quoted(c) for c in columns)
        sql = f"SELECT * FROM ({sql}) AS renamed ({names})"
    return sql, tuple(inner)
