"""Where a literal stands among the values of a column type: on one, between two, outside all."""

import math
import re
import reprlib
import sys
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from enum import Enum
from fractions import Fraction

from lakebed.model.errors import InvalidExpression
from lakebed.model.expressions import Column, TypedText
from lakebed.model.types import INTEGERS, DecimalType, FixedType, Primitive, Scalar, Stored

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_SECONDS_PER_DAY = 86_400
_DAY = r"(\d{4})-(\d\d)-(\d\d)"
_CLOCK = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,30}))?)?"
_ZONE = r"(Z|z|UTC|[+-]\d\d(?::?\d\d)?)?"
_MOMENT = re.compile(rf"{_DAY}(?:[Tt ]{_CLOCK} ?{_ZONE})?", re.ASCII)
_TIME = re.compile(_CLOCK, re.ASCII)
_UUID = re.compile("-".join(f"([0-9a-fA-F]{{{n}}})" for n in (8, 4, 4, 4, 12)))
_TICKS = {
    "timestamp": 10**6,
    "timestamp_ntz": 10**6,
    "timestamp_ns": 10**9,
    "timestamptz_ns": 10**9,
}
_ZONED = ("timestamp", "timestamptz_ns")
_NAMED_FLOATS = ("nan", "inf", "infinity", "+inf", "+infinity", "-inf", "-infinity")
# Beyond this power of ten no column type reaches, and exact fractions would only cost memory.
_LARGEST_EXPONENT = 400
_WIDE = Context(prec=100)
_HINTS = {
    "boolean": "compare it with TRUE or FALSE",
    "date": "write a date as '2024-01-31'",
    "time": "write a time as '10:30:00'",
    "uuid": "write a UUID as 'f79c3e09-677c-4bbd-a479-3f349cb785e7'",
    "string": "write text in single quotes, as in 'abc'",
    "binary": "write bytes as X'CAFE'",
}


@dataclass(frozen=True, slots=True)
class Point:
    """The greatest value of the type that is not above the literal; `exact` if it is equal."""

    value: Stored
    exact: bool = True


class Outside(Enum):
    BELOW = "less than every value of the type"
    ABOVE = "greater than every value of the type"


BELOW, ABOVE = Outside.BELOW, Outside.ABOVE
Place = Point | Outside


def place(column: Column, kind: Scalar, literal: Stored) -> Place:
    """Where the literal stands among the values of `kind`; refuses one that cannot be compared."""
    placed = _place(column, kind, literal)
    if placed is None:
        raise InvalidExpression(
            f"column {str(column)!r} of type {kind} cannot be compared with {_shown(literal)}",
            hint=_hint(kind),
            column=str(column),
        )
    return placed


def _place(column: Column, kind: Scalar, literal: Stored) -> Place | None:
    match kind:
        case DecimalType(precision, scale):
            return _place_decimal(precision, scale, literal)
        case FixedType(length):
            whole = isinstance(literal, bytes) and len(literal) == length
            return Point(literal) if whole else None
        case Primitive("boolean"):
            return Point(literal) if isinstance(literal, bool) else None
        case Primitive("float" | "double"):
            return _place_float(literal)
        case Primitive("string"):
            return _place_text(literal)
        case Primitive("binary"):
            return Point(literal) if isinstance(literal, bytes) else None
        case Primitive("uuid"):
            return _place_uuid(literal)
        case Primitive("time"):
            return _place_time(literal)
        case Primitive("date"):
            moment = _moment(column, literal)
            return None if moment is None else _on_grid(moment[0] / _SECONDS_PER_DAY, 2**31 - 1)
        case Primitive(name) if name in INTEGERS:
            number = _number(literal)
            return None if number is None else _on_grid(number, 2 ** (INTEGERS[name] - 1) - 1)
        case Primitive(name):
            return _place_timestamp(column, name, literal)


def _on_grid(exact: Fraction | float, highest: int) -> Place:
    """Among the integers from -highest - 1 to highest; infinities and NaN are outside."""
    if isinstance(exact, float):
        return BELOW if exact < 0 else ABOVE  # NaN is greater than every number
    floor = math.floor(exact)
    if floor > highest:
        return ABOVE
    return BELOW if floor < -highest - 1 else Point(floor, exact == floor)


def _number(literal: Stored) -> Fraction | float | None:
    """The exact number, or an infinity or NaN as a float; None if the literal is no number."""
    if isinstance(literal, bool) or not isinstance(literal, int | float | Decimal):
        return None
    if isinstance(literal, float):
        return Fraction(literal) if math.isfinite(literal) else literal
    if isinstance(literal, Decimal):
        if not literal.is_finite():
            return float(literal)
        if literal and abs(literal.adjusted()) > _LARGEST_EXPONENT:
            tiny = Fraction(1, 10**_LARGEST_EXPONENT)
            far = math.inf if literal.adjusted() > 0 else tiny
            return -far if literal.is_signed() else far
        if not literal:
            return Fraction(0)
    return Fraction(literal)


