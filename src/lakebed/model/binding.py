"""Binds a predicate to a schema: columns get id and type, literals the column's stored form.

A literal that the column cannot hold is never rounded: on an integer, `x > 2.5` becomes `x > 2`.
"""

import math

from lakebed.model.errors import InvalidExpression
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
    Operator,
    Or,
    Predicate,
)
from lakebed.model.literals import ABOVE, Place, Point, place
from lakebed.model.nearest import nearest
from lakebed.model.schema import Schema
from lakebed.model.types import (
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    Scalar,
    Stored,
    StructType,
)


def bind(predicate: Predicate, schema: Schema) -> Predicate:
    match predicate:
        case Constant():
            return predicate
        case Not(operand):
            return Not(bind(operand, schema))
        case And(operands):
            return And(tuple(bind(p, schema) for p in operands))
        case Or(operands):
            return Or(tuple(bind(p, schema) for p in operands))
        case IsNull(column):
            return IsNull(_resolve(column, schema)[0])
        case Always(column, value):
            return Always(_comparable(column, schema)[0], value)
        case Compare(column, operator, value):
            bound, kind = _comparable(column, schema)
            return _compare(bound, operator, place(bound, kind, value))
        case In(column, values, has_null):
            bound, kind = _comparable(column, schema)
            return _in(bound, tuple(place(bound, kind, v) for v in values), has_null)
        case Like(column, pattern):
            bound, kind = _comparable(column, schema)
            return _like(bound, kind, pattern)


def _resolve(column: Column, schema: Schema) -> tuple[Column, Field]:
    field = schema.find(column.path)
    if field is None:
        names = [".".join(path) for path in _paths(schema.fields)]
        close = nearest(str(column), names)
        raise InvalidExpression(
            f"column {str(column)!r} is not in the schema",
            hint=f"did you mean {close[0]}?"
            if close
            else f"the columns are: {', '.join(f.name for f in schema.fields)}",
            column=str(column),
        )
    path = tuple(f.name for f in schema.path_of(field.id))
    kind = field.type
    scalar = kind if isinstance(kind, Primitive | DecimalType | FixedType) else None
    return Column(path, field.id, scalar), field


def _paths(fields: tuple[Field, ...]) -> list[tuple[str, ...]]:
    """The struct members a path can reach; what is inside lists and maps cannot be compared."""
    found: list[tuple[str, ...]] = []
    for field in fields:
        found.append((field.name,))
        below = field.type.fields if isinstance(field.type, StructType) else ()
        found.extend((field.name, *path) for path in _paths(below))
    return found


def _comparable(column: Column, schema: Schema) -> tuple[Column, Scalar]:
    bound, field = _resolve(column, schema)
    if isinstance(field.type, StructType | ListType | MapType):
        members = field.type.fields if isinstance(field.type, StructType) else ()
        raise InvalidExpression(
            f"column {str(bound)!r} of type {field.type} cannot be compared",
            hint=f"compare a member, such as {bound}.{members[0].name}"
            if members
            else "lists and maps can only be tested with IS NULL and IS NOT NULL",
            column=str(bound),
        )
    return bound, field.type


def _compare(column: Column, operator: Operator, literal: Place) -> Predicate:
    if not isinstance(literal, Point):
        return Always(column, _answer_outside(operator, literal))
    if not literal.exact:
        # No value lies between the point and the literal.
        if operator in ("=", "!="):
            return Always(column, operator == "!=")
        return Compare(column, "<=" if operator in ("<", "<=") else ">", literal.value)
    if isinstance(literal.value, float) and math.isnan(literal.value):
        return _compare_nan(column, operator, literal.value)
    return Compare(column, operator, literal.value)


def _answer_outside(operator: Operator, literal: Place) -> bool:
    if operator in ("=", "!="):
        return operator == "!="
    return operator in (("<", "<=") if literal is ABOVE else (">", ">="))


def _compare_nan(column: Column, operator: Operator, nan: float) -> Predicate:
    """NaN is the greatest value, so that only being NaN or not is left to ask."""
    if operator in ("<=", ">"):
        return Always(column, operator == "<=")
    return Compare(column, "=" if operator in ("=", ">=") else "!=", nan)


def _in(column: Column, literals: tuple[Place, ...], has_null: bool) -> Predicate:
    values: list[Stored] = []
    for literal in literals:
        if isinstance(literal, Point) and literal.exact and not _holds(values, literal.value):
            values.append(literal.value)
    if values:
        return In(column, tuple(values), has_null)
    return Constant(None) if has_null else Always(column, False)


def _holds(values: list[Stored], value: Stored) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return any(isinstance(v, float) and math.isnan(v) for v in values)
    return value in values


def _like(column: Column, kind: Scalar, pattern: str) -> Predicate:
    if kind != Primitive("string"):
        raise InvalidExpression(
            f"LIKE needs a string column; {str(column)!r} has type {kind}",
            hint="compare the column with =, <, BETWEEN or IN",
            column=str(column),
        )
    place(column, kind, pattern)  # refuses what is no valid text
    parts = _like_parts(pattern)
    if all(wild and char == "%" for char, wild in parts) and parts:
        return Always(column, True)
    if not any(wild for _, wild in parts):
        return Compare(column, "=", "".join(char for char, _ in parts))
    return Like(column, "".join(c if wild or c not in "%_\\" else f"\\{c}" for c, wild in parts))


def _like_parts(pattern: str) -> list[tuple[str, bool]]:
    """The characters of a pattern, each with whether it is a wildcard."""
    parts, at = [], 0
    while at < len(pattern):
        escaped = pattern[at] == "\\" and at + 1 < len(pattern)
        at += escaped
        parts.append((pattern[at], not escaped and pattern[at] in "%_"))
        at += 1
    return parts
