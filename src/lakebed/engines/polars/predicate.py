"""Bound predicates as Polars expressions, which mean the same: NaN the greatest number, NULL
unknown."""

import re
from collections.abc import Callable
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_

import polars as pl
import pyarrow as pa

from lakebed.engines.arrow.types import arrow_type
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
from lakebed.model.types import Primitive, Stored

_COMPARISONS: dict[Operator, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_NULL = pl.lit(None, pl.Boolean)


def to_expression(predicate: Predicate) -> pl.Expr:
    match predicate:
        case Constant(value):
            return pl.lit(value, pl.Boolean)
        case Not(operand):
            return ~to_expression(operand)
        case And(operands):
            return reduce(and_, map(to_expression, operands), pl.lit(True))
        case Or(operands):
            return reduce(or_, map(to_expression, operands), pl.lit(False))
        case IsNull(column):
            return _lookup(column).is_null()
        case Always(column, value):
            return pl.when(_lookup(column).is_not_null()).then(pl.lit(value)).otherwise(_NULL)
        case Compare(column, operator, value):
            return _COMPARISONS[operator](_values(column), _literal(column, value))
        case In(column, values, has_null):
            found = _values(column).is_in(_series(column, values).implode())
            return found | _NULL if has_null else found
        case Like(column, pattern):
            return _values(column).str.contains(_regex(pattern))


def _lookup(column: Column) -> pl.Expr:
    top, *members = column.path
    return reduce(lambda whole, name: whole.struct.field(name), members, pl.col(top))


def _values(column: Column) -> pl.Expr:
    """Floats widen, so that a double literal is never rounded."""
    found = _lookup(column)
    return found.cast(pl.Float64) if column.type == Primitive("float") else found


def _literal(column: Column, value: Stored) -> pl.Expr:
    series = _series(column, (value,))
    if isinstance(series.dtype, pl.Datetime):
        return pl.lit(value, pl.Int64).cast(series.dtype)  # Python's moments have no nanoseconds
    return pl.lit(series.item(), series.dtype)


def _series(column: Column, values: tuple[Stored, ...]) -> pl.Series:
    assert column.type is not None, "only bound predicates can be evaluated"
    kind = pa.float64() if column.type == Primitive("float") else arrow_type(column.type)
    return pl.Series(pa.array(values, kind))


def _regex(pattern: str) -> str:
    """LIKE as a regular expression over the whole text, line breaks included."""
    parts, at = [], 0
    while at < len(pattern):
        if pattern[at] == "\\" and at + 1 < len(pattern):
            at += 1
            parts.append(re.escape(pattern[at]))
        else:
            parts.append({"%": ".*", "_": "."}.get(pattern[at]) or re.escape(pattern[at]))
        at += 1
    return f"(?s)^{''.join(parts)}$"
