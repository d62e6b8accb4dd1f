"""Stored values as Delta writes them: bounds in statistics, and partition values as text."""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import orjson

from lakebed.model.errors import UnsupportedFeature
from lakebed.model.types import INTEGERS, DecimalType, Primitive, Stored, Type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)

Bound = bool | int | float | str | orjson.Fragment


def lower_bound(kind: Type, value: Stored) -> Bound | None:
    """As JSON; None when it cannot be said, which is always allowed."""
    match kind:
        case Primitive("timestamp" | "timestamp_ntz" as name):
            return _moment(int(value) // 1000 * 1000, name)
        case Primitive("float" | "double"):
            # Some readers order -0.0 below 0.0, and files may hold either for the bound.
            return _finite(-0.0 if value == 0 else float(value))
        case _:
            return _bound(kind, value)


def upper_bound(kind: Type, value: Stored) -> Bound | None:
    match kind:
        case Primitive("timestamp" | "timestamp_ntz" as name):
            # Readers cut to the millisecond, so it is rounded up; the last one is said as it is.
            rounded = -(-int(value) // 1000) * 1000
            return _moment(rounded, name) or _moment(int(value), name)
        case Primitive("float" | "double"):
            return _finite(0.0 if value == 0 else float(value))
        case _:
            return _bound(kind, value)


def _bound(kind: Type, value: Stored) -> Bound | None:
    match kind:
        case Primitive("boolean"):
            return bool(value)
        case Primitive(name) if name in INTEGERS:
            return int(value)
        case Primitive("string"):
            return str(value)
        case Primitive("date"):
            return _date(int(value))
        case DecimalType(_, scale) if isinstance(value, Decimal):
            # As a number with all its digits; a float would lose some.
            return orjson.Fragment(f"{value:.{scale}f}")
        case _:
            return None  # Delta keeps no bounds of binary columns


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
