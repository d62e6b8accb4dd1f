"""Stored values as Delta writes them: bounds in statistics, and partition values as text."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import orjson

from lakebed.model.errors import UnsupportedFeature
from lakebed.model.types import INTEGERS, DecimalType, Primitive, Stored, Type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)

Bound = bool | int | float | str | orjson.Fragment
Encode = Callable[[Any], Bound | None]


def bound_encoders(kind: Type) -> tuple[Encode, Encode] | None:
    """How to write lower and upper bounds of a type; None for types Delta keeps no bounds of.

    An encoder gives None for what cannot be said in JSON.
    """
    match kind:
        case Primitive("boolean" | "string"):
            return _as_it_is, _as_it_is
        case Primitive(name) if name in INTEGERS:
            return _as_it_is, _as_it_is
        case Primitive("float" | "double"):
            return _lower_float, _upper_float
        case Primitive("date"):
            return _date, _date
        case Primitive("timestamp" | "timestamp_ntz" as name):
            return partial(_lower_moment, name), partial(_upper_moment, name)
        case DecimalType(_, scale):
            encode = partial(_decimal, scale)
            return encode, encode
        case _:
            return None


def _as_it_is(value: Any) -> Bound:
    return value  # type: ignore[no-any-return]  # a stored boolean, integer or text


def _lower_float(value: float) -> float | None:
    # Some readers order -0.0 below 0.0, and files may hold either for the bound.
    return _finite(-0.0 if value == 0 else value)


def _upper_float(value: float) -> float | None:
    return _finite(0.0 if value == 0 else value)


def _decimal(scale: int, value: Decimal) -> Bound:
    # As a number with all its digits; a float would lose some.
    return orjson.Fragment(f"{value:.{scale}f}")


def _lower_moment(name: str, micros: int) -> str | None:
    return _moment(micros // 1000 * 1000, name)


def _upper_moment(name: str, micros: int) -> str | None:
    # Readers cut to the millisecond, so it is rounded up; the last one is said as it is.
    return _moment(-(-micros // 1000) * 1000, name) or _moment(micros, name)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _date(days: int) -> str | None:
    try:
        return (_EPOCH + days * _DAY).date().isoformat()
    except OverflowError:  # beyond the years 1 to 9999
        return None


def _moment(micros: int, name: str) -> str | None:
    try:
        moment = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
    except OverflowError:
        return None
    text = moment.isoformat(timespec="microseconds" if micros % 1000 else "milliseconds")
    return f"{text}Z" if name == "timestamp" else text


def partition_text(kind: Type, value: Stored | None) -> str | None:
    """A partition value in Delta's serialisation; NULL is None."""
    if value is None:
        return None
    match kind:
        case Primitive("boolean"):
            return "true" if value else "false"
        case Primitive("date"):
            text = _date(int(value))
        case Primitive("timestamp" | "timestamp_ntz" as name):
            text = _partition_moment(int(value), name)
        case DecimalType(_, scale) if isinstance(value, Decimal):
            text = f"{value:.{scale}f}"
        case _:
            # Delta reads an empty text as NULL; a table that has one is not shown partitioned.
            assert value != "", "an empty text in a partition that Delta shows"
            text = str(value)
    if text is None:
        raise UnsupportedFeature(
            f"Delta cannot show the partition value {value!r} of type {kind}",
            hint="its dates end with the year 9999; publish the table as Iceberg alone"
            " (formats=['iceberg'])",
        )
    return text


def _partition_moment(micros: int, name: str) -> str | None:
    try:
        moment = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
    except OverflowError:
        return None
    if name == "timestamp_ntz":
        return moment.isoformat(sep=" ", timespec="microseconds")
    # With the zone: a text without one means the zone of whoever reads it.
    return f"{moment.isoformat(timespec='microseconds')}Z"
