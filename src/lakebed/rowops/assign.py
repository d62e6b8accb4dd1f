"""SET a = …, b.c = …: the columns of a changed or new row as expressions of the SQL engine."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from lakebed.model.errors import InvalidExpression, InvalidInput, SchemaMismatch
from lakebed.model.ids import FieldId
from lakebed.model.nearest import nearest
from lakebed.model.quoting import quoted, text_literal
from lakebed.model.schema import Schema
from lakebed.model.types import Field, Primitive, StructType, is_scalar, walk
from lakebed.rowops.workbench import Expression, Workbench

_ZONED = (Primitive("timestamp"), Primitive("timestamptz_ns"))
_NAIVE = re.compile(r"'\s*\d{4,}-\d\d?-\d\d?(?:[ T][\d:.]*)?\s*'")


@dataclass(frozen=True, slots=True)
class Assignments:
    """Expressions by the id of the field they go to."""

    expressions: Mapping[FieldId, Expression] = field(default_factory=dict)

    def touches(self, column: Field) -> bool:
        return any(f.id in self.expressions for f in _members((column,)))

    def columns(self, schema: Schema) -> list[Field]:
        """Top-level columns that are assigned, whole or in part."""
        return [f for f in schema.fields if self.touches(f)]


def parse_assignments(
    bench: Workbench, schema: Schema, values: Mapping[str, str], what: str
) -> Assignments:
    """`values` maps paths such as `price` or `address.city` to SQL."""
    found: dict[FieldId, Expression] = {}
    for path, text in values.items():
        column = find_column(schema, path, what)
        if column.id in found:
            raise InvalidInput(f"{what} sets {path!r} twice", hint="set each column once")
        found[column.id] = bench.expression(text, f"{what} {path!r}")
    for column in _members(schema.fields):
        inside = [f for f in walk((column,)) if f.id in found]
        if column.id in found and len(inside) > 1:
            raise InvalidInput(
                f"{what} sets {column.name!r} and a member of it", hint="set one of them"
            )
    return Assignments(found)


def find_column(schema: Schema, path: object, what: str) -> Field:
    parts = tuple(path.split(".")) if isinstance(path, str) else ()
    column = schema.find(parts)
    if column is None:
        names = [f.name for f in schema.fields]
        close = nearest(str(path), names)
        raise InvalidExpression(
            f"{what} names {path!r}, which is no column of the table",
            hint=f"did you mean {close[0]}?" if close else f"the columns are: {', '.join(names)}",
            column=str(path),
        )
    return column


def projected(column: Field, assigned: Assignments, before: Callable[[], str]) -> str:
    """The column's new value; `before` gives what it was as SQL, and is asked only if needed."""
    return f"{_value(column, assigned, before)} AS {quoted(column.name)}"


def _value(column: Field, assigned: Assignments, before: Callable[[], str]) -> str:
    given = assigned.expressions.get(column.id)
    if given is not None:
        return _typed(column, given, before)
    if not assigned.touches(column) or not isinstance(column.type, StructType):
        return before()
    members = ", ".join(
        f"{quoted(m.name)} := {_value(m, assigned, partial(_member, before, m.name))}"
        for m in column.type.fields
    )
    return f"struct_pack({members})"


def _member(struct: Callable[[], str], name: str) -> str:
    return f"struct_extract({struct()}, {text_literal(name)})"


def _typed(column: Field, given: Expression, before: Callable[[], str]) -> str:
    """A literal that has no type of its own takes the column's: 'text' for a date, NULL."""
    is_text = column.type == Primitive("string") or not is_scalar(column.type)
    if given.is_text_literal and column.type in _ZONED and _NAIVE.search(given.sql):
        raise SchemaMismatch(
            f"column {column.name!r}: {given.sql.strip('()').strip()} has no time zone",
            hint="say which zone is meant: add Z or an offset to the text, or CAST it",
            column=column.name,
        )
    if given.is_null or (given.is_text_literal and not is_text):
        return f"CASE WHEN FALSE THEN {before()} ELSE {given.sql} END"
    return given.sql


def _members(fields: tuple[Field, ...]) -> list[Field]:
    """Fields that a path can reach: columns and members of structs."""
    found = []
    for one in fields:
        found.append(one)
        if isinstance(one.type, StructType):
            found += _members(one.type.fields)
    return found
