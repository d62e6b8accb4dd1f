"""A predicate as questions to the index of files: they let through at least what could match.

What a file may hold is decided by `prune.might_match` afterwards; here doubt always lets through.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakebed.core.index_keys import key_of, prefix_key
from lakebed.model.expressions import (
    NEGATED,
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
    like_prefix,
)
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.transforms import Transform, apply
from lakebed.model.types import Primitive, Stored

NULLS, NANS, VALUES = 1, 2, 4
_FLOATS = (Primitive("float"), Primitive("double"))
_MOST_RANGES = 16  # more values of a list are asked for together


@dataclass(frozen=True, slots=True)
class Range:
    """Is a key from `low` to `high` possible, both included? None is open; NaN counts if `nans`."""

    field_id: int
    low: bytes | None
    high: bytes | None
    nans: bool = False


@dataclass(frozen=True, slots=True)
class Among:
    """Is any of these keys possible? They are in order."""

    field_id: int
    keys: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Holds:
    """Is any of these possible: NULLS, NANS, VALUES?"""

    field_id: int
    flags: int


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple["Probe", ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple["Probe", ...] = ()


Probe = Range | Among | Holds | Every | Some
ANYTHING, NOTHING = Every(), Some()
Buckets = Mapping[int, Sequence[tuple[int, Transform]]]  # (partition field, transform) by source


def bucket_id(partition_field_id: int) -> int:
    """Buckets are indexed beside the fields, whose ids are positive."""
    return -partition_field_id


def buckets_of(specs: Sequence[PartitionSpec]) -> Buckets:
    found: dict[int, dict[int, Transform]] = {}
    for spec in specs:
        for field in spec.fields:
            if field.transform.name == "bucket":
                found.setdefault(field.source_id, {})[bucket_id(field.id)] = field.transform
    return {source: list(fields.items()) for source, fields in found.items()}


def probe_of(predicate: Predicate, buckets: Buckets, *, wanted: bool = True) -> Probe:
    """Where the bound predicate can be TRUE, or FALSE if that is wanted."""
    match predicate:
        case Constant(value):
            return ANYTHING if value is wanted else NOTHING
        case Not(operand):
            return probe_of(operand, buckets, wanted=not wanted)
        case And(operands) | Or(operands):
            parts = [probe_of(p, buckets, wanted=wanted) for p in operands]
            return _every(parts) if isinstance(predicate, And) is wanted else _some(parts)
        case _ if predicate.column.field_id is None:
            return ANYTHING
        case IsNull(column):
            return Holds(_id(column), NULLS if wanted else NANS | VALUES)
        case Always(column, value):
            return Holds(_id(column), NANS | VALUES) if value is wanted else NOTHING
        case Compare(column, operator, value):
            return _compare(column, operator if wanted else NEGATED[operator], value, buckets)
        case In(column, values):
            return _in(column, values, buckets) if wanted else ANYTHING
        case Like(column, pattern):
            return _like(column, pattern) if wanted else ANYTHING


def _every(parts: list[Probe]) -> Probe:
    parts = [p for p in parts if p != ANYTHING]
    if NOTHING in parts:
        return NOTHING
    return parts[0] if len(parts) == 1 else Every(tuple(parts))


def _some(parts: list[Probe]) -> Probe:
    parts = [p for p in parts if p != NOTHING]
    if ANYTHING in parts:
        return ANYTHING
    return parts[0] if len(parts) == 1 else Some(tuple(parts))


def _compare(column: Column, operator: Operator, value: Stored, buckets: Buckets) -> Probe:
    if _is_nan(value) or operator == "!=":
        return ANYTHING
    if operator == "=":
        return _equal(column, value, buckets)
    if isinstance(value, int):  # ranges include their ends: of whole numbers it is the next one
        value += {"<": -1, ">": 1}.get(operator, 0)
    key = key_of(value)
    if operator in ("<", "<="):
        return Range(_id(column), None, key)
    return Range(_id(column), key, None, nans=column.type in _FLOATS)


def _equal(column: Column, value: Stored, buckets: Buckets) -> Probe:
    key, kind = key_of(value), column.type
    parts: list[Probe] = [Range(_id(column), key, key)]
    for field_id, transform in buckets.get(_id(column), ()) if kind is not None else ():
        bucket = apply(transform, kind, value) if kind is not None else None
        assert bucket is not None
        parts.append(Range(field_id, key_of(bucket), key_of(bucket)))
    return _every(parts)


def _in(column: Column, values: tuple[Stored, ...], buckets: Buckets) -> Probe:
    if any(_is_nan(v) for v in values):
        return ANYTHING
    if len(values) <= _MOST_RANGES:
        return _some([_equal(column, v, buckets) for v in values])
    return Among(_id(column), sorted({key_of(v) for v in values}))


def _like(column: Column, pattern: str) -> Probe:
    low, high = prefix_key(like_prefix(pattern)[0])
    return Range(_id(column), low, high)


def _id(column: Column) -> int:
    assert column.field_id is not None
    return column.field_id


def _is_nan(value: Stored) -> bool:
    return isinstance(value, float) and math.isnan(value)
