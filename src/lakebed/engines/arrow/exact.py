"""Casts of plain Arrow arrays that keep every value as it is, or refuse and say which one."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.types import arrow_type
from lakebed.model.types import INTEGERS, DecimalType, FixedType, Primitive, Scalar, Type

# The years 0001 to 9999: what Python, Spark and the text of a date can hold.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
_MICROS_PER_DAY = 86_400_000_000
_FIRST_MICRO, _LAST_MICRO = FIRST_DAY * _MICROS_PER_DAY, (LAST_DAY + 1) * _MICROS_PER_DAY - 1

_TAKES = {
    "boolean": {"boolean"},
    "integer": {"integer", "floating", "decimal"},
    "floating": {"integer", "floating"},
    "decimal": {"integer", "decimal"},
    "date": {"date"},
    "time": {"time"},
    "zoned": {"zoned"},
    "naive": {"naive"},
    "string": {"string"},
    "binary": {"binary"},
    "fixed": {"binary"},
}
_HINTS = {
    ("naive", "zoned"): "say which zone the times are in, for example with "
    "pyarrow.compute.assume_timezone or tz_localize",
    ("zoned", "naive"): "the column holds local times: convert to the zone meant and drop the zone",
    ("floating", "decimal"): "a float is rarely exactly a decimal: cast or round it yourself first",
    ("decimal", "floating"): "a decimal is rarely exactly a float: cast it yourself first",
    ("string", "integer"): "text is never parsed silently: cast the column to numbers first",
    ("string", "floating"): "text is never parsed silently: cast the column to numbers first",
    ("string", "decimal"): "text is never parsed silently: cast the column to decimals first",
    ("string", "fixed"): "text is never parsed silently: give the bytes (uuid.UUID(text).bytes)",
    ("binary", "string"): "bytes are never decoded silently: decode the column first",
}


class TypeRefused(Exception):
    """No value of this Arrow type can go into the column."""

    def __init__(self, hint: str) -> None:
        super().__init__(hint)
        self.hint = hint


class ValueRefused(Exception):
    """The value at `index` cannot go into the column."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason


def exact(array: pa.Array, kind: Scalar) -> pa.Array:
    """The same values as the column's Arrow type; TypeRefused or ValueRefused if they are not."""
    target = arrow_type(kind)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    result = array if array.type == target else _cast(array, kind, target)
    _check_values(result, kind)
    return result


def _cast(array: pa.Array, kind: Scalar, target: pa.DataType) -> pa.Array:
    source, wanted = _family(array.type), _family_of(kind)
    if source not in _TAKES[wanted]:
        default = f"cast the column to {kind} first"
        raise TypeRefused(_HINTS.get((source, wanted), default))
    cast = _caster(array.type, kind, target)
    try:
        return cast(array)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueRefused(first_refused(array, cast), _reason(kind)) from None


def _family(kind: pa.DataType) -> str:
    tests: dict[str, Callable[[pa.DataType], bool]] = {
        "boolean": pa.types.is_boolean,
        "integer": pa.types.is_integer,
        "floating": pa.types.is_floating,
        "decimal": pa.types.is_decimal,
        "date": pa.types.is_date,
        "time": pa.types.is_time,
        "zoned": lambda t: pa.types.is_timestamp(t) and t.tz is not None,
        "naive": pa.types.is_timestamp,
        "string": lambda t: pa.types.is_string(t) or pa.types.is_large_string(t),
        "view": pa.types.is_string_view,
        "binary": _is_binary,
    }
    found = next((name for name, test in tests.items() if test(kind)), "other")
    return "string" if found == "view" else found


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _family_of(kind: Scalar) -> str:
    if isinstance(kind, FixedType) or kind == Primitive("uuid"):
        return "fixed"
    return _family(arrow_type(kind))


def _caster(
    source: pa.DataType, kind: Scalar, target: pa.DataType
) -> Callable[[pa.Array], pa.Array]:
    if isinstance(kind, DecimalType):
        # Scaling up inside decimal128 overflows without a word; 76 digits have room for it.
        wide = pa.decimal256(76, kind.scale)
        return lambda array: array.cast(wide).cast(target)
    if pa.types.is_fixed_size_binary(target):
        return lambda array: pa.array(array.cast(pa.binary()).to_pylist(), target)
    if pa.types.is_floating(source) and target == pa.float32():
        return _narrow_floats
    return lambda array: array.cast(target)


def _narrow_floats(array: pa.Array) -> pa.Array:
    narrow = array.cast(pa.float32())
    same = pc.equal(narrow.cast(pa.float64()), array.cast(pa.float64()))
    if not pc.all(pc.or_(same, pc.is_nan(array))).as_py() and len(array) > array.null_count:
        raise pa.ArrowInvalid("not exactly a float")
    return narrow


def first_refused(array: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> int:
    """The first index whose value the cast refuses, by halving."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cast(array.slice(low, middle - low))
            low = middle
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            high = middle
    return low


def _reason(kind: Scalar) -> str:
    match kind:
        case DecimalType(precision, scale):
            return f"does not fit {precision} digits with {scale} of them decimal places"
        case FixedType(length):
            return f"is not {length} bytes long"
        case Primitive("uuid"):
            return "is not 16 bytes long"
        case Primitive(name) if name in INTEGERS:
            return f"is not a whole number of {INTEGERS[name]} bits"
        case Primitive("float" | "double"):
            return f"is not exactly a {kind}"
        case Primitive("date"):
            return "is not a whole day"
        case Primitive("time" | "timestamp" | "timestamp_ntz"):
            return "has digits below the microsecond or is out of range"
        case _:
            return f"does not fit {kind}"


def years_of(kind: Type) -> tuple[int, int] | tuple[None, None]:
    """Where a number made from a datetime may lie; only one with a zone can lie beyond."""
    return (_FIRST_MICRO, _LAST_MICRO) if kind == Primitive("timestamp") else (None, None)


def _check_values(array: pa.Array, kind: Scalar) -> None:
    match kind:
        case Primitive("date"):
            _within(array.view(pa.int32()), FIRST_DAY, LAST_DAY)
        case Primitive("timestamp" | "timestamp_ntz"):
            _within(array.view(pa.int64()), _FIRST_MICRO, _LAST_MICRO)
        case Primitive("time"):
            _within(array.view(pa.int64()), 0, _MICROS_PER_DAY - 1, "is not a time of the day")
        case Primitive("string"):
            _check_text(array)
        case DecimalType():
            _check_digits(array, kind)
        case _:
            pass


def _within(
    numbers: pa.Array, first: int, last: int, reason: str = "is outside the years 0001 to 9999"
) -> None:
    bounds = pc.min_max(numbers)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None or (low >= first and high <= last):
        return
    outside = pc.or_(pc.less(numbers, first), pc.greater(numbers, last))
    raise ValueRefused(pc.index(outside, True).as_py(), reason)


def _check_digits(array: pa.Array, kind: Scalar) -> None:
    # An array may claim fewer digits than its values have; only a full look finds them.
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        bad = first_refused(array, lambda part: part.validate(full=True))
        raise ValueRefused(bad, _reason(kind)) from None


def _check_text(array: pa.Array) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        for index, value in enumerate(array.cast(pa.binary())):
            if value.is_valid and not _decodes(value.as_py()):
                raise ValueRefused(index, "is not valid UTF-8") from None
        raise


def _decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
