"""Conjuncts, a schema and parameters become one bound predicate for pruning files."""

import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

from lakebed.model.binding import bind
from lakebed.model.errors import InvalidExpression
from lakebed.model.expressions import (
    TRUE,
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
    TypedText,
)
from lakebed.model.schema import Schema
from lakebed.model.types import DecimalType, Primitive, Stored, Type
from lakebed.sql.query import Conjunct

_MARK = "\x00"  # no SQL text holds it: a literal that begins with it stands for a parameter
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_FINE = re.compile(r"\.\d{7}", re.ASCII)
_DOUBLE_DIGITS = 2**53


class _Unknown(Exception):
    """A parameter's value says nothing that a predicate could hold."""


def where_of(
    conjuncts: Sequence[Conjunct], schema: Schema, parameters: Mapping[str, object]
) -> Predicate:
    """The conjuncts that say something about this schema, bound to it; TRUE if there are none.

    Files in which no row passes may be left out. Parameters are those of the statement by name.
    """
    kept = []
    for conjunct in conjuncts:
        try:
            given = _given(conjunct.predicate, parameters)
            bound = bind(given, schema)
        except (InvalidExpression, _Unknown):
            continue  # another table's column, or a comparison that only the engine understands
        if _is_certain(given, schema):
            kept.append(bound)
    return And(tuple(kept)) if kept else TRUE


@dataclass(frozen=True, slots=True)
class Doubt:
    """A text that a query compares with a column of another type; only the engine can read it."""

    column: tuple[str, ...]
    text: str


def doubts_of(
    conjuncts: Sequence[Conjunct], schema: Schema, parameters: Mapping[str, object]
) -> tuple[Doubt, ...]:
    """Texts in conditions that are perhaps no values of their columns."""
    found: list[Doubt] = []
    for conjunct in conjuncts:
        with suppress(_Unknown):
            found += _doubts(_given(conjunct.predicate, parameters), schema)
    return tuple(found)


def _doubts(predicate: Predicate, schema: Schema) -> Iterator[Doubt]:
    match predicate:
        case Not(operand):
            yield from _doubts(operand, schema)
        case And(operands) | Or(operands):
            for each in operands:
                yield from _doubts(each, schema)
        case Compare(column, _, value):
            if _is_doubtful(column, value, schema):
                yield Doubt(column.path, str(value))
        case In(column, values):
            for value in values:
                if _is_doubtful(column, value, schema):
                    yield Doubt(column.path, str(value))
        case Constant() | Always() | Like() | IsNull():
            return


def _is_doubtful(column: Column, value: Stored, schema: Schema) -> bool:
    if type(value) is not str or _type(schema, column.path) is None:
        return False
    try:
        bind(Compare(column, "=", value), schema)
    except InvalidExpression:
        return True
    return False


def stand_in(name: str) -> str:
    """The literal that stands for a parameter until `where_of` knows its value."""
    return f"{_MARK}{name}"


def _given(predicate: Predicate, parameters: Mapping[str, object]) -> Predicate:
    """The predicate with the values of its parameters."""
    match predicate:
        case Not(operand):
            return Not(_given(operand, parameters))
        case And(operands):
            return And(tuple(_given(p, parameters) for p in operands))
        case Or(operands):
            return Or(tuple(_given(p, parameters) for p in operands))
        case Compare(column, sign, value):
            return Compare(column, sign, _value(value, parameters))
        case In(column, values):
            return replace(predicate, values=tuple(_value(v, parameters) for v in values))
        case Like(column, pattern) if pattern.startswith(_MARK):
            text = _value(pattern, parameters)
            if type(text) is not str:
                raise _Unknown
            return Like(column, text.replace("\\", "\\\\"))
        case _:
            return predicate


def _value(literal: Stored, parameters: Mapping[str, object]) -> Stored:
    if not isinstance(literal, str) or not literal.startswith(_MARK):
        return literal
    match parameters.get(literal[1:]):
        case bool() | int() | float() | str() | bytes() | Decimal() as value:
            return value
        case datetime() as moment:
            name = "timestamp_ntz" if moment.tzinfo is None else "timestamp"
            return TypedText(moment.isoformat(), Primitive(name))
        case date() as day:
            return TypedText(day.isoformat(), Primitive("date"))
        case time() as clock if clock.tzinfo is None:
            return TypedText(clock.isoformat(), Primitive("time"))
        case UUID() as uuid:
            return TypedText(str(uuid), Primitive("uuid"))
        case _:
            raise _Unknown


def _is_certain(predicate: Predicate, schema: Schema) -> bool:
    """Does the engine compare these literals with these columns just as a predicate does?"""
    match predicate:
        case Not(operand):
            return _is_certain(operand, schema)
        case And(operands) | Or(operands):
            return all(_is_certain(p, schema) for p in operands)
        case Compare(column, _, value):
            return _is_exact(_type(schema, column.path), value)
        case In(column, values):
            return all(_is_exact(_type(schema, column.path), v) for v in values)
        case Constant() | Always() | Like() | IsNull():
            return True


def _type(schema: Schema, path: tuple[str, ...]) -> Type | None:
    field = schema.find(path)
    return None if field is None else field.type


def _is_exact(kind: Type | None, value: Stored) -> bool:
    if isinstance(value, str):
        # Text cast to a date loses the time of day, to a timestamp the digits behind the sixth.
        plain = not isinstance(value, TypedText)
        if plain and kind == Primitive("date"):
            return _DAY.fullmatch(value) is not None
        return _FINE.search(value) is None or kind == Primitive("string")
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return True
    if kind == Primitive("float"):
        return _is_single(value)
    if isinstance(value, float) and kind != Primitive("double"):
        return not isinstance(kind, DecimalType) and abs(value) < _DOUBLE_DIGITS
    return True


def _is_single(value: float | Decimal) -> bool:
    """A number that 32 bits hold as it is; the engine may round any other, or not."""
    try:
        single = struct.unpack("<f", struct.pack("<f", float(value)))[0]
    except OverflowError:
        return False
    return math.isnan(single) or single == value
