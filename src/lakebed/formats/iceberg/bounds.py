"""Single values: the stored form to and from Iceberg's binary form (bounds) and Avro's."""

import math
import struct
from decimal import Context, Decimal

from lakebed.formats.iceberg.manifest_files import PartitionValue
from lakebed.formats.iceberg.manifest_schemas import decimal_size_bytes
from lakebed.model.errors import DataCorrupt, InvalidInput
from lakebed.model.types import DecimalType, FixedType, Primitive, Scalar, Stored

_INT, _LONG = struct.Struct("<i"), struct.Struct("<q")
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_PACKED = {
    **dict.fromkeys(("byte", "short", "int", "date"), _INT),
    **dict.fromkeys(("long", "time", "timestamp", "timestamp_ntz"), _LONG),
    **dict.fromkeys(("timestamp_ns", "timestamptz_ns"), _LONG),
    "float": _FLOAT,
    "double": _DOUBLE,
}
# A bound may have been written before its column was widened.
_NARROWER = {"long": _INT, "double": _FLOAT}
_FLOATING = ("float", "double")
# Precision 38 is more than the default context keeps.
_EXACT = Context(prec=100)


def to_binary(kind: Scalar, value: Stored) -> bytes:
    try:
        return _to_binary(kind, value)
    except (struct.error, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInput(f"{value!r} is no value of type {kind}: {error}") from error


def _to_binary(kind: Scalar, value: Stored) -> bytes:
    match kind:
        case DecimalType(_, scale) if isinstance(value, Decimal):
            number = _unscaled(value, scale)
            return number.to_bytes(
                (number + (number < 0)).bit_length() // 8 + 1, "big", signed=True
            )
        case Primitive("boolean"):
            return b"\x01" if value else b"\x00"
        case Primitive("string") if isinstance(value, str):
            return value.encode()
        case Primitive("binary" | "uuid") | FixedType() if isinstance(value, bytes):
            return value
        case Primitive(name) if name in _PACKED:
            return _PACKED[name].pack(value)
        case _:
            raise TypeError(type(value).__name__)


def from_binary(kind: Scalar, data: bytes) -> Stored:
    """The inverse; also of a bound from before its column was widened. Raises DataCorrupt."""
    try:
        return _from_binary(kind, data)
    except (struct.error, ValueError) as error:
        raise DataCorrupt(f"{data.hex()} is no bound of type {kind}: {error}") from error


def _from_binary(kind: Scalar, data: bytes) -> Stored:
    match kind:
        case DecimalType(_, scale):
            return _decimal(int.from_bytes(data, "big", signed=True), scale)
        case Primitive("boolean"):
            if data not in (b"\x00", b"\x01"):
                raise ValueError("not 0 or 1")
            return data == b"\x01"
        case Primitive("string"):
            return data.decode()
        case Primitive("binary") | FixedType():
            return data
        case Primitive("uuid"):
            if len(data) != 16:
                raise ValueError("not 16 bytes")
            return data
        case Primitive(name):
            narrow = _NARROWER.get(name)
            packed = narrow if narrow and len(data) == narrow.size else _PACKED[name]
            found: int | float = packed.unpack(data)[0]
            return found


def fits(kind: Scalar, value: Stored) -> bool:
    """A file that a restore takes away may hold values of a wider type than its column has now."""
    if isinstance(kind, DecimalType) and isinstance(value, Decimal):
        return len(str(abs(_unscaled(value, kind.scale)))) <= kind.precision
    try:
        to_binary(kind, value)
    except InvalidInput:
        return False
    return True


def to_avro(kind: Scalar, value: Stored | None) -> PartitionValue:
    """A partition value as the manifest's Avro holds it."""
    if isinstance(kind, DecimalType) and isinstance(value, Decimal):
        number = _unscaled(value, kind.scale)
        return number.to_bytes(decimal_size_bytes(kind.precision), "big", signed=True)
    if isinstance(value, Decimal):
        raise InvalidInput(f"{value!r} is no value of type {kind}")
    return value


def from_avro(kind: Scalar, value: PartitionValue) -> Stored | None:
    if isinstance(kind, DecimalType) and isinstance(value, bytes):
        return _decimal(int.from_bytes(value, "big", signed=True), kind.scale)
    return value


def lower_to_binary(kind: Scalar, value: Stored) -> bytes:
    return to_binary(kind, -0.0 if _is_zero(kind, value) else value)


def upper_to_binary(kind: Scalar, value: Stored) -> bytes:
    return to_binary(kind, 0.0 if _is_zero(kind, value) else value)


def _is_zero(kind: Scalar, value: Stored) -> bool:
    """Readers sort -0.0 before 0.0, writers of statistics often do not: either may occur."""
    return isinstance(kind, Primitive) and kind.name in _FLOATING and value == 0


def is_nan(value: Stored | None) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _unscaled(value: Decimal, scale: int) -> int:
    number = value.scaleb(scale, context=_EXACT)
    if number != number.to_integral_value():
        raise InvalidInput(f"{value} has more than {scale} digits after the point")
    return int(number)


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, context=_EXACT)
