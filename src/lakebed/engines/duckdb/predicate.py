"""Bound predicates as SQL. DuckDB means the same: NaN the greatest number, NULL unknown."""

from collections.abc import Mapping

from lakebed.engines.duckdb.types import blob_literal, literal
from lakebed.model.expressions import (
    Always,
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from lakebed.model.quoting import text_literal
from lakebed.model.types import FixedType, Primitive, Stored

_CONSTANTS = {True: "TRUE", False: "FALSE", None: "CAST(NULL AS BOOLEAN)"}


def to_sql(predicate: Predicate, columns: Mapping[str, str]) -> str:
    """`columns` gives the SQL of every top-level column."""
    match predicate:
        case Constant(value):
            return _CONSTANTS[value]
        case Not(operand):
            return f"(NOT {to_sql(operand, columns)})"
        case And(operands):
            return _joined(" AND ", [to_sql(p, columns) for p in operands], "TRUE")
        case Or(operands):
            return _joined(" OR ", [to_sql(p, columns) for p in operands], "FALSE")
        case IsNull(column):
            return f"({_lookup(column, columns)} IS NULL)"
        case Always(column, value):
            known = f"{_lookup(column, columns)} IS NOT NULL"
            return f"(CASE WHEN {known} THEN {_CONSTANTS[value]} ELSE NULL END)"
        case Compare(column, operator, value):
            return f"({_values(column, columns)} {operator} {_literal(column, value)})"
        case In(column, values, has_null):
            listed = [_literal(column, value) for value in values] + ["NULL"] * has_null
            return f"({_values(column, columns)} IN ({', '.join(listed)}))"
        case Like(column, pattern):
            return f"({_lookup(column, columns)} LIKE {text_literal(pattern)} ESCAPE '\\')"


def _joined(word: str, parts: list[str], none: str) -> str:
    return f"({word.join(parts)})" if parts else none


def _lookup(column: Column, columns: Mapping[str, str]) -> str:
    top, *members = column.path
    found = columns[top]
    for member in members:
        found = f"struct_extract({found}, {text_literal(member)})"
    return found


def _values(column: Column, columns: Mapping[str, str]) -> str:
    """Floats widen, so that a double literal is never rounded; bytes of any length order alike."""
    found = _lookup(column, columns)
    if column.type == Primitive("float"):
        return f"CAST({found} AS DOUBLE)"
    return f"CAST({found} AS BLOB)" if column.type == Primitive("uuid") else found


def _literal(column: Column, value: Stored) -> str:
    kind = column.type
    assert kind is not None, "only bound predicates can be evaluated"
    if kind == Primitive("float"):
        return literal(value, Primitive("double"))
    if isinstance(value, bytes) and (kind == Primitive("uuid") or isinstance(kind, FixedType)):
        return blob_literal(value)
    return literal(value, kind)
