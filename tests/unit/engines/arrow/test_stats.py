"""Bounds hold for every value, are tight unless cut, and never come from local time or floats."""

import io
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.engines.arrow.stats import file_stats, round_up, row_group_stats
from lakebed.engines.arrow.transform import stored
from lakebed.engines.arrow.types import to_arrow
from lakebed.engines.arrow.write import WriteOptions, write
from lakebed.model.files import BOUND_LENGTH, ColumnStats
from lakebed.model.ids import FieldId
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.types import Field, Stored, StructType
from lakebed.storage.memory import MemoryStorage
from tests.unit.engines.arrow.strategies import scalar_types, tables, types

NAN = math.nan


def stats_of(schema: Schema, table: pa.Table, rows: int = 7) -> dict[FieldId, ColumnStats]:
    files = write(
        table.to_batches(),
        storage=MemoryStorage("stats"),
        root="t",
        schema=schema,
        options=WriteOptions(row_group_rows=rows),
        name_prefix="f",
    )
    if len(files) > 1:  # NaN in a later row group began another file
        return stats_of(schema, table, rows=table.num_rows)
    return dict(files[0].stats)


def stats_of_column(kind: str, values: list[Any], rows: int = 100) -> ColumnStats:
    schema = new_schema(parse_schema(f"c {kind}"))
    table = pa.Table.from_arrays(
        [pa.array(values, to_arrow(schema).field(0).type)], schema=to_arrow(schema)
    )
    return stats_of(schema, table, rows)[schema.fields[0].id]


@settings(max_examples=150, deadline=None)
@given(tables(scalar_types()))
def test_bounds_hold_for_every_value_and_are_tight(case: tuple[Schema, pa.Table]) -> None:
    schema, table = case
    if not table.num_rows:
        return

    stats = stats_of(schema, table)

    for field in schema.fields:
        check(stats[field.id], list(plain(table[field.name], field)))


@settings(max_examples=60, deadline=None)
@given(tables(types()))
def test_nested_leaves_are_counted_and_struct_members_bounded(
    case: tuple[Schema, pa.Table],
) -> None:
    schema, table = case
    if not table.num_rows:
        return

    stats = stats_of(schema, table)

    for field in schema.fields:
        for leaf, values in members(field, table[field.name].combine_chunks()):
            check(stats[leaf.id], list(plain(pa.chunked_array([values]), leaf)))
    unbounded = {f.id for f in schema.walk()} - {
        leaf.id for f in schema.fields for leaf, _ in members(f, table[f.name].combine_chunks())
    }
    assert all(stats[i].lower is stats[i].upper is None for i in unbounded & set(stats))


def members(field: Field, array: pa.Array) -> Iterator[tuple[Field, pa.Array]]:
    if isinstance(field.type, StructType):
        for member, part in zip(field.type.fields, array.flatten(), strict=True):
            yield from members(member, part)
    elif not pa.types.is_nested(array.type):
        yield field, array


def plain(column: pa.ChunkedArray, field: Field) -> Iterator[Stored | None]:
    for chunk in column.chunks:
        yield from stored(chunk, field.type).to_pylist()


def check(stats: ColumnStats, values: list[Any]) -> None:
    nans = [v for v in values if isinstance(v, float) and math.isnan(v)]
    real = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    assert stats.value_count == len(values)
    assert stats.null_count == values.count(None)
    assert (stats.nan_count or 0) == len(nans)
    assert stats.size_bytes
    if not real:
        assert stats.lower is stats.upper is None
        return
    if stats.lower is not None:
        assert all(stats.lower <= v for v in real)
    if stats.upper is not None:
        assert all(stats.upper >= v for v in real)
    if not nans and not (
        isinstance(real[0], str | bytes) and len(max(real, key=len)) > BOUND_LENGTH
    ):
        assert (stats.lower, stats.upper) == (min(real), max(real))
        assert type(stats.lower) is type(real[0])


