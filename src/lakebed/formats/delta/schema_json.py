"""A schema as Delta's schemaString."""

import orjson

from lakebed.formats.delta.actions import Plain
from lakebed.formats.delta.literals import sql_literal
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.schema import Schema
from lakebed.model.types import (
    DecimalType,
    Field,
    ListType,
    MapType,
    Primitive,
    StructType,
    Type,
    Widening,
)

_NAMES = {
    "boolean": "boolean",
    "byte": "byte",
    "short": "short",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "string": "string",
    "binary": "binary",
}


def schema_string(schema: Schema, *, mapped: bool) -> str:
    """`mapped`: with the ids and physical names of column mapping, at every struct level."""
    return orjson.dumps(_struct(schema.fields, mapped)).decode()


def _struct(fields: tuple[Field, ...], mapped: bool) -> Plain:
    return {"type": "struct", "fields": [_field(f, mapped) for f in fields]}


def _field(field: Field, mapped: bool) -> Plain:
    metadata: Plain = {}
    if field.doc is not None:
        metadata["comment"] = field.doc
    if mapped:
        metadata["delta.columnMapping.id"] = field.id
        metadata["delta.columnMapping.physicalName"] = field.physical
    if field.write_default is not None:
        metadata["CURRENT_DEFAULT"] = sql_literal(field.type, field.write_default)
    if field.widened:
        metadata["delta.typeChanges"] = [_change(w) for w in field.widened]
    return {
        "name": field.name,
        "type": _type(field.type, mapped, field.name),
        "nullable": not field.required,
        "metadata": metadata,
    }


def _change(widening: Widening) -> Plain:
    plain: Plain = {
        "fromType": _type(widening.before, False, ""),
        "toType": _type(widening.after, False, ""),
    }
    return {**plain, "fieldPath": widening.path} if widening.path else plain


def _type(kind: Type, mapped: bool, column: str) -> str | Plain:
    match kind:
        case Primitive(name) if name in _NAMES:
            return _NAMES[name]
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case StructType(fields):
            return _struct(fields, mapped)
        case ListType(_, element, required):
            inner = _type(element, mapped, column)
            return {"type": "array", "elementType": inner, "containsNull": not required}
        case MapType(_, key, _, value, required):
            return {
                "type": "map",
                "keyType": _type(key, mapped, column),
                "valueType": _type(value, mapped, column),
                "valueContainsNull": not required,
            }
        case _:
            raise UnsupportedFeature(
                f"Delta has no type for column {column!r} of type {kind}",
                hint="publish the table as Iceberg alone (formats=['iceberg'])",
                column=column,
            )
