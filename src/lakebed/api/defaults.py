"""What a user gives as a column's default, in stored form."""

import math

from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.rows import convert_rows
from lakebed.engines.arrow.transform import stored
from lakebed.engines.arrow.values import Refused
from lakebed.model.errors import InvalidSchema, LakebedError, UnsupportedFeature
from lakebed.model.ids import FieldId, SchemaId
from lakebed.model.schema import Schema
from lakebed.model.types import INTEGERS, Field, Stored, Type, is_scalar

_UNREADABLE = ("timestamp_ns", "timestamptz_ns")


def to_default(column: str, kind: Type, value: object) -> Stored:
    """Text is read as CSV has it: '2024-01-31' is a day, '1.50' a decimal, '5' a number."""
    if not is_scalar(kind):
        raise UnsupportedFeature(
            f"column {column!r} of type {kind} cannot have a default",
            hint="only single values can be defaults: Iceberg has no others",
            column=column,
        )
    if str(kind) in _UNREADABLE:
        raise UnsupportedFeature(
            f"column {column!r} of type {kind} cannot have a default",
            hint="PyIceberg would refuse the whole table; use microseconds",
            column=column,
        )
    if value is None:
        raise InvalidSchema(
            f"NULL is what column {column!r} gets without a default",
            hint="leave the default out, or drop it",
            column=column,
        )

    def complain(_: int, __: str, refused: Refused, given: object) -> LakebedError:
        return InvalidSchema(
            f"the default {given!r} of column {column!r} {refused.reason}",
            hint=refused.hint,
            column=column,
        )

    if isinstance(value, str):
        value = _read(kind, value)
    schema = Schema(SchemaId(0), (Field(FieldId(1), "default", kind, False, None, "default"),))
    batch = convert_rows(
        [{"default": value}], schema, complain=complain, text=isinstance(value, str)
    )
    (checked,) = conform([batch], schema)
    found: Stored = stored(checked.column(0), kind)[0].as_py()
    if isinstance(found, float) and not math.isfinite(found):
        raise UnsupportedFeature(
            f"the default {found} of column {column!r} is no finite number",
            hint="Iceberg's metadata cannot say NaN or infinity",
            column=column,
        )
    return found


def _read(kind: Type, text: str) -> object:
    """Numbers and truth from text; what is neither stays text, and is refused as that."""
    name = str(kind)
    try:
        if name in INTEGERS:
            return int(text)
        if name in ("float", "double"):
            return float(text)
    except ValueError:
        return text
    if name == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    return text
