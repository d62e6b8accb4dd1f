"""Single values as JSON has them, in Iceberg's way: what a column's default is written as."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from lakebed.model.types import DecimalType, FixedType, Primitive, Scalar, Stored

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
_PER_SECOND = {"timestamp": 10**6, "timestamp_ntz": 10**6}
_ZONED = ("timestamp", "timestamptz_ns")


def to_json(kind: Scalar, value: Stored) -> bool | int | float | str:
    """The value as the specification's appendix on single values has it."""
    match kind, value:
        case DecimalType(_, scale), Decimal():
            return f"{value:.{scale}f}"
        case Primitive("uuid"), bytes():
            return str(UUID(bytes=value))
        case ((FixedType() | Primitive("binary")), bytes()):
            return value.hex()
        case Primitive("date"), int():
            return (_EPOCH + timedelta(days=value)).date().isoformat()
        case Primitive("time"), int():
            return (_EPOCH + timedelta(microseconds=value)).time().isoformat("microseconds")
        case Primitive("timestamp" | "timestamp_ntz" | "timestamp_ns" | "timestamptz_ns"), int():
            return _moment(str(kind), value)
        case _:
            assert not isinstance(value, bytes | Decimal), (kind, value)
            return value


def _moment(name: str, value: int) -> str:
    per_second = _PER_SECOND.get(name, 10**9)
    seconds, fraction = divmod(value, per_second)
    digits = 6 if per_second == 10**6 else 9
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds")
    return f"{text}.{fraction:0{digits}d}{'+00:00' if name in _ZONED else ''}"
