"""Iceberg manifests and manifest lists, format versions 2 and 3: values, encoders and decoders.

Values stand as they are in the file: nothing is inherited from a list, no bound is decoded.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

import orjson

from lakebed.formats.iceberg import avro
from lakebed.formats.iceberg.avro import NULL, SOME, encode_bytes, encode_long, encode_string
from lakebed.formats.iceberg.manifest_schemas import (
    AvroSchema,
    PartitionField,
    manifest_list_schema,
    manifest_schema,
    partition_schema,
)
from lakebed.model.errors import DataCorrupt, InvalidInput
from lakebed.model.history import DATA

EXISTING, ADDED, DELETED = 0, 1, 2  # status of an entry
DATA_FILE, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2  # content of a file

# As Avro holds it: days, micros and nanos as int; uuid, fixed and decimal (big-endian) as bytes.
PartitionValue: TypeAlias = bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class ManifestDataFile:
    content: int
    file_path: str
    file_format: str
    partition: tuple[PartitionValue, ...]
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None
    key_metadata: bytes | None = None


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    status: int
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    file: ManifestDataFile


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True)
class ManifestListEntry:
    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: int
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    added_files_count: int
    existing_files_count: int
    deleted_files_count: int
    added_rows_count: int
    existing_rows_count: int
    deleted_rows_count: int
    partitions: tuple[PartitionSummary, ...] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None


# --- encoding -------------------------------------------------------------------------------------


def encode_manifest(
    entries: Iterable[ManifestEntry],
    *,
    schema_json: bytes,
    spec_json: bytes,
    spec_id: int,
    format_version: int,
    content: int,
    partition_type: Sequence[PartitionField],
    sync: bytes,
) -> bytes:
    """A manifest; `spec_json` is the list of the spec's fields, `sync` any 16 bytes."""
    fields = tuple(partition_type)
    writers = _partition_writers(fields)
    encoded = [_encode_entry(entry, writers, format_version) for entry in entries]
    block = b"".join(encoded)
    codec = avro.codec_for(len(block))
    kind = _ManifestKind(schema_json, spec_json, spec_id, format_version, content, fields)
    header = _manifest_header(kind, codec)
    return header + sync + avro.encode_block(len(encoded), block, codec, sync)


def encode_manifest_list(
    entries: Iterable[ManifestListEntry],
    *,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    format_version: int,
    first_row_id: int | None,
    sync: bytes,
) -> bytes:
    encoded = [_encode_list_entry(entry, format_version) for entry in entries]
    metadata = {
        "snapshot-id": b"%d" % snapshot_id,
        "parent-snapshot-id": b"null" if parent_snapshot_id is None else b"%d" % parent_snapshot_id,
        "sequence-number": b"%d" % sequence_number,
        "format-version": b"%d" % format_version,
    }
    if format_version >= 3:
        if first_row_id is None:
            raise InvalidInput("a v3 manifest list needs the first row id of its snapshot")
        metadata["first-row-id"] = b"%d" % first_row_id
    block = (len(encoded), b"".join(encoded))
    return avro.encode_container(_list_schema_json(format_version), metadata, [block], sync)


@lru_cache(maxsize=4096)
def _encode_list_entry(entry: ManifestListEntry, format_version: int) -> bytes:
    """The bytes of one entry: most manifests are in list after list."""
    out = [
        encode_string(entry.manifest_path),
        encode_long(entry.manifest_length),
        encode_long(entry.partition_spec_id),
        encode_long(entry.content),
        encode_long(entry.sequence_number),
        encode_long(entry.min_sequence_number),
        encode_long(entry.added_snapshot_id),
        encode_long(entry.added_files_count),
        encode_long(entry.existing_files_count),
        encode_long(entry.deleted_files_count),
        encode_long(entry.added_rows_count),
        encode_long(entry.existing_rows_count),
        encode_long(entry.deleted_rows_count),
        _maybe(_encode_summaries, entry.partitions),
        _maybe(encode_bytes, entry.key_metadata),
    ]
    if format_version >= 3:
        if entry.first_row_id is None and entry.content == DATA:
            raise InvalidInput(f"a v3 list needs a first row id for {entry.manifest_path}")
        out.append(_maybe(encode_long, entry.first_row_id))
    return b"".join(out)


