"""Is a DataFrame what `table.scan` gives? Types, values and counts, whatever order rows have."""

from collections.abc import Sequence
from functools import reduce
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebed.engines.spark.types import from_spark

Row = tuple[Any, ...]


def assert_same(frame: DataFrame, expected: pa.Table) -> None:
    """A uuid is text in Spark; a fixed one is bytes of any length."""
    assert frame.columns == expected.column_names
    found = from_spark(frame.schema)
    for name in frame.columns:
        wanted = _in_spark(expected.schema.field(name).type)
        assert _in_spark(found.field(name).type) == wanted, name
    assert rows_of(frame.toArrow()) == rows_of(expected)


def rows_of_each(frames: Sequence[DataFrame]) -> list[list[str]]:
    """Of several frames of one table in one job: starting a job costs more than its rows."""
    numbered = [
        frame.select(F.lit(number).alias("number"), F.struct("*").alias("row"))
        for number, frame in enumerate(frames)
    ]
    found = reduce(DataFrame.union, numbered).toArrow().to_pylist()
    return [
        sorted(_text(each["row"]) for each in found if each["number"] == number)
        for number in range(len(frames))
    ]


def rows_of(table: pa.Table) -> list[str]:
    """Comparable rows: NaN equals NaN, and maps are lists of pairs."""
    return sorted(map(_text, table.to_pylist()))


def _text(row: dict[str, Any]) -> str:
    return repr([_plain(value) for value in row.values()])


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes) and len(value) == 16 and value.startswith(b"uuid"):
        return str(UUID(bytes=value))
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


def _in_spark(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_fixed_size_binary(kind):
        return pa.string() if kind.byte_width == 16 else pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _in_spark(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _in_spark(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_in_spark(kind.key_type), pa.field("value", _in_spark(kind.item_type)))
    return kind
