"""Results in Arrow's types without loss: what Arrow has no twin for is cast before it leaves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.engines.arrow.nested import as_list, list_like, map_like, struct_like
from lakebed.model.quoting import quoted

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

# DuckDB's own way to Arrow is text for a uuid, and forgets the zone or the sign of others.
_CASTS = {
    "uuid": "BLOB",
    "hugeint": "DECIMAL(38,0)",
    "uhugeint": "DECIMAL(38,0)",
    "bignum": "VARCHAR",
    "bit": "VARCHAR",
    "enum": "VARCHAR",
    "time with time zone": "VARCHAR",
}


def casts(names: Sequence[str], types: Sequence["DuckDBPyType"]) -> str | None:
    """The select list that makes every column fit; None if all do."""
    wanted = [_cast_type(kind) for kind in types]
    if not any(wanted):
        return None
    # By place: a result may have two columns of one name.
    return ", ".join(
        f"CAST(#{place} AS {kind}) AS {quoted(name)}" if kind else f"#{place} AS {quoted(name)}"
        for place, (name, kind) in enumerate(zip(names, wanted, strict=True), 1)
    )


def arrow_schema(types: Sequence["DuckDBPyType"], given: pa.Schema) -> pa.Schema:
    """The schema of the cast rows, with uuids as they are in tables."""
    fields = [_arrow(kind, field) for kind, field in zip(types, given, strict=True)]
    return pa.schema(fields)


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [_refit(array, field.type) for array, field in zip(batch, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast_type(kind: "DuckDBPyType") -> str | None:
    """None: the type stays."""
    if kind.id in _CASTS:
        return _CASTS[kind.id]
    if kind.id not in ("list", "array", "struct", "map"):
        return None
    members = _children(kind)
    below = [_cast_type(child) for _, child in members]
    if not any(below):
        return None
    texts = [new or str(child) for new, (_, child) in zip(below, members, strict=True)]
    if kind.id == "struct":
        named = (f"{quoted(name)} {text}" for (name, _), text in zip(members, texts, strict=True))
        return f"STRUCT({', '.join(named)})"
    return f"MAP({texts[0]}, {texts[1]})" if kind.id == "map" else f"{texts[0]}[]"


def _children(kind: "DuckDBPyType") -> list[tuple[str, "DuckDBPyType"]]:
    """Without the length of an array."""
    return [(name, child) for name, child in kind.children if not isinstance(child, int | list)]


def _arrow(kind: "DuckDBPyType", field: pa.Field) -> pa.Field:
    if kind.id == "uuid":
        return field.with_type(pa.binary(16))
    if kind.id not in ("list", "array", "struct", "map"):
        return field
    below = [child for _, child in _children(kind)]
    given = field.type
    if kind.id == "struct":
        members = [_arrow(child, given.field(i)) for i, child in enumerate(below)]
        return field.with_type(pa.struct(members))
    if kind.id == "map":
        key, value = _arrow(below[0], given.key_field), _arrow(below[1], given.item_field)
        return field.with_type(pa.map_(key, value))
    if not pa.types.is_list(given):
        return field
    item = _arrow(below[0], given.value_field)
    return field.with_type(pa.list_(item.with_name("element")))


def _refit(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_struct(kind):
        members = [_refit(array.field(i), field.type) for i, field in enumerate(kind)]
        return struct_like(array, members, list(kind))
    if pa.types.is_list(kind):
        return list_like(array, _refit(array.flatten(), kind.value_type), kind)
    if pa.types.is_map(kind):
        pairs = as_list(array)
        keys, items = pairs.flatten().flatten()
        return map_like(pairs, _refit(keys, kind.key_type), _refit(items, kind.item_type), kind)
    return array.cast(kind)