_T = TypeVar("_T")
_PartitionWriters: TypeAlias = tuple[Callable[[PartitionValue], bytes], ...]


def _maybe(encode: Callable[[_T], bytes], value: _T | None) -> bytes:
    return NULL if value is None else SOME + encode(value)


def _encode_summaries(summaries: Sequence[PartitionSummary]) -> bytes:
    return avro.encode_array(
        [
            avro.encode_boolean(summary.contains_null)
            + _maybe(avro.encode_boolean, summary.contains_nan)
            + _maybe(encode_bytes, summary.lower_bound)
            + _maybe(encode_bytes, summary.upper_bound)
            for summary in summaries
        ]
    )


def _encode_entry(entry: ManifestEntry, writers: _PartitionWriters, version: int) -> bytes:
    file = entry.file
    if len(file.partition) != len(writers):
        raise InvalidInput(
            f"{file.file_path}: {len(file.partition)} partition values, not {len(writers)}"
        )
    out = [
        encode_long(entry.status),
        _maybe(encode_long, entry.snapshot_id),
        _maybe(encode_long, entry.sequence_number),
        _maybe(encode_long, entry.file_sequence_number),
        encode_long(file.content),
        encode_string(file.file_path),
        encode_string(file.file_format),
        *[write(value) for write, value in zip(writers, file.partition, strict=True)],
        encode_long(file.record_count),
        encode_long(file.file_size_in_bytes),
        _maybe(avro.encode_long_pairs, file.column_sizes),
        _maybe(avro.encode_long_pairs, file.value_counts),
        _maybe(avro.encode_long_pairs, file.null_value_counts),
        _maybe(avro.encode_long_pairs, file.nan_value_counts),
        _maybe(avro.encode_bytes_pairs, file.lower_bounds),
        _maybe(avro.encode_bytes_pairs, file.upper_bounds),
        _maybe(encode_bytes, file.key_metadata),
        _maybe(avro.encode_longs, file.split_offsets),
        _maybe(avro.encode_longs, file.equality_ids),
        _maybe(encode_long, file.sort_order_id),
    ]
    offset, size = file.content_offset, file.content_size_in_bytes
    if version >= 3:
        out.append(_maybe(encode_long, file.first_row_id))
        out.append(_maybe(encode_string, file.referenced_data_file))
        out.append(_maybe(encode_long, offset))
        out.append(_maybe(encode_long, size))
    elif file.first_row_id is not None or offset is not None or size is not None:
        # Left out, a deletion vector would read as a whole file of deletes.
        raise InvalidInput(
            f"{file.file_path} has row ids or a deletion vector, which v2 cannot hold"
        )
    else:
        out.append(_maybe(encode_string, file.referenced_data_file))
    return b"".join(out)


class _ManifestKind(NamedTuple):
    schema_json: bytes
    spec_json: bytes
    spec_id: int
    format_version: int
    content: int
    partition_type: tuple[PartitionField, ...]


@lru_cache(maxsize=256)
def _manifest_header(kind: _ManifestKind, codec: str) -> bytes:
    metadata = {
        "schema": kind.schema_json,
        "partition-spec": kind.spec_json,
        "partition-spec-id": b"%d" % kind.spec_id,
        "format-version": b"%d" % kind.format_version,
        "content": b"data" if kind.content == DATA else b"deletes",
    }
    schema = manifest_schema(kind.partition_type, kind.format_version)
    return avro.encode_header(_compact(schema), metadata, codec)


@lru_cache(maxsize=2)
def _list_schema_json(format_version: int) -> bytes:
    return _compact(manifest_list_schema(format_version))


def _compact(schema: AvroSchema) -> bytes:
    plain = orjson.dumps(schema)
    # Letters beyond ASCII are written as escapes, as ever: the same bytes for the same schema.
    return plain if plain.isascii() else json.dumps(schema, separators=(",", ":")).encode()


@lru_cache(maxsize=256)
def _partition_writers(partition_type: tuple[PartitionField, ...]) -> _PartitionWriters:
    return tuple(_partition_writer(name, kind) for name, _, kind in partition_type)


