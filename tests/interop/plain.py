"""Arrow data as plain values that compare by value, whatever layout the reader chose."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

Rows = dict[int, dict[str, Any]]


def plain_rows(table: pa.Table, *, key: str = "id") -> Rows:
    """Each row by its key, as plain values; a key twice is an error."""
    columns = {name: plain(table[name]) for name in table.column_names}
    keys = columns.pop(key)
    assert len(set(keys)) == len(keys), f"rows came twice: {sorted(keys)}"
    return {k: {n: values[at] for n, values in columns.items()} for at, k in enumerate(keys)}


def plain(array: pa.ChunkedArray | pa.Array) -> list[Any]:
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return [value for chunk in chunks for value in _plain(chunk)]


def _plain(array: pa.Array) -> list[Any]:
    kind = array.type
    if kind == pa.bool8():
        return [None if v is None else bool(v) for v in array.storage.to_pylist()]
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(array.storage)
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_struct(kind):
        members = {f.name: _plain(c) for f, c in zip(kind, array.flatten(), strict=True)}
        rows = range(len(array))
        valid = array.is_valid().to_pylist()
        return [{n: v[at] for n, v in members.items()} if valid[at] else None for at in rows]
    if pa.types.is_map(kind):
        return _entries(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _items(array, _plain(array.values))
    return [_scalar(kind)(value) for value in _numbers(array).to_pylist()]


def _entries(array: pa.MapArray) -> list[Any]:
    pairs = list(zip(_plain(array.keys), _plain(array.items), strict=True))
    # The order of a map's entries means nothing.
    return [None if m is None else sorted(m, key=repr) for m in _items(array, pairs)]


def _items(array: pa.ListArray, values: list[Any]) -> list[Any]:
    offsets, valid = array.offsets.to_pylist(), array.is_valid().to_pylist()
    return [
        values[offsets[at] : offsets[at + 1]] if valid[at] else None for at in range(len(array))
    ]


def _numbers(array: pa.Array) -> pa.Array:
    """Times as numbers: Python's own cannot hold all of them."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        return array.cast(pa.int64())
    if pa.types.is_time(kind):
        return array.cast(pa.time64("us")).cast(pa.int64())
    if pa.types.is_date(kind):
        return array.cast(pa.date32()).cast(pa.int32())
    return array


def _scalar(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_timestamp(kind):
        nanos = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
        return lambda v: None if v is None else v * nanos
    if pa.types.is_floating(kind):
        return _float
    if pa.types.is_decimal(kind):
        return lambda v: None if v is None else (v if isinstance(v, Decimal) else Decimal(v))
    return lambda v: v


def _float(value: float | None) -> Any:
    """Equal when the bits are, but for NaN, of which there are many."""
    if value is None:
        return None
    return "nan" if math.isnan(value) else value.hex()