@pytest.mark.parametrize(
    ("kind", "values", "lower", "upper"),
    [
        ("boolean", [True, False], False, True),
        ("date", [-719_162, 2_932_896], -719_162, 2_932_896),
        ("timestamp", [-62_135_596_800_000_000, 0], -62_135_596_800_000_000, 0),
        ("timestamp_ntz", [0, 253_402_300_799_999_999], 0, 253_402_300_799_999_999),
        ("timestamp_ns", [-1, 1], -1, 1),
        ("time", [1, 86_399_999_999], 1, 86_399_999_999),
        ("decimal(5,2)", [Decimal("-1.10"), Decimal("5.55")], Decimal("-1.10"), Decimal("5.55")),
        ("decimal(18,0)", [-(10**17), 10**17], Decimal(-(10**17)), Decimal(10**17)),
        ("decimal(38,38)", [Decimal(f"-{'9' * 38}E-38")] * 2, Decimal(f"-{'9' * 38}E-38"), None),
        ("double", [NAN, 1.0], None, None),
        ("double", [-0.0], -0.0, 0.0),
        ("double", [0.0], -0.0, 0.0),
        ("double", [math.inf, -math.inf], -math.inf, math.inf),
        ("float", [NAN, None], None, None),
        ("string", ["ä", "z"], "z", "ä"),
        ("string", ["", "a"], "", "a"),
        ("uuid", [b"\x00" * 16, b"\xff" * 16], b"\x00" * 16, b"\xff" * 16),
        ("binary", [b"\x80", b"\x7f"], b"\x7f", b"\x80"),
        ("fixed(2)", [b"ab", b"aa"], b"aa", b"ab"),
        ("int", [None, None], None, None),
        ("string", ["a" * 100], "a" * 32, "a" * 31 + "b"),
        ("string", ["😀" * 33], "😀" * 32, "😀" * 31 + "😁"),
        ("string", ["\ud7ff" * 33], "\ud7ff" * 32, "\ud7ff" * 31 + "\ue000"),
        ("string", ["a" + "\U0010ffff" * 40], "a" + "\U0010ffff" * 31, "b"),
        ("string", ["\U0010ffff" * 40], "\U0010ffff" * 32, None),
        ("binary", [b"a" * 100], b"a" * 32, b"a" * 31 + b"b"),
        ("binary", [b"a" + b"\xff" * 100], b"a" + b"\xff" * 31, b"b"),
        ("binary", [b"\xff" * 100], b"\xff" * 32, None),
        ("fixed(40)", [b"\x01" * 40], b"\x01" * 32, b"\x01" * 31 + b"\x02"),
    ],
)
def test_known_bounds(kind: str, values: list[Any], lower: Any, upper: Any) -> None:
    stats = stats_of_column(kind, values)

    if kind == "decimal(38,38)":
        upper = lower
    assert (stats.lower, stats.upper) == (lower, upper)
    assert type(stats.lower) is type(lower)
    if isinstance(lower, float):
        assert repr(stats.lower) == repr(lower)


def test_row_groups_are_merged_and_those_of_nulls_do_not_count() -> None:
    stats = stats_of_column("int", [5, 7, None, None, -3, 0], rows=2)

    assert (stats.lower, stats.upper, stats.null_count, stats.value_count) == (-3, 7, 2, 6)


def test_a_column_with_nan_has_counts_and_no_bounds() -> None:
    stats = stats_of_column("double", [1.0, 2.0, NAN, NAN], rows=2)

    assert (stats.lower, stats.upper, stats.nan_count) == (None, None, 2)


def test_nans_are_counted_in_structs_lists_and_maps() -> None:
    schema = new_schema(parse_schema("s struct<x double>, l list<float>, m map<string, double>"))
    rows = [
        {"s": {"x": NAN}, "l": [NAN, 1.0, NAN], "m": [("a", NAN), ("b", 1.0)]},
        {"s": None, "l": None, "m": None},
    ]

    stats = stats_of(schema, pa.Table.from_pylist(rows, to_arrow(schema)))

    names = {f.name: stats[f.id].nan_count for f in schema.walk() if f.id in stats}
    assert names == {"x": 1, "element": 2, "key": None, "value": 1}


def test_each_row_group_has_statistics_of_its_own() -> None:
    schema = new_schema(parse_schema("c long"))
    footer = _footer(pa.table({"c": [1, 2, 3, 4]}), row_group_size=2)

    bounds = [row_group_stats(footer, i, schema)[schema.fields[0].id] for i in range(2)]

    assert [(s.lower, s.upper, s.nan_count) for s in bounds] == [(1, 2, None), (3, 4, None)]


def test_a_file_without_statistics_gives_counts_only() -> None:
    schema = new_schema(parse_schema("c long"))
    footer = _footer(pa.table({"c": [1, None]}), write_statistics=False)

    stats = file_stats(footer, schema, {})[schema.fields[0].id]

    assert (stats.value_count, stats.null_count, stats.lower, stats.upper) == (2, None, None, None)


@pytest.mark.parametrize(
    ("unit", "value", "lower", "upper"),
    [("ms", 5, 5000, 5000), ("ns", 1500, 1, 2), ("ns", -1500, -2, -1)],
)
def test_other_units_of_foreign_files_are_converted_outwards(
    unit: str, value: int, lower: int, upper: int
) -> None:
    schema = new_schema(parse_schema("c timestamp_ntz"))
    footer = _footer(pa.table({"c": pa.array([value], pa.timestamp(unit))}))

    stats = file_stats(footer, schema, {})[schema.fields[0].id]

    assert (stats.lower, stats.upper) == (lower, upper)


def test_unsigned_and_unknown_columns_of_foreign_files_give_no_bounds() -> None:
    schema = new_schema(parse_schema("c long, d long"))
    footer = _footer(pa.table({"c": pa.array([2**63], pa.uint64()), "e": [1]}))

    stats = file_stats(footer, schema, {})

    assert list(stats) == [1]
    assert stats[schema.fields[0].id].lower is None


@given(st.text(min_size=1, max_size=5), st.text(max_size=5))
def test_rounding_up_passes_every_text_with_that_beginning(head: str, tail: str) -> None:
    upper = round_up(head)

    if upper is None:
        assert set(head) == {"\U0010ffff"}
    else:
        assert upper > head + tail
        assert upper.encode()
        assert len(upper) <= len(head)


def _footer(table: pa.Table, **options: Any) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))