def _place_decimal(precision: int, scale: int, literal: Stored) -> Place | None:
    number = _number(literal)
    if number is None:
        return None
    highest = 10**precision - 1
    units = number if isinstance(number, float) else number * 10**scale
    placed = _on_grid(units, highest)
    if not isinstance(placed, Point):
        return placed
    unscaled = int(placed.value)
    if unscaled < -highest:  # decimals are symmetric, the grid of integers is not
        return BELOW
    return Point(Decimal(unscaled).scaleb(-scale, context=_WIDE), placed.exact)


def _place_float(literal: Stored) -> Place | None:
    """A number counts as the nearest double, as in SQL engines; NaN and infinity may be quoted."""
    if isinstance(literal, str):
        named = not isinstance(literal, TypedText) and literal.lower() in _NAMED_FLOATS
        return Point(float(literal)) if named else None
    if isinstance(literal, bool | bytes):
        return None
    if isinstance(literal, float) or (isinstance(literal, Decimal) and not literal.is_finite()):
        return Point(float(literal))
    try:
        near = float(literal)
    except OverflowError:
        near = math.inf if literal > 0 else -math.inf
    if math.isfinite(near):
        return Point(near)
    # A finite number beyond the largest double stands between it and infinity.
    return Point(sys.float_info.max if near > 0 else -math.inf, exact=False)


def _place_text(literal: Stored) -> Place | None:
    if not isinstance(literal, str) or isinstance(literal, TypedText):
        return None
    try:
        literal.encode()
    except UnicodeEncodeError:
        return None  # half a surrogate pair is no text
    return Point(literal)


def _place_uuid(literal: Stored) -> Place | None:
    if isinstance(literal, bytes):
        return Point(literal) if len(literal) == 16 else None
    text = _text_of(literal, ("uuid",))
    written = text is not None and _UUID.fullmatch(text.strip())
    return Point(bytes.fromhex("".join(written.groups()))) if written else None


def _place_time(literal: Stored) -> Place | None:
    text = _text_of(literal, ("time",))
    clock = _TIME.fullmatch(text.strip()) if text is not None else None
    seconds = _clock_seconds(*clock.groups()) if clock else None
    return None if seconds is None else _on_grid(seconds * 10**6, _SECONDS_PER_DAY * 10**6)


def _place_timestamp(column: Column, name: str, literal: Stored) -> Place | None:
    moment = _moment(column, literal)
    if moment is None:
        return None
    seconds, zoned = moment
    if zoned and name not in _ZONED:
        raise InvalidExpression(
            f"column {str(column)!r} of type {name} has no zone, but {_shown(literal)} has one",
            hint="write the timestamp without Z or an offset",
            column=str(column),
        )
    return _on_grid(seconds * _TICKS[name], 2**63 - 1)


def _moment(column: Column, literal: Stored) -> tuple[Fraction, bool] | None:
    """Seconds since the epoch, UTC unless the text has an offset; and whether it had one."""
    text = _text_of(literal, ("date", *_TICKS))
    found = _MOMENT.fullmatch(text.strip()) if text is not None else None
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError as error:
        raise InvalidExpression(
            f"{_shown(literal)} is no date: {error}",
            hint="write a day of the calendar as '2024-01-31'",
            column=str(column),
        ) from error
    clock = _clock_seconds(hour or "00", minute or "00", second, fraction)
    offset = _offset_seconds(zone)
    if clock is None or offset is None:
        return None
    return days * _SECONDS_PER_DAY + clock - offset, zone is not None


def _clock_seconds(
    hour: str, minute: str, second: str | None, fraction: str | None
) -> Fraction | None:
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        return None
    whole = int(hour) * 3600 + int(minute) * 60 + int(second or 0)
    return whole + (Fraction(int(fraction), 10 ** len(fraction)) if fraction else Fraction(0))


def _offset_seconds(zone: str | None) -> int | None:
    if zone is None or zone in ("Z", "z", "UTC"):
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:] if len(zone) > 3 else 0)
    if hours > 23 or minutes > 59:
        return None
    return (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60)


def _text_of(literal: Stored, kinds: tuple[str, ...]) -> str | None:
    """Plain text, or text written with one of these types."""
    if isinstance(literal, TypedText) and str(literal.kind) not in kinds:
        return None
    return str(literal) if isinstance(literal, str) else None


def _shown(literal: Stored) -> str:
    match literal:
        case bool():
            return str(literal).upper()
        case TypedText():
            return f"{str(literal.kind).upper()} {reprlib.repr(str(literal))}"
        case str():
            return f"the text {reprlib.repr(str(literal))}"
        case bytes():
            return f"bytes of length {len(literal)}"
        case float():
            return f"the number {literal}"
        case _:
            return f"the number {Decimal(literal):.40g}"


def _hint(kind: Scalar) -> str:
    name = str(kind)
    if name in _TICKS:
        zone = "+00:00" if name in _ZONED else ""
        return f"write a timestamp as '2024-01-31 10:30:00{zone}'"
    if isinstance(kind, FixedType):
        return f"write exactly {kind.length} bytes as X'…'"
    return _HINTS.get(name, "write the number without quotes")