def _partition_writer(name: str, kind: str) -> Callable[[PartitionValue], bytes]:
    schema = partition_schema(kind)
    physical = schema["type"] if isinstance(schema, dict) else schema
    size = schema.get("size") if isinstance(schema, dict) else None
    write, accepted = _PHYSICAL[str(physical)]

    def encode(value: PartitionValue) -> bytes:
        if value is None:
            return b"" if physical == "null" else NULL
        if type(value) not in accepted or (size is not None and len(value) != size):  # type: ignore[arg-type]
            raise InvalidInput(f"{value!r} is no value of partition field {name!r} of type {kind}")
        return SOME + write(value)

    return encode


_PHYSICAL: dict[str, tuple[Callable[..., bytes], tuple[type, ...]]] = {
    "null": (bytes, ()),
    "boolean": (avro.encode_boolean, (bool,)),
    "int": (encode_long, (int,)),
    "long": (encode_long, (int,)),
    "float": (avro.encode_float, (float, int)),
    "double": (avro.encode_double, (float, int)),
    "string": (encode_string, (str,)),
    "bytes": (encode_bytes, (bytes,)),
    "fixed": (bytes, (bytes,)),
}


# --- decoding -------------------------------------------------------------------------------------

_Record: TypeAlias = dict[str, object]


def decode_manifest(data: bytes) -> tuple[dict[str, bytes], list[ManifestEntry]]:
    """The file's metadata and its entries, also of a v1 manifest; raises DataCorrupt."""
    metadata, records = avro.decode_container(data)
    renames, file_renames = _manifest_renames(metadata["avro.schema"])
    return metadata, [_entry(_renamed(record, renames), file_renames) for record in records]


def decode_manifest_list(data: bytes) -> tuple[dict[str, bytes], list[ManifestListEntry]]:
    """The file's metadata and its entries, also of a v1 list; raises DataCorrupt."""
    metadata, records = avro.decode_container(data)
    renames = _list_renames(metadata["avro.schema"])
    return metadata, [_list_entry(_renamed(record, renames)) for record in records]


def _entry(record: _Record, file_renames: Mapping[str, str]) -> ManifestEntry:
    file: _Record = _want(record, "data_file", dict)
    return ManifestEntry(
        status=_want(record, "status", int),
        snapshot_id=_may(record, "snapshot_id", int),
        sequence_number=_may(record, "sequence_number", int),
        file_sequence_number=_may(record, "file_sequence_number", int),
        file=_data_file(_renamed(file, file_renames)),
    )


def _data_file(record: _Record) -> ManifestDataFile:
    return ManifestDataFile(
        content=_may(record, "content", int) or DATA_FILE,
        file_path=_want(record, "file_path", str),
        file_format=_want(record, "file_format", str),
        partition=_partition(record),
        record_count=_want(record, "record_count", int),
        file_size_in_bytes=_want(record, "file_size_in_bytes", int),
        column_sizes=_pairs(record, "column_sizes", int),
        value_counts=_pairs(record, "value_counts", int),
        null_value_counts=_pairs(record, "null_value_counts", int),
        nan_value_counts=_pairs(record, "nan_value_counts", int),
        lower_bounds=_pairs(record, "lower_bounds", bytes),
        upper_bounds=_pairs(record, "upper_bounds", bytes),
        split_offsets=_items(record, "split_offsets", int),
        equality_ids=_items(record, "equality_ids", int),
        sort_order_id=_may(record, "sort_order_id", int),
        first_row_id=_may(record, "first_row_id", int),
        referenced_data_file=_may(record, "referenced_data_file", str),
        content_offset=_may(record, "content_offset", int),
        content_size_in_bytes=_may(record, "content_size_in_bytes", int),
        key_metadata=_may(record, "key_metadata", bytes),
    )


