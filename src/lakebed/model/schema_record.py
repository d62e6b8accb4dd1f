"""Schemas as plain records (dicts of JSON values): how the rows keep them."""

from typing import Any, cast

from lakebed.model.files import from_plain, to_plain
from lakebed.model.ids import FieldId, SchemaId
from lakebed.model.schema import Schema
from lakebed.model.schema_text import parse_type
from lakebed.model.types import Field, ListType, MapType, Scalar, StructType, Type, Widening

Record = dict[str, Any]


def schema_to_record(schema: Schema) -> Record:
    return {
        "id": schema.id,
        "fields": [_field_to_record(f) for f in schema.fields],
        "primary-key": list(schema.primary_key),
    }


def schema_from_record(record: Record) -> Schema:
    return Schema(
        SchemaId(record["id"]),
        tuple(_field_from_record(r) for r in record["fields"]),
        tuple(FieldId(i) for i in record["primary-key"]),
    )


def _field_to_record(field: Field) -> Record:
    record: Record = {"id": field.id, "name": field.name, "type": _type_to_record(field.type)}
    if field.required:
        record["required"] = True
    if field.doc is not None:
        record["doc"] = field.doc
    if field.physical != field.name:
        record["physical"] = field.physical
    if field.initial_default is not None:
        record["initial-default"] = to_plain(field.initial_default)
    if field.write_default is not None:
        record["write-default"] = to_plain(field.write_default)
    if field.widened:
        record["widened"] = [[w.path, str(w.before), str(w.after)] for w in field.widened]
    return record


def _field_from_record(record: Record) -> Field:
    kind = _type_from_record(record["type"])
    return Field(
        FieldId(record["id"]),
        record["name"],
        kind,
        record.get("required", False),
        record.get("doc"),
        str(record.get("physical") or record["name"]),
        from_plain(kind, record.get("initial-default")),
        from_plain(kind, record.get("write-default")),
        tuple(_widening(*each) for each in record.get("widened", ())),
    )


def _widening(path: str, before: str, after: str) -> Widening:
    return Widening(path, cast(Scalar, parse_type(before)), cast(Scalar, parse_type(after)))


def _type_to_record(kind: Type) -> str | Record:
    match kind:
        case StructType(fields):
            return {"struct": [_field_to_record(f) for f in fields]}
        case ListType(element_id, element, required):
            return {"list": _type_to_record(element), "id": element_id, "required": required}
        case MapType(key_id, key, value_id, value, required):
            return {
                "map": [_type_to_record(key), _type_to_record(value)],
                "ids": [key_id, value_id],
                "required": required,
            }
        case _:
            return str(kind)


def _type_from_record(record: str | Record) -> Type:
    if isinstance(record, str):
        return parse_type(record)
    if "struct" in record:
        return StructType(tuple(_field_from_record(r) for r in record["struct"]))
    if "list" in record:
        return ListType(
            FieldId(record["id"]), _type_from_record(record["list"]), record["required"]
        )
    key, value = cast(list[str | Record], record["map"])
    return MapType(
        FieldId(record["ids"][0]),
        _type_from_record(key),
        FieldId(record["ids"][1]),
        _type_from_record(value),
        record["required"],
    )
