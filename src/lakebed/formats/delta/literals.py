"""Stored values as SQL that Delta's writers read: what a column's default is written as. Pure."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from lakebed.model.types import DecimalType, Primitive, Stored, Type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def sql_literal(kind: Type, value: Stored) -> str:
    match kind, value:
        case _, bool():
            return "true" if value else "false"
        case Primitive("date"), int():
            return f"DATE '{(_EPOCH + timedelta(days=value)).date().isoformat()}'"
        case Primitive("timestamp"), int():
            return f"TIMESTAMP '{_moment(value)}Z'"
        case Primitive("timestamp_ntz"), int():
            return f"TIMESTAMP_NTZ '{_moment(value)}'"
        case Primitive("float"), float():
            return f"{value!r}F"
        case Primitive("double"), float():
            return f"{value!r}D"
        case DecimalType(_, scale), Decimal():
            return f"{value:.{scale}f}BD"
        case _, bytes():
            return f"X'{value.hex().upper()}'"
        case _, str():
            # Spark reads backslashes as escapes, and two quotes in a row as the end of two texts.
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case _:
            return str(value)


def _moment(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(sep=" ", timespec="microseconds")
