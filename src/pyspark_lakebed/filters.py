"""Filters that Spark hands down, as SQL by which files are left out; Spark applies them again."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal

from pyspark.sql import datasource as ds

_COMPARES = {
    ds.EqualTo: "=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}


def where_of(filters: Iterable[ds.Filter]) -> str | None:
    """What is known to mean the same here and there; anything else is left to Spark."""
    texts = [text for text in map(_text, filters) if text is not None]
    return " AND ".join(texts) or None


def _text(given: ds.Filter) -> str | None:
    match given:
        case ds.IsNull(attribute):
            return f"{_column(attribute)} IS NULL"
        case ds.IsNotNull(attribute):
            return f"{_column(attribute)} IS NOT NULL"
        case ds.In(attribute, values):
            listed = [_literal(value) for value in values]
            if not listed or None in listed:
                return None
            return f"{_column(attribute)} IN ({', '.join(map(str, listed))})"
        case _ if type(given) in _COMPARES:
            literal = _literal(given.value)  # type: ignore[attr-defined]
            if literal is None:
                return None
            column = _column(given.attribute)  # type: ignore[attr-defined]
            return f"{column} {_COMPARES[type(given)]} {literal}"
        case _:
            return None


def _column(path: tuple[str, ...]) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in path)


def _literal(value: object) -> str | None:
    """None for values whose order differs from one engine to another, such as floats'."""
    match value:
        case bool():
            return str(value).upper()
        case int() | Decimal():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime() if value.tzinfo is not None:
            return f"TIMESTAMP '{value.astimezone(UTC).isoformat()}'"
        case datetime():
            return None
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return None
