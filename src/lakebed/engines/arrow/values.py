"""Single Python values as what Arrow takes for a column, exactly; dates and times become integers.

With `text` on, values come from JSON or CSV: what these cannot write (dates, decimals, bytes …) is
read from text, bytes as base64.
"""

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from functools import partial
from numbers import Rational, Real
from typing import Any
from uuid import UUID

from lakebed.model.types import (
    INTEGERS,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    Primitive,
    Stored,
    StructType,
    Type,
)

Converter = Callable[[Any], Any]
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Raises where it would have to round; exponents are bounded so that no number grows huge.
_WIDE = Context(prec=100, Emin=-200, Emax=200, traps=[Inexact, Overflow, InvalidOperation])
_LONG_FRACTION = re.compile(r"\.(\d{6})(\d*[1-9]\d*)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Refused(Exception):
    """A value that cannot go into its column; `path` leads to it inside a nested value."""

    def __init__(self, reason: str, hint: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.path = path


def converter(kind: Type, *, text: bool = False) -> Converter:
    """What turns a value of any kind into one that Arrow takes for the type, or raises Refused."""
    match kind:
        case StructType(fields):
            members = {f.name: (converter(f.type, text=text), f.write_default) for f in fields}
            return partial(_struct, members)
        case ListType(_, element):
            return partial(_list, converter(element, text=text))
        case MapType(_, key, _, value):
            return partial(_map, converter(key, text=text), converter(value, text=text))
        case DecimalType(precision, scale):
            return partial(_decimal, precision, scale, text)
        case FixedType(length):
            return partial(_fixed, length, text)
        case Primitive(name) if name in INTEGERS:
            return partial(_integer, INTEGERS[name])
        case Primitive(name):
            return partial(_PRIMITIVES[name], text)


def _struct(members: dict[str, tuple[Converter, Stored | None]], value: Any) -> dict[str, Any]:
    """Members left out get their defaults."""
    if not isinstance(value, Mapping):
        raise _wrong(value, "a mapping of member names to values")
    unknown = [key for key in value if key not in members]
    if unknown:
        hint = f"there are: {', '.join(members)}"
        raise Refused(f"has no member {str(unknown[0])[:100]!r}", hint)
    return {
        name: _inside(name, convert, value[name]) if name in value else default
        for name, (convert, default) in members.items()
    }


def _list(convert: Converter, value: Any) -> list[Any]:
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise _wrong(value, "a list")
    return [_inside("element", convert, item) for item in value]


def _map(key: Converter, item: Converter, value: Any) -> list[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, Mapping) else value
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise _wrong(value, "a mapping or a list of pairs")
    found = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise _wrong(pair, "a pair of key and value")
        found.append((_inside("key", key, pair[0]), _inside("value", item, pair[1])))
    return found


def _inside(name: str, convert: Converter, value: Any) -> Any:
    if value is None:
        return None
    try:
        return convert(value)
    except Refused as error:
        path = f".{name}{error.path}"
        raise Refused(error.reason, error.hint, path) from None


def _wrong(value: Any, wanted: str, hint: str = "") -> Refused:
    return Refused(f"is {type(value).__name__}, not {wanted}", hint or f"give {wanted}, or None")


def _integer(bits: int, value: Any) -> int:
    number = _whole(value)
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise Refused(f"does not fit {bits} bits", "correct the value, or widen the column")
    return number


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise _wrong(value, "a number", "numbers are never read from text: use int(…) first")
    try:
        number = int(value)  # type: ignore[arg-type]  # every real number can be cut to an int
    except (ValueError, OverflowError):
        raise Refused("is not a whole number", "use None where there is no value") from None
    if number != value:
        raise Refused("is not a whole number", "round it first, or use another column type")
    return number


def _boolean(_text: bool, value: Any) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):  # numpy has its own, and is not imported here
        raise _wrong(value, "a boolean")
    return bool(value)


def _double(text: bool, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise _wrong(value, "a number", "numbers are never read from text: use float(…) first")
    if isinstance(value, Decimal):
        if not text:
            raise _wrong(
                value, "a float", "a decimal is rarely exactly a float: use float(…) first"
            )
        return float(value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if isinstance(value, Rational) and not (text or number == value):
        raise Refused("is not exactly a float", "round it first, or use another column type")
    return number


def _float(text: bool, value: Any) -> float:
    # Python has no floats of 32 bits: the nearest one is meant.
    number = _double(text, value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise Refused("does not fit 32 bits", "correct the value, or use double") from None


def _decimal(precision: int, scale: int, text: bool, value: Any) -> Decimal:
    if text and isinstance(value, str):
        value = _parsed(Decimal, value, "a decimal number")
    if isinstance(value, float):
        hint = "a float is rarely exactly a decimal: use Decimal('1.23')"
        raise _wrong(value, "a decimal", hint)
    if not isinstance(value, Decimal):
        value = Decimal(_whole(value))
    if not value.is_finite():
        raise Refused("is not a finite number", "use None where there is no value")
    try:
        number = int(value.scaleb(scale, _WIDE).to_integral_exact(context=_WIDE))
    except ArithmeticError:
        number = 10**precision
    if abs(number) >= 10**precision:
        reason = f"does not fit {precision} digits with {scale} of them decimal places"
        raise Refused(reason, "round it first, or use another column type")
    return Decimal(f"{number}E-{scale}")


def _fixed(length: int, text: bool, value: Any) -> bytes:
    data = _binary(text, value)
    if len(data) != length:
        raise Refused(f"is not {length} bytes long", f"give exactly {length} bytes")
    return data


def _binary(text: bool, value: Any) -> bytes:
    if text and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise Refused("is not base64", "write bytes as base64") from None
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong(value, "bytes", "text is never encoded silently: use .encode() first")
    return bytes(value)


def _string(_text: bool, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(value, "a string", "values are never made text silently: use str(…) first")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused("is not valid Unicode", "remove the lone surrogates") from None
    return value


def _uuid(text: bool, value: Any) -> bytes:
    if text and isinstance(value, str):
        value = _parsed(UUID, value, "a UUID")
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, str):
        raise _wrong(value, "a UUID", "text is never parsed silently: use uuid.UUID(…) first")
    return _fixed(16, text, value)


def _date(text: bool, value: Any) -> int:
    if text and isinstance(value, str):
        if not _DAY.fullmatch(value):
            raise Refused("is not a date", "write dates as 2024-01-31")
        value = _parsed(date.fromisoformat, value, "a date like 2024-01-31")
    if isinstance(value, datetime) or not isinstance(value, date):
        hint = "use .date() first" if isinstance(value, datetime) else ""
        raise _wrong(value, "a datetime.date", hint)
    return value.toordinal() - _EPOCH_DAY


def _time(text: bool, value: Any) -> int:
    if text and isinstance(value, str):
        value = _parsed(time.fromisoformat, _whole_micros(value), "a time like 13:00:00")
    if not isinstance(value, time) or value.tzinfo is not None:
        raise _wrong(value, "a datetime.time without a zone")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def _timestamp(zoned: bool, nanos: bool, text: bool, value: Any) -> int:
    below = 0
    if text and isinstance(value, str):
        value, below = _moment(value, nanos)
    if not isinstance(value, datetime) or value != value:  # noqa: PLR0124  # as pandas' NaT does
        raise _wrong(value, "a datetime.datetime")
    if (value.tzinfo is not None) != zoned:
        raise _zone(zoned)
    moment = value if zoned else value.replace(tzinfo=UTC)
    micros = (moment - _EPOCH) // _MICROSECOND
    below += getattr(value, "nanosecond", 0)  # pandas keeps them in a field of its own
    if not nanos:
        if below:
            raise Refused("has digits below the microsecond", "cut them off first")
        return micros
    number = micros * 1000 + below
    if not -(2**63) <= number < 2**63:
        raise Refused("is outside the years 1677 to 2262", "use a timestamp in microseconds")
    return number


def _zone(zoned: bool) -> Refused:
    if zoned:
        hint = "say which zone is meant: datetime(…, tzinfo=timezone.utc), or an offset in the text"
        return Refused("has no time zone", hint)
    return Refused("has a time zone", "the column holds local times: drop the zone first")


def _moment(text: str, nanos: bool) -> tuple[datetime, int]:
    long = _LONG_FRACTION.search(text)
    below = 0
    if long and nanos and len(long[2]) <= 3:
        below = int(long[2].ljust(3, "0"))
        text = text[: long.start(2)] + text[long.end(2) :]
    wanted = "a timestamp like 2024-01-31T13:00:00"
    return _parsed(datetime.fromisoformat, _whole_micros(text), wanted), below


def _whole_micros(text: str) -> str:
    # Python's own parser drops further digits without a word.
    if _LONG_FRACTION.search(text):
        raise Refused("has digits below the microsecond", "cut them off first")
    return text


def _parsed(parse: Callable[[str], Any], text: str, wanted: str) -> Any:
    try:
        return parse(text)
    except (ValueError, InvalidOperation):
        raise Refused(f"is not {wanted}", f"write {wanted}") from None


_PRIMITIVES: dict[str, Callable[[bool, Any], Any]] = {
    "boolean": _boolean,
    "float": _float,
    "double": _double,
    "date": _date,
    "time": _time,
    "timestamp": partial(_timestamp, True, False),
    "timestamp_ntz": partial(_timestamp, False, False),
    "timestamp_ns": partial(_timestamp, False, True),
    "timestamptz_ns": partial(_timestamp, True, True),
    "string": _string,
    "uuid": _uuid,
    "binary": _binary,
}
