"""Schemas, partition specs and sort orders to and from Iceberg's JSON; pure.

Types that Iceberg lacks become the next wider one: byte and short are int.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import orjson

from lakebed.formats.iceberg.manifest_schemas import PartitionField
from lakebed.model.errors import DataCorrupt
from lakebed.model.partitioning import PartitionSpec, SortOrder
from lakebed.model.schema import Schema
from lakebed.model.single_values import to_json
from lakebed.model.transforms import Transform, result_type
from lakebed.model.types import (
    PRIMITIVES,
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    Scalar,
    StructType,
    Type,
    children,
    is_scalar,
)

Json: TypeAlias = dict[str, object]

_NAMES = {
    "byte": "int",
    "short": "int",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
_NOT_IDENTIFIERS = (Primitive("float"), Primitive("double"))


def scalar_name(kind: Scalar) -> str:
    match kind:
        case DecimalType(precision, scale):
            return f"decimal({precision}, {scale})"
        case FixedType(length):
            return f"fixed[{length}]"
        case Primitive(name):
            return _NAMES.get(name, name)


def type_json(kind: Type, format_version: int) -> str | Json:
    match kind:
        case StructType(fields):
            members = [_field_json(f, format_version) for f in fields]
            return {"type": "struct", "fields": members}
        case ListType(element_id, element, required):
            return {
                "type": "list",
                "element-id": element_id,
                "element": type_json(element, format_version),
                "element-required": required,
            }
        case MapType(key_id, key, value_id, value, required):
            return {
                "type": "map",
                "key-id": key_id,
                "key": type_json(key, format_version),
                "value-id": value_id,
                "value": type_json(value, format_version),
                "value-required": required,
            }
        case Primitive() | DecimalType() | FixedType():
            return scalar_name(kind)


def schema_json(schema: Schema, format_version: int) -> Json:
    """Defaults are there from version 3 on."""
    plain: Json = {"type": "struct", "schema-id": schema.id}
    key = _identifiers(schema)
    if key:
        plain["identifier-field-ids"] = key
    plain["fields"] = [_field_json(f, format_version) for f in schema.fields]
    return plain


def _field_json(field: Field, format_version: int) -> Json:
    plain: Json = {
        "id": field.id,
        "name": field.name,
        "required": field.required,
        "type": type_json(field.type, format_version),
    }
    if field.doc is not None:
        plain["doc"] = field.doc
    if format_version >= 3 and isinstance(field.type, Primitive | DecimalType | FixedType):
        if field.initial_default is not None:
            plain["initial-default"] = to_json(field.type, field.initial_default)
        if field.write_default is not None:
            plain["write-default"] = to_json(field.type, field.write_default)
    return plain


def _identifiers(schema: Schema) -> list[int]:
    """The primary key, if Iceberg allows all of it: required, scalar, comparing exactly."""
    fields = {f.id: f for f in schema.fields}
    key = [fields.get(i) for i in schema.primary_key]
    allowed = all(
        f is not None and f.required and is_scalar(f.type) and f.type not in _NOT_IDENTIFIERS
        for f in key
    )
    return sorted(schema.primary_key) if allowed else []


def spec_fields_json(spec: PartitionSpec) -> list[Json]:
    return [
        {
            "source-id": f.source_id,
            "field-id": f.id,
            "name": f.name,
            "transform": str(f.transform),
        }
        for f in spec.fields
    ]


def spec_json(spec: PartitionSpec) -> Json:
    return {"spec-id": spec.id, "fields": spec_fields_json(spec)}


def sort_order_json(order: SortOrder) -> Json:
    fields = [
        {
            "transform": str(f.transform),
            "source-id": f.source_id,
            "direction": "desc" if f.descending else "asc",
            "null-order": "nulls-first" if f.nulls_first else "nulls-last",
        }
        for f in order.fields
    ]
    return {"order-id": order.id, "fields": fields}


def partition_scalars(spec: PartitionSpec, leaves: Mapping[int, Scalar]) -> tuple[Scalar, ...]:
    """The type of each partition value; `leaves` may know columns that were dropped since."""
    kinds = [result_type(f.transform, leaves[f.source_id]) for f in spec.fields]
    return tuple(k for k in kinds if isinstance(k, Primitive | DecimalType | FixedType))


def partition_type(spec: PartitionSpec, kinds: Iterable[Scalar]) -> tuple[PartitionField, ...]:
    fields = zip(spec.fields, kinds, strict=True)
    return tuple((f.name, int(f.id), scalar_name(kind)) for f, kind in fields)


@lru_cache(maxsize=256)
def name_mapping_json(schema: Schema) -> str:
    """For files without field ids: the physical name of every field, which it keeps for ever."""
    return orjson.dumps([_mapped(f) for f in schema.fields]).decode()


def _mapped(field: Field) -> Json:
    plain: Json = {"field-id": field.id, "names": [field.physical or field.name]}
    inner = children(field.type)
    if inner:
        plain["fields"] = [_mapped(f) for f in inner]
    return plain


# --- and back -------------------------------------------------------------------------------------

_MODEL_NAMES = {
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    **{name: name for name in PRIMITIVES if name not in _NAMES},
}
_SIZED = re.compile(r"fixed\[(\d+)\]|decimal\((\d+), ?(\d+)\)")
# Others (void, and those to come) say nothing about the type of their values.
_TRANSFORMS = ("identity", "year", "month", "day", "hour", "bucket", "truncate")
_TRANSFORM = re.compile(r"([a-z]+)(?:\[(\d+)\])?")


def leaf_types(schema: Mapping[str, object]) -> dict[int, Scalar]:
    """Field ids and types of the columns of a schema in JSON; types unknown to us are left out."""
    try:
        return dict(_leaves(schema))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DataCorrupt(f"not an Iceberg schema: {error!r}") from error


def _leaves(kind: Any) -> Iterator[tuple[int, Scalar]]:
    match kind["type"]:
        case "struct":
            parts = [(f["id"], f["type"]) for f in kind["fields"]]
        case "list":
            parts = [(kind["element-id"], kind["element"])]
        case "map":
            parts = [(kind["key-id"], kind["key"]), (kind["value-id"], kind["value"])]
        case other:
            raise ValueError(other)
    for field_id, inner in parts:
        if not isinstance(inner, str):
            yield from _leaves(inner)
        elif (scalar := _parse_scalar(inner)) is not None:
            yield int(field_id), scalar


def _parse_scalar(text: str) -> Scalar | None:
    if text in _MODEL_NAMES:
        return Primitive(_MODEL_NAMES[text])
    found = _SIZED.fullmatch(text)
    if found is None:
        return None
    length, precision, scale = found.groups()
    return FixedType(int(length)) if length else DecimalType(int(precision), int(scale))


def partition_kinds(spec: Any, leaves: Mapping[int, Scalar]) -> tuple[Scalar | None, ...]:
    """The type of each value of a spec in JSON; None for a transform or column unknown to us."""
    try:
        return tuple(_partition_kind(f["transform"], leaves.get(f["source-id"])) for f in spec)
    except (LookupError, TypeError) as error:
        raise DataCorrupt(f"not an Iceberg partition spec: {error!r}") from error


def _partition_kind(transform: str, source: Scalar | None) -> Scalar | None:
    found = _TRANSFORM.fullmatch(transform)
    if source is None or found is None or found.group(1) not in _TRANSFORMS:
        return None
    kind = result_type(Transform(found.group(1), int(found.group(2) or 0)), source)
    return kind if isinstance(kind, Primitive | DecimalType | FixedType) else None
