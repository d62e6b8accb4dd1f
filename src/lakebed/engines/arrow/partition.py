"""Splitting batches by partition, and the folder a partition's files go to."""

import hashlib
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import cast
from urllib.parse import quote
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.transform import source_column, transformed
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.types import Primitive, Stored, Type
from lakebed.storage.base import is_safe_name

Values = tuple[Stored | None, ...]
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_FOLDER = 120


def split(
    batch: pa.RecordBatch, spec: PartitionSpec, schema: Schema
) -> list[tuple[Values, pa.RecordBatch]]:
    """The batch in one piece per partition; a piece is a copy that does not hold on to the rest."""
    if not spec.fields or not batch.num_rows:
        return [((), batch)] if batch.num_rows else []
    keys = [
        transformed(
            source_column(batch, schema, field.source_id),
            schema.field(field.source_id).type,
            field.transform,
        )
        for field in spec.fields
    ]
    groups = _groups(keys)
    if len(groups) == 1:
        return [(_values(keys, 0), batch)]
    return [(_values(keys, rows[0].as_py()), batch.take(rows)) for rows in groups]


def partition_folder(spec: PartitionSpec, values: Values, schema: Schema) -> str:
    """`name=value` folders, safe in every file system and URL; "" when unpartitioned."""
    return "/".join(
        _folder(field.name, _human(value, field.transform.name, schema.field(field.source_id).type))
        for field, value in zip(spec.fields, values, strict=True)
    )


def _groups(keys: list[pa.Array]) -> list[pa.Array]:
    """The row numbers of each distinct combination of keys, in order of appearance."""
    codes = _codes(keys[0])
    for key in keys[1:]:
        more = _codes(key)
        many = pa.scalar(pc.max(more).as_py() + 1)
        # Coded again each time, so that the product never overflows.
        codes = _codes(pc.add(pc.multiply(codes, many), more))
    order = pc.sort_indices(codes)
    found, start = [], 0
    for count in pc.value_counts(codes).field("counts").to_pylist():
        found.append(order.slice(start, count))
        start += count
    return found


def _codes(key: pa.Array) -> pa.Array:
    return key.dictionary_encode(null_encoding="encode").indices.cast(pa.int64())


def _values(keys: list[pa.Array], row: int) -> Values:
    return tuple(cast(Stored | None, key[row].as_py()) for key in keys)


def _folder(name: str, text: str | None) -> str:
    whole = f"{_encoded(name)}={NULL_FOLDER if text is None else _encoded(text)}"
    plain = "%" not in whole and is_safe_name(whole) and text != NULL_FOLDER
    if plain and len(whole) <= _LONGEST_FOLDER:
        return whole
    # Too long, or readers would take it for a path or for NULL, or would have to decode it: Polars
    # then misses the deletion vector of a file. A plain stem and a digest, without a "=", so that
    # nobody takes the value from the folder's name.
    stem = re.sub(r"%[0-9A-F]{2}|[.=]", "_", whole)[: _LONGEST_FOLDER - 17]
    return f"{stem}-{hashlib.sha256(whole.encode()).hexdigest()[:16]}"


def _encoded(text: str) -> str:
    return quote(text, safe="").replace("~", "%7E")


def _human(value: Stored | None, transform: str, kind: Type) -> str | None:
    if value is None:
        return None
    match transform:
        case "year":
            return f"{1970 + int(value):04d}"
        case "month":
            years, month = divmod(int(value), 12)
            return f"{1970 + years:04d}-{month + 1:02d}"
        case "day":
            return _moment(int(value) * 24, "%m-%d")
        case "hour":
            return _moment(int(value), "%m-%d-%H")
        case "bucket":
            return str(value)
        case _:
            return _text(value, kind)


def _moment(hours: int, rest: str) -> str:
    moment = _EPOCH + timedelta(hours=hours)
    return f"{moment.year:04d}-{moment.strftime(rest)}"


def _text(value: Stored, kind: Type) -> str:
    match kind:
        case Primitive("boolean"):
            return str(value).lower()
        case Primitive("date"):
            return _moment(int(value) * 24, "%m-%d")
        case Primitive("time"):
            return (_EPOCH + timedelta(microseconds=int(value))).time().isoformat()
        case Primitive("timestamp" | "timestamp_ntz"):
            return _instant(int(value), "auto")
        case Primitive("timestamp_ns" | "timestamptz_ns"):
            return f"{_instant(int(value) // 1000, 'microseconds')}{int(value) % 1000:03d}"
        case Primitive("uuid") if isinstance(value, bytes):
            return str(UUID(bytes=value))
    if isinstance(value, bytes):
        return value.hex()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _instant(micros: int, precision: str) -> str:
    moment = _EPOCH + timedelta(microseconds=micros)
    return moment.replace(tzinfo=None).isoformat(timespec=precision)
