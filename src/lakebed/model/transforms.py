"""Iceberg's partition transforms on single values in stored form; None stays None."""

import struct
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Context, Decimal

from lakebed.model.errors import InvalidSchema
from lakebed.model.types import INTEGERS, DecimalType, FixedType, Primitive, Stored, Type

_EPOCH = date(1970, 1, 1)
_MICROS_PER_HOUR = 3_600_000_000
_HOURLY = ("timestamp", "timestamp_ntz", "timestamp_ns", "timestamptz_ns")
TEMPORAL = ("year", "month", "day", "hour")
_WIDE = Context(prec=100)  # the default context rounds to 28 digits; decimals have up to 38


@dataclass(frozen=True, slots=True)
class Transform:
    """`name` is identity, year, month, day, hour, bucket or truncate; `width` is its argument."""

    name: str
    width: int = 0

    def __str__(self) -> str:
        return f"{self.name}[{self.width}]" if self.width else self.name


def check_transform(transform: Transform, kind: Type, column: str) -> None:
    """Refuse a transform that Iceberg does not define for the column's type."""
    allowed = {
        "identity": isinstance(kind, Primitive | DecimalType | FixedType),
        "bucket": isinstance(kind, DecimalType | FixedType)
        or (isinstance(kind, Primitive) and kind.name not in ("boolean", "float", "double")),
        "truncate": isinstance(kind, DecimalType)
        or (isinstance(kind, Primitive) and kind.name in (*INTEGERS, "string", "binary")),
        "year": isinstance(kind, Primitive) and kind.name in ("date", *_HOURLY),
        "month": isinstance(kind, Primitive) and kind.name in ("date", *_HOURLY),
        "day": isinstance(kind, Primitive) and kind.name in ("date", *_HOURLY),
        "hour": isinstance(kind, Primitive) and kind.name in _HOURLY,
    }
    if transform.name not in allowed:
        raise InvalidSchema(
            f"unknown partition transform {transform.name!r}",
            hint=f"known transforms: {', '.join(allowed)}",
        )
    if not allowed[transform.name]:
        raise InvalidSchema(
            f"transform {transform} cannot be applied to column {column!r} of type {kind}",
            hint="choose another transform or another column",
            column=column,
        )
    if transform.name in ("bucket", "truncate") and not 1 <= transform.width <= 2**31 - 1:
        raise InvalidSchema(
            f"{transform.name} needs a positive number", hint=f"write {transform.name}(16, column)"
        )


def result_type(transform: Transform, source: Type) -> Type:
    if transform.name in ("identity", "truncate"):
        return source
    return Primitive("date") if transform.name == "day" else Primitive("int")


def apply(transform: Transform, kind: Type, value: Stored | None) -> Stored | None:
    if value is None or transform.name == "identity":
        return value
    if transform.name == "bucket":
        return (murmur3(hash_bytes(kind, value)) & 0x7FFFFFFF) % transform.width
    if transform.name == "truncate":
        return _truncate(kind, value, transform.width)
    return _temporal(transform.name, kind, int(value))


def _truncate(kind: Type, value: Stored, width: int) -> Stored:
    if isinstance(value, str | bytes):
        return value[:width]
    if isinstance(value, Decimal) and isinstance(kind, DecimalType):
        unscaled = _unscaled(value, kind)
        return Decimal(unscaled - unscaled % width).scaleb(-kind.scale, context=_WIDE)
    return int(value) - int(value) % width


def _unscaled(value: Decimal, kind: DecimalType) -> int:
    return int(value.scaleb(kind.scale, context=_WIDE))


def _temporal(name: str, kind: Type, value: int) -> int:
    if kind == Primitive("date"):
        micros = value * 24 * _MICROS_PER_HOUR
    else:
        micros = value // 1000 if str(kind).endswith("_ns") else value
    if name == "hour":
        return micros // _MICROS_PER_HOUR
    days = micros // (24 * _MICROS_PER_HOUR)
    if name == "day":
        return days
    day = _EPOCH + timedelta(days=days)
    return day.year - 1970 if name == "year" else (day.year - 1970) * 12 + day.month - 1


def hash_bytes(kind: Type, value: Stored) -> bytes:
    """The bytes Iceberg hashes for a value of a type."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, Decimal) and isinstance(kind, DecimalType):
        unscaled = _unscaled(value, kind)
        return unscaled.to_bytes(
            max(1, (unscaled + (unscaled < 0)).bit_length() // 8 + 1), "big", signed=True
        )
    number = int(value)
    # Nanosecond timestamps hash like the microsecond they fall in.
    return struct.pack("<q", number // 1000 if str(kind).endswith("_ns") else number)


def murmur3(data: bytes) -> int:
    """Murmur3, 32 bit, x86, seed 0."""
    h = 0
    whole = len(data) // 4 * 4
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        h ^= _mix(k)
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & 0xFFFFFFFF
    tail = data[whole:]
    if tail:
        h ^= _mix(int.from_bytes(tail, "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def _mix(k: int) -> int:
    k = k * 0xCC9E2D51 & 0xFFFFFFFF
    k = (k << 15 | k >> 17) & 0xFFFFFFFF
    return k * 0x1B873593 & 0xFFFFFFFF
