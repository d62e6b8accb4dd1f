"""Values of Python as SQL text, exactly."""

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

from lakebed.model.errors import InvalidInput
from lakebed.model.quoting import text_literal


def value_to_sql(name: str, value: object) -> str:
    """Text is SQL already; `name` is the column, for errors."""
    if isinstance(value, str):
        return value
    sql = _sql(value)
    if sql is None:
        raise InvalidInput(
            f"{name!r} is set to {value!r}, which SQL has no literal for",
            hint="write an expression as text, such as 'price * 2' or \"'text'\"",
            column=name,
        )
    return sql


def literal(value: object) -> str:
    """A value of Python as SQL; text is text."""
    if isinstance(value, str):
        return text_literal(value)
    sql = _sql(value)
    if sql is None:
        raise InvalidInput(
            f"SQL has no literal for {value!r}", hint="give a number, text, a date or the like"
        )
    return sql


def _sql(value: object) -> str | None:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case float():
            text = repr(value) if math.isfinite(value) else f"'{value}'"
            return f"CAST({text} AS DOUBLE)"
        case Decimal() if value.is_finite():
            return format(value, "f")
        case datetime():
            return _moment(value)
        case date():
            return f"DATE '{value.isoformat()}'"
        case time() if value.tzinfo is None:
            return f"TIME '{value.isoformat()}'"
        case bytes():
            escaped = "".join(f"\\x{byte:02X}" for byte in value)
            return f"'{escaped}'::BLOB"
        case UUID():
            return f"UUID '{value}'"
        case _:
            return None


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    utc = value.astimezone(UTC).replace(tzinfo=None)
    return f"TIMESTAMPTZ '{utc.isoformat(sep=' ')}+00'"
