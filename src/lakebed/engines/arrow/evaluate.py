"""Bound predicates over Arrow batches: three-valued logic, NaN the greatest number."""

import math
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

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
from lakebed.model.types import FixedType, Primitive, Scalar, Stored

_NULL = pa.scalar(None, pa.bool_())
KERNELS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def matches(predicate: Predicate, batch: pa.RecordBatch) -> pa.BooleanArray:
    """TRUE, FALSE or NULL for every row."""
    match predicate:
        case Constant(value):
            return _repeat(value, batch.num_rows)
        case Not(operand):
            return pc.invert(matches(operand, batch))
        case And(operands):
            parts = [matches(p, batch) for p in operands]
            return reduce(pc.and_kleene, parts, _repeat(True, batch.num_rows))
        case Or(operands):
            parts = [matches(p, batch) for p in operands]
            return reduce(pc.or_kleene, parts, _repeat(False, batch.num_rows))
        case IsNull(column):
            return pc.is_null(_lookup(column, batch))
        case _:
            return _compare_leaf(predicate, _values(predicate.column, batch))


def _compare_leaf(leaf: Always | Compare | In | Like, values: pa.Array) -> pa.BooleanArray:
    match leaf:
        case Always(_, value):
            return _where_valid(values, _repeat(value, len(values)))
        case Compare(_, operator, value):
            return _compare(values, operator, value)
        case In(_, members, has_null):
            found = _where_valid(values, pc.is_in(values, value_set=_members(members, values.type)))
            # Beside a listed NULL, "not found" is unknown.
            return pc.or_kleene(found, _NULL) if has_null else found
        case Like(_, pattern):
            return pc.match_like(values, pattern)


def _compare(values: pa.Array, operator: Operator, value: Stored) -> pa.BooleanArray:
    if not pa.types.is_floating(values.type):
        return KERNELS[operator](values, pa.scalar(value, values.type))
    if isinstance(value, float) and math.isnan(value):
        return _compare_nan(values, operator)
    # Arrow answers FALSE for NaN, which is right for all but the two that ask for greater values.
    if operator in (">", ">="):
        opposite = KERNELS["<=" if operator == ">" else "<"]
        return pc.invert(opposite(values, pa.scalar(value, values.type)))
    return KERNELS[operator](values, pa.scalar(value, values.type))


def _compare_nan(values: pa.Array, operator: Operator) -> pa.BooleanArray:
    if operator in ("<=", ">"):
        return _where_valid(values, _repeat(operator == "<=", len(values)))
    is_nan = pc.is_nan(values)
    return is_nan if operator in ("=", ">=") else pc.invert(is_nan)


def _members(members: tuple[Stored, ...], kind: pa.DataType) -> pa.Array:
    if pa.types.is_floating(kind) and 0.0 in members:
        members = (*members, 0.0, -0.0)  # the kernel looks at bits
    return pa.array(members, kind)


def _where_valid(values: pa.Array, answers: pa.BooleanArray) -> pa.BooleanArray:
    return pc.if_else(pc.is_valid(values), answers, _NULL)


def _repeat(value: bool | None, length: int) -> pa.BooleanArray:
    return pa.nulls(length, pa.bool_()) if value is None else pa.repeat(value, length)


def _lookup(column: Column, batch: pa.RecordBatch) -> pa.Array:
    """A member of a null struct is null."""
    top, *members = column.path
    whole = batch.column(top)
    return pc.struct_field(whole, members) if members else whole


def _values(column: Column, batch: pa.RecordBatch) -> pa.Array:
    found = _lookup(column, batch)
    assert column.type is not None, "only bound predicates can be evaluated"
    wanted = _compared_as(column.type)
    large = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return found if large.get(found.type, found.type) == wanted else found.cast(wanted)


def _compared_as(kind: Scalar) -> pa.DataType:
    """Floats widen, so that a double literal is never rounded; bytes of any length order alike."""
    if isinstance(kind, FixedType) or kind == Primitive("uuid"):
        return pa.binary()
    return pa.float64() if kind == Primitive("float") else arrow_type(kind)