def _list_entry(record: _Record) -> ManifestListEntry:
    summaries = _items(record, "partitions", dict)
    return ManifestListEntry(
        manifest_path=_want(record, "manifest_path", str),
        manifest_length=_want(record, "manifest_length", int),
        partition_spec_id=_want(record, "partition_spec_id", int),
        content=_may(record, "content", int) or DATA,
        sequence_number=_may(record, "sequence_number", int) or 0,
        min_sequence_number=_may(record, "min_sequence_number", int) or 0,
        added_snapshot_id=_want(record, "added_snapshot_id", int),
        added_files_count=_want(record, "added_files_count", int),
        existing_files_count=_want(record, "existing_files_count", int),
        deleted_files_count=_want(record, "deleted_files_count", int),
        added_rows_count=_want(record, "added_rows_count", int),
        existing_rows_count=_want(record, "existing_rows_count", int),
        deleted_rows_count=_want(record, "deleted_rows_count", int),
        partitions=None if summaries is None else tuple(map(_summary, summaries)),
        key_metadata=_may(record, "key_metadata", bytes),
        first_row_id=_may(record, "first_row_id", int),
    )


def _summary(record: _Record) -> PartitionSummary:
    return PartitionSummary(
        contains_null=_want(record, "contains_null", bool),
        contains_nan=_may(record, "contains_nan", bool),
        lower_bound=_may(record, "lower_bound", bytes),
        upper_bound=_may(record, "upper_bound", bytes),
    )


def _partition(record: _Record) -> tuple[PartitionValue, ...]:
    values: list[PartitionValue] = []
    for value in _want(record, "partition", dict).values():
        if not isinstance(value, bool | int | float | str | bytes | None):
            raise DataCorrupt(f"a manifest has the partition value {value!r}")
        values.append(value)
    return tuple(values)


def _want(record: _Record, name: str, kind: type[_T]) -> _T:
    value = record.get(name)
    if not isinstance(value, kind):
        raise DataCorrupt(f"a manifest or manifest list has {value!r} as {name}")
    return value


def _may(record: _Record, name: str, kind: type[_T]) -> _T | None:
    value = record.get(name)
    if value is not None and not isinstance(value, kind):
        raise DataCorrupt(f"a manifest or manifest list has {value!r} as {name}")
    return value


def _items(record: _Record, name: str, kind: type[_T]) -> tuple[_T, ...] | None:
    items = _may(record, name, list)
    if items is None:
        return None
    if not all(isinstance(item, kind) for item in items):
        raise DataCorrupt(f"a manifest or manifest list has a wrong item in {name}")
    return tuple(items)


def _pairs(record: _Record, name: str, kind: type[_T]) -> dict[int, _T] | None:
    pairs = record.get(name)
    if pairs is None:
        return None
    if isinstance(pairs, list):  # a writer that left out the logical type
        pairs = {pair.get("key"): pair.get("value") for pair in _items(record, name, dict) or ()}
    if not isinstance(pairs, dict):
        raise DataCorrupt(f"a manifest has {pairs!r} as {name}")
    for key, value in pairs.items():
        if type(key) is not int or type(value) is not kind:
            raise DataCorrupt(f"a manifest has the pair {key!r}, {value!r} in {name}")
    return pairs


# --- names by field id: earlier writers used others, such as added_data_files_count ---------------


@lru_cache(maxsize=64)
def _list_renames(schema_json: bytes) -> dict[str, str]:
    return _renames(json.loads(schema_json), manifest_list_schema(3))


@lru_cache(maxsize=64)
def _manifest_renames(schema_json: bytes) -> tuple[dict[str, str], dict[str, str]]:
    theirs, ours = json.loads(schema_json), manifest_schema((), 3)
    renames = _renames(theirs, ours)
    file_name = next((name for name, new in renames.items() if new == "data_file"), "data_file")
    return renames, _renames(_field_type(theirs, file_name), _field_type(ours, "data_file"))


def _renames(theirs: object, ours: object) -> dict[str, str]:
    known = {_field_id(field): str(field["name"]) for field in _fields(ours)}
    named = [(str(field["name"]), known.get(_field_id(field))) for field in _fields(theirs)]
    return {old: new for old, new in named if new is not None and new != old}


def _fields(schema: object) -> list[AvroSchema]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [field for field in fields or () if isinstance(field, dict)]


def _field_id(field: AvroSchema) -> int:
    found = str(field.get("field-id"))  # some writers quote it
    return int(found) if found.isdecimal() and len(found) <= 10 else -1


def _field_type(schema: object, name: str) -> object:
    return next((field["type"] for field in _fields(schema) if field["name"] == name), None)


def _renamed(record: _Record, renames: Mapping[str, str]) -> _Record:
    return {renames.get(name, name): value for name, value in record.items()} if renames else record
