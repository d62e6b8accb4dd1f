"""Arrow values as JSON has them: numbers stay numbers, all else is exact text or nested."""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def to_values(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_map(kind):
        return _maps(array)
    if pa.types.is_list(kind):
        return _lists(array, to_values(_used(array, array.values)))
    if pa.types.is_fixed_size_list(kind):
        return to_values(array.cast(pa.list_(kind.value_type)))
    if pa.types.is_struct(kind):
        return _structs(array)
    if pa.types.is_floating(kind):
        return [_number(value) for value in array.to_pylist()]
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return array.to_pylist()  # type: ignore[no-any-return]
    return as_text(array).to_pylist()  # type: ignore[no-any-return]


def as_text(array: pa.Array) -> pa.Array:
    """Times as ISO text, decimals exact, bytes in hex."""
    kind = array.type
    if pa.types.is_string(kind):
        return array
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.array([None if v is None else v.hex() for v in array.to_pylist()], pa.string())
    if pa.types.is_interval(kind):
        return pa.array([_duration(v) for v in array.to_pylist()], pa.string())
    try:
        text = array.cast(pa.string())
    except pa.ArrowNotImplementedError:  # what only an engine makes, such as a union
        return pa.array([None if v is None else str(v) for v in array.to_pylist()], pa.string())
    if pa.types.is_timestamp(kind):
        text = pc.replace_substring(text, " ", "T", max_replacements=1)
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        text = pc.replace_substring_regex(text, r"\.0+(Z?)$", r"\1")
    return text


def _duration(value: Any) -> str | None:
    """ISO 8601, in the three parts that an interval has."""
    if value is None:
        return None
    months, days, nanoseconds = value
    seconds = f"{nanoseconds / 1_000_000_000:.9f}".rstrip("0").rstrip(".")
    return f"P{months}M{days}DT{seconds}S"


def _number(value: float | None) -> float | str | None:
    """JSON has no words for these three; text keeps them apart from null."""
    if value is None or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _structs(array: pa.Array) -> list[dict[str, Any] | None]:
    names = [field.name for field in array.type]
    columns = [to_values(member) for member in array.flatten()]
    valid = array.is_valid().to_pylist()
    return [
        {name: column[row] for name, column in zip(names, columns, strict=True)} if there else None
        for row, there in enumerate(valid)
    ]


def _lists(array: pa.Array, values: list[Any]) -> list[list[Any] | None]:
    """`values` are those between the first and the last offset."""
    offsets, valid = array.offsets.to_pylist(), array.is_valid().to_pylist()
    first = offsets[0] if offsets else 0
    return [
        values[offsets[row] - first : offsets[row + 1] - first] if there else None
        for row, there in enumerate(valid)
    ]


def _used(array: pa.Array, child: pa.Array) -> pa.Array:
    """The part of a child that a slice of lists or maps points into."""
    offsets = array.offsets
    if not len(array):
        return child.slice(0, 0)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return child.slice(first, last - first)


def _maps(array: pa.Array) -> list[Any]:
    """An object when keys are text, otherwise an array of pairs."""
    keys, items = to_values(_used(array, array.keys)), to_values(_used(array, array.items))
    pairs = _lists(array, list(zip(keys, items, strict=True)))
    if pa.types.is_string(array.type.key_type):
        return [None if p is None else dict(p) for p in pairs]
    return [None if p is None else [[k, v] for k, v in p] for p in pairs]
