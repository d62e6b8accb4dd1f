"""Column statistics from a Parquet footer, in stored form. Nothing goes through Python's dates.

Leaves below a list or map get counts only: what a bound of theirs says about a row is not defined.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from lakebed.model.files import BOUND_LENGTH, ColumnStats
from lakebed.model.ids import FieldId
from lakebed.model.schema import Schema
from lakebed.model.types import (
    INTEGERS,
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    Scalar,
    Stored,
    StructType,
    children,
)

_PER_MICRO = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}
_LAST_CODE_POINT = 0x10FFFF


def file_stats(
    metadata: pq.FileMetaData,
    schema: Schema,
    nan_counts: Mapping[FieldId, int],
    *,
    null_counts: Mapping[FieldId, int] | None = None,
) -> dict[FieldId, ColumnStats]:
    """Of every leaf of the schema that the file holds; the counts were taken while writing.

    `null_counts` speak for columns without statistics in the footer.
    """
    found = _stats(metadata, range(metadata.num_row_groups), schema, nan_counts)
    bounded = {leaf.id for _, leaf in _leaves(schema.fields, "", True) if leaf.bounded}
    return {
        field_id: replace(s, null_count=(null_counts or {}).get(field_id))
        if s.null_count is None and field_id in bounded
        else s
        for field_id, s in found.items()
    }


def leaf_paths(schema: Schema) -> dict[str, FieldId]:
    """Every leaf by its path in a Parquet file."""
    return {path: leaf.id for path, leaf in _leaves(schema.fields, "", True)}


def row_group_stats(
    metadata: pq.FileMetaData, index: int, schema: Schema
) -> dict[FieldId, ColumnStats]:
    """The same for one row group, to leave it out when reading; how many NaNs is not known."""
    return _stats(metadata, (index,), schema, {})


def round_up(text: str) -> str | None:
    """The least text, no longer, that is greater than all that begin with this one; or None."""
    for end in range(len(text), 0, -1):
        point = ord(text[end - 1])
        if point < _LAST_CODE_POINT:
            # Surrogates are no characters of their own.
            return text[: end - 1] + chr(0xE000 if point == 0xD7FF else point + 1)
    return None


@dataclass(frozen=True, slots=True)
class _Leaf:
    id: FieldId
    type: Scalar
    bounded: bool


def _leaves(fields: Iterable[Field], path: str, bounded: bool) -> Iterator[tuple[str, _Leaf]]:
    for field in fields:
        here = path + field.physical
        match field.type:
            case StructType(members):
                yield from _leaves(members, f"{here}.", bounded)
            case ListType():
                yield from _leaves(children(field.type), f"{here}.list.", False)
            case MapType():
                yield from _leaves(children(field.type), f"{here}.key_value.", False)
            case Primitive() | DecimalType() | FixedType():
                yield here, _Leaf(field.id, field.type, bounded)


def _stats(
    metadata: pq.FileMetaData,
    groups: Iterable[int],
    schema: Schema,
    nan_counts: Mapping[FieldId, int],
) -> dict[FieldId, ColumnStats]:
    leaves = dict(_leaves(schema.fields, "", True))
    rows = [metadata.row_group(index) for index in groups]
    found = {}
    for number in range(metadata.num_columns):
        column = metadata.schema.column(number)
        leaf = leaves.get(column.path)
        if leaf is not None:
            chunks = [group.column(number) for group in rows]
            found[leaf.id] = _column(chunks, leaf, column, nan_counts.get(leaf.id))
    return found


def _column(
    chunks: list[pq.ColumnChunkMetaData],
    leaf: _Leaf,
    column: pq.ColumnSchema,
    nan_count: int | None,
) -> ColumnStats:
    stats = [chunk.statistics for chunk in chunks]
    nulls = [s.null_count if s is not None and s.has_null_count else None for s in stats]
    known = [count for count in nulls if count is not None]
    # A row group without values has no bounds, and needs none.
    filled = [
        s for s, chunk, count in zip(stats, chunks, nulls, strict=True) if count != chunk.num_values
    ]
    lower, upper = _bounds(filled, leaf.type, column) if leaf.bounded else (None, None)
    return ColumnStats(
        value_count=sum(chunk.num_values for chunk in chunks),
        null_count=sum(known) if len(known) == len(nulls) else None,
        nan_count=nan_count,
        size_bytes=sum(chunk.total_compressed_size for chunk in chunks),
        lower=lower,
        upper=upper,
    )


def _bounds(
    filled: list[Any], kind: Scalar, column: pq.ColumnSchema
) -> tuple[Stored | None, Stored | None]:
    if any(stats is None or not stats.has_min_max for stats in filled):
        return None, None
    lows: list[Any] = [_stored(s.min_raw, kind, column, up=False) for s in filled]
    highs: list[Any] = [_stored(s.max_raw, kind, column, up=True) for s in filled]
    lower = None if not lows or None in lows else _cut_lower(min(lows))
    upper = None if not highs or None in highs else _cut_upper(max(highs))
    return lower, upper


def _stored(raw: Any, kind: Scalar, column: pq.ColumnSchema, *, up: bool) -> Stored | None:
    """A bound as the file holds it, in stored form; None if it cannot be one."""
    match kind:
        case Primitive("boolean"):
            return raw if isinstance(raw, bool) else None
        case Primitive("float" | "double"):
            return _float(raw, up=up)
        case Primitive("string"):
            return _text(raw, up=up)
        case Primitive("binary" | "uuid") | FixedType():
            return raw if isinstance(raw, bytes) else None
        case DecimalType():
            return _decimal(raw, column.scale)
        case Primitive("date"):
            return raw if isinstance(raw, int) else None
        case Primitive(name) if name in INTEGERS:
            return None if _logical(column).get("isSigned") is False else _whole(raw)
        case Primitive(name):
            return _time(raw, _logical(column), nanos=name.endswith("_ns"), up=up)


def _whole(raw: Any) -> int | None:
    return raw if isinstance(raw, int) else None


def _logical(column: pq.ColumnSchema) -> dict[str, Any]:
    logical = column.logical_type
    return {} if logical.type == "NONE" else dict(json.loads(logical.to_json()))


def _float(raw: Any, *, up: bool) -> float | None:
    if not isinstance(raw, int | float) or math.isnan(raw):
        return None
    # Zero of either sign may stand for both.
    return float(raw) if raw else (0.0 if up else -0.0)


def _text(raw: Any, *, up: bool) -> str | None:
    if not isinstance(raw, bytes):
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        # Somebody cut the bound inside a character: what is whole still bounds from below.
        return None if up else raw.decode(errors="ignore")


def _decimal(raw: Any, scale: int) -> Decimal | None:
    if isinstance(raw, bytes):
        raw = int.from_bytes(raw, "big", signed=True)
    # From text: arithmetic would round to the digits of the current context.
    return Decimal(f"{raw}E-{scale}") if isinstance(raw, int) else None


def _time(raw: Any, logical: dict[str, Any], *, nanos: bool, up: bool) -> int | None:
    unit = _PER_MICRO.get(str(logical.get("timeUnit")))
    if unit is None or not isinstance(raw, int):
        return None
    times, by = (unit[0] * 1000, unit[1]) if nanos else unit
    number = raw * times
    return -(-number // by) if up else number // by


def _cut_lower(value: Stored) -> Stored:
    return value[:BOUND_LENGTH] if isinstance(value, str | bytes) else value


def _cut_upper(value: Stored) -> Stored | None:
    if not isinstance(value, str | bytes) or len(value) <= BOUND_LENGTH:
        return value
    if isinstance(value, str):
        return round_up(value[:BOUND_LENGTH])
    head = value[:BOUND_LENGTH].rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None
