"""Iceberg's partition transforms over whole arrays, equal to `model.transforms` on each value."""

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.types import arrow_type
from lakebed.model.errors import SchemaMismatch
from lakebed.model.schema import Schema
from lakebed.model.transforms import Transform, apply, result_type
from lakebed.model.types import INTEGERS, Primitive, Type

_MICROS_PER_HOUR = 3_600_000_000
_HASHED_AS_LONG = {*INTEGERS, "date", "time", "timestamp", "timestamp_ntz"}
_NANOSECONDS = {"timestamp_ns", "timestamptz_ns"}


def source_column(batch: pa.RecordBatch, schema: Schema, field_id: int) -> pa.Array:
    """The column or struct member with this id; null where a struct above it is."""
    first, *members = schema.path_of(field_id)
    array = batch.column(schema.fields.index(first))
    for member in members:
        array = pc.struct_field(array, _position(array, member.name))
    return array


def transformed(array: pa.Array, kind: Type, transform: Transform) -> pa.Array:
    """The partition values of a column, in stored form."""
    if transform.name == "identity":
        return _identity(stored(array, kind))
    if transform.name == "bucket":
        return _bucket(array, kind, transform)
    if transform.name == "truncate":
        return _truncate(array, kind, transform)
    return _temporal(_micros(array, kind), transform.name)


def stored(array: pa.Array, kind: Type) -> pa.Array:
    """The array with dates and times as the integers they are kept as."""
    if kind == Primitive("date"):
        return array.view(pa.int32())
    if pa.types.is_timestamp(array.type) or pa.types.is_time(array.type):
        return array.view(pa.int64())
    return array


def _position(array: pa.Array, name: str) -> int:
    return int(array.type.get_field_index(name))


def _identity(array: pa.Array) -> pa.Array:
    if not pa.types.is_floating(array.type):
        return array
    # One partition for NaN whatever its bits, and one for zero whatever its sign.
    nan = pa.scalar(float("nan"), array.type)
    return pc.if_else(pc.is_nan(array), nan, pc.add(array, pa.scalar(0.0, array.type)))


def _bucket(array: pa.Array, kind: Type, transform: Transform) -> pa.Array:
    if not isinstance(kind, Primitive) or kind.name not in _HASHED_AS_LONG | _NANOSECONDS:
        return _each_distinct(array, kind, transform)
    numbers = stored(array, kind).cast(pa.int64())
    if kind.name in _NANOSECONDS:
        numbers = _floor_divide(numbers, 1000)
    hashed = pc.bit_wise_and(_murmur3(numbers), _u32(0x7FFFFFFF)).cast(pa.int64())
    return _remainder(hashed, transform.width).cast(pa.int32())


def _truncate(array: pa.Array, kind: Type, transform: Transform) -> pa.Array:
    width = transform.width
    if kind == Primitive("string"):
        return pc.utf8_slice_codeunits(array, 0, width)
    if kind == Primitive("binary"):
        return pc.binary_slice(array, 0, width)
    if not isinstance(kind, Primitive):
        return _each_distinct(array, kind, transform)
    numbers = array.cast(pa.int64())
    least = pc.min(numbers).as_py()
    smallest = -(2 ** (INTEGERS[kind.name] - 1))
    if least is not None and least - least % width < smallest:
        raise _too_small(least, width, kind)
    return pc.subtract(numbers, _remainder(numbers, width))


def _too_small(value: object, width: int, kind: Type) -> SchemaMismatch:
    return SchemaMismatch(
        f"{value} cannot be cut to a multiple of {width}: no {kind} is that small",
        hint="partition by another transform, or leave the row out",
        value=value,
    )


def _each_distinct(array: pa.Array, kind: Type, transform: Transform) -> pa.Array:
    coded = array.dictionary_encode()
    values = [apply(transform, kind, value) for value in coded.dictionary.to_pylist()]
    try:
        return pa.array(values, arrow_type(result_type(transform, kind))).take(coded.indices)
    except pa.ArrowInvalid:
        raise _too_small(pc.min(array).as_py(), transform.width, kind) from None


def _micros(array: pa.Array, kind: Type) -> pa.Array:
    numbers = stored(array, kind).cast(pa.int64())
    if kind == Primitive("date"):
        return pc.multiply(numbers, pa.scalar(24 * _MICROS_PER_HOUR))
    if isinstance(kind, Primitive) and kind.name in _NANOSECONDS:
        return _floor_divide(numbers, 1000)
    return numbers


def _temporal(micros: pa.Array, name: str) -> pa.Array:
    if name == "hour":
        return _floor_divide(micros, _MICROS_PER_HOUR)
    days = _floor_divide(micros, 24 * _MICROS_PER_HOUR)
    if name == "day":
        return days
    dates = days.cast(pa.int32()).view(pa.date32())
    years = pc.subtract(pc.year(dates), pa.scalar(1970))
    if name == "year":
        return years
    months = pc.subtract(pc.month(dates), pa.scalar(1))
    return pc.add(pc.multiply(years, pa.scalar(12)), months)


def _floor_divide(numbers: pa.Array, by: int) -> pa.Array:
    # Arrow divides towards zero; times before 1970 are negative.
    quotient = pc.divide(numbers, pa.scalar(by))
    rest = pc.subtract(numbers, pc.multiply(quotient, pa.scalar(by)))
    return pc.subtract(quotient, pc.less(rest, pa.scalar(0)).cast(pa.int64()))


def _remainder(numbers: pa.Array, by: int) -> pa.Array:
    rest = pc.subtract(numbers, pc.multiply(pc.divide(numbers, pa.scalar(by)), pa.scalar(by)))
    return pc.if_else(pc.less(rest, pa.scalar(0)), pc.add(rest, pa.scalar(by)), rest)


def _murmur3(numbers: pa.Array) -> pa.Array:
    """Murmur3, 32 bit, seed 0, of each number's eight bytes; Arrow's unsigned arithmetic wraps."""
    bits = numbers.view(pa.uint64())
    low = pc.bit_wise_and(bits, pa.scalar(0xFFFFFFFF, pa.uint64())).cast(pa.uint32())
    high = pc.shift_right(bits, pa.scalar(32, pa.uint64())).cast(pa.uint32())
    state = _round(_mix(low))
    state = _round(pc.bit_wise_xor(state, _mix(high)))
    state = pc.bit_wise_xor(state, _u32(8))
    state = pc.multiply(_fold(state, 16), _u32(0x85EBCA6B))
    state = pc.multiply(_fold(state, 13), _u32(0xC2B2AE35))
    return _fold(state, 16)


def _mix(word: pa.Array) -> pa.Array:
    word = _rotate(pc.multiply(word, _u32(0xCC9E2D51)), 15)
    return pc.multiply(word, _u32(0x1B873593))


def _round(state: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(_rotate(state, 13), _u32(5)), _u32(0xE6546B64))


def _rotate(word: pa.Array, by: int) -> pa.Array:
    left = pc.shift_left(word, _u32(by))
    return pc.bit_wise_or(left, pc.shift_right(word, _u32(32 - by)))


def _fold(word: pa.Array, by: int) -> pa.Array:
    return pc.bit_wise_xor(word, pc.shift_right(word, _u32(by)))


def _u32(number: int) -> pa.Scalar:
    return pa.scalar(number, pa.uint32())
