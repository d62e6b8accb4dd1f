"""The Avro schemas of Iceberg manifests and manifest lists, versions 2 and 3; pure, no bytes."""

import re
from collections.abc import Sequence
from typing import TypeAlias

from lakebed.model.errors import InvalidInput, UnsupportedFeature

AvroSchema: TypeAlias = dict[str, object]
# Name, field id, and the type as Iceberg writes it: "timestamptz", "fixed[8]", "decimal(9, 2)".
PartitionField: TypeAlias = tuple[str, int, str]


def manifest_schema(partition_type: Sequence[PartitionField], format_version: int) -> AvroSchema:
    fields = [
        _required(0, "status", "int"),
        _optional(1, "snapshot_id", "long"),
        _optional(3, "sequence_number", "long"),
        _optional(4, "file_sequence_number", "long"),
        _required(2, "data_file", _record("r2", _file_fields(partition_type, format_version))),
    ]
    return _record("manifest_entry", fields)


def manifest_list_schema(format_version: int) -> AvroSchema:
    _check_version(format_version)
    summary = [
        _required(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ]
    fields = [
        _required(500, "manifest_path", "string"),
        _required(501, "manifest_length", "long"),
        _required(502, "partition_spec_id", "int"),
        _required(517, "content", "int"),
        _required(515, "sequence_number", "long"),
        _required(516, "min_sequence_number", "long"),
        _required(503, "added_snapshot_id", "long"),
        _required(504, "added_files_count", "int"),
        _required(505, "existing_files_count", "int"),
        _required(506, "deleted_files_count", "int"),
        _required(512, "added_rows_count", "long"),
        _required(513, "existing_rows_count", "long"),
        _required(514, "deleted_rows_count", "long"),
        _optional(507, "partitions", _array(508, _record("r508", summary))),
        _optional(519, "key_metadata", "bytes"),
    ]
    if format_version >= 3:
        fields.append(_optional(520, "first_row_id", "long"))
    return _record("manifest_file", fields)


def _file_fields(partition_type: Sequence[PartitionField], format_version: int) -> list[AvroSchema]:
    _check_version(format_version)
    fields = [
        _required(134, "content", "int"),
        _required(100, "file_path", "string"),
        _required(101, "file_format", "string"),
        _required(102, "partition", _record("r102", _partition_fields(partition_type))),
        _required(103, "record_count", "long"),
        _required(104, "file_size_in_bytes", "long"),
        _optional(108, "column_sizes", _pairs(117, 118, "long")),
        _optional(109, "value_counts", _pairs(119, 120, "long")),
        _optional(110, "null_value_counts", _pairs(121, 122, "long")),
        _optional(137, "nan_value_counts", _pairs(138, 139, "long")),
        _optional(125, "lower_bounds", _pairs(126, 127, "bytes")),
        _optional(128, "upper_bounds", _pairs(129, 130, "bytes")),
        _optional(131, "key_metadata", "bytes"),
        _optional(132, "split_offsets", _array(133, "long")),
        _optional(135, "equality_ids", _array(136, "int")),
        _optional(140, "sort_order_id", "int"),
        _optional(143, "referenced_data_file", "string"),
    ]
    if format_version >= 3:
        fields.insert(-1, _optional(142, "first_row_id", "long"))
        fields.append(_optional(144, "content_offset", "long"))
        fields.append(_optional(145, "content_size_in_bytes", "long"))
    return fields


def _check_version(format_version: int) -> None:
    if format_version not in (2, 3):
        raise UnsupportedFeature(f"Iceberg v{format_version} manifests cannot be written")


def _record(name: str, fields: list[AvroSchema]) -> AvroSchema:
    return {"type": "record", "name": name, "fields": fields}


def _required(field_id: int, name: str, kind: object) -> AvroSchema:
    return {"name": name, "type": kind, "field-id": field_id}


def _optional(field_id: int, name: str, kind: object) -> AvroSchema:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _array(element_id: int, items: object) -> AvroSchema:
    return {"type": "array", "items": items, "element-id": element_id}


def _pairs(key_id: int, value_id: int, value: str) -> AvroSchema:
    fields = [_required(key_id, "key", "int"), _required(value_id, "value", value)]
    return {
        "type": "array",
        "items": _record(f"k{key_id}_v{value_id}", fields),
        "logicalType": "map",
    }


_NAME_CHARACTER = re.compile("[A-Za-z0-9_]")
_WITH_ARGUMENTS = re.compile(r"fixed\[(\d+)\]|decimal\((\d+), ?(\d+)\)")


def avro_name(name: str) -> str:
    """A field name as Avro allows it, in Iceberg's way: 1a becomes _1a, and a-b becomes a_x2Db.

    Letters outside ASCII are replaced too: Iceberg's Java keeps them, other readers refuse them.
    """
    if not name:
        raise InvalidInput("a partition field needs a name")
    safe = "".join(ch if _NAME_CHARACTER.match(ch) else f"_x{ord(ch):X}" for ch in name)
    return "_" + safe if safe[0].isdigit() else safe


def _partition_fields(partition_type: Sequence[PartitionField]) -> list[AvroSchema]:
    fields: list[AvroSchema] = []
    field_names: set[str] = set()
    type_names: set[str] = set()
    for name, field_id, kind in partition_type:
        schema = partition_schema(kind)
        if isinstance(schema, dict) and "name" in schema:
            # Avro forbids to define a name twice; names mean nothing here, ids do.
            schema["name"] = _unused(str(schema["name"]), field_id, type_names)
        safe = _unused(avro_name(name), field_id, field_names)
        field = (
            _required(field_id, safe, "null")
            if schema == "null"
            else _optional(field_id, safe, schema)
        )
        if safe != name:
            field["iceberg-field-name"] = name
        fields.append(field)
    return fields


def _unused(name: str, field_id: int, names: set[str]) -> str:
    if name in names:
        name = f"{name}_{field_id}"
    names.add(name)
    return name


_PLAIN_TYPES: dict[str, str] = {
    "unknown": "null",
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
}
_LOGICAL_TYPES: dict[str, AvroSchema] = {
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
    "uuid": {"type": "fixed", "size": 16, "logicalType": "uuid", "name": "uuid_fixed"},
}


def partition_schema(kind: str) -> str | AvroSchema:
    if kind in _PLAIN_TYPES:
        return _PLAIN_TYPES[kind]
    if kind in _LOGICAL_TYPES:
        return dict(_LOGICAL_TYPES[kind])
    found = _WITH_ARGUMENTS.fullmatch(kind)
    if found is None:
        raise UnsupportedFeature(f"{kind!r} cannot be the type of a partition field")
    length, precision, scale = found.groups()
    if length is not None:
        return {"type": "fixed", "size": int(length), "name": f"fixed_{length}"}
    return {
        "type": "fixed",
        "size": decimal_size_bytes(int(precision)),
        "logicalType": "decimal",
        "precision": int(precision),
        "scale": int(scale),
        "name": f"decimal_{precision}_{scale}",
    }


def decimal_size_bytes(precision: int) -> int:
    """How many bytes hold every signed number of that many digits."""
    largest: int = 10**precision - 1
    return largest.bit_length() // 8 + 1
