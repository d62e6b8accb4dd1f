"""Rows of every library become batches; dicts are read strictly by the table's types."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.ingest import open_batches
from lakebed.engines.arrow.rows import ROWS_PER_BATCH
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import InvalidInput, InvalidSchema, SchemaMismatch, UnreadableInput
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema

NAIVE = datetime(2024, 1, 31, 13, tzinfo=UTC).replace(tzinfo=None)


def schema_of(text: str) -> Schema:
    return new_schema(parse_schema(text))


def rows_of(source: object, text: str | None = None) -> list[dict[str, Any]]:
    schema = None if text is None else schema_of(text)
    batches = open_batches(source, schema=schema)
    if schema is None:
        return list(pa.Table.from_batches(batches, batches.schema).to_pylist())
    return list(pa.Table.from_batches(conform(batches, schema), to_arrow(schema)).to_pylist())


def value_of(kind: str, value: object) -> Any:
    schema = schema_of(f"c {kind}")
    (batch,) = conform(open_batches([{"c": value}], schema=schema), schema)
    numbers = {"date": pa.int32(), "time": pa.int64()}
    target = pa.int64() if kind.startswith("timestamp") else numbers.get(kind, batch["c"].type)
    return batch["c"].cast(target).to_pylist()[0]


def test_arrow_comes_as_it_is() -> None:
    table = pa.table({"a": [1, 2]})
    (batch,) = table.to_batches()

    for source in (table, batch, table.to_reader(), [batch], (b for b in [batch]), [table]):
        assert rows_of(source) == [{"a": 1}, {"a": 2}]


def test_what_was_opened_may_be_opened_again() -> None:
    batches = open_batches([{"a": 1}], schema=None)

    assert open_batches(batches, schema=schema_of("a long")) is batches


def test_polars_frames_lazy_ones_too() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1, 2], "s": ["x", None]})

    assert rows_of(frame, "a int, s string") == frame.to_dicts()
    assert rows_of(frame.lazy().filter(polars.col("a") > 1), "a int, s string") == [
        {"a": 2, "s": None}
    ]


def test_pandas_frames_with_a_named_index_only() -> None:
    pandas = pytest.importorskip("pandas")

    plain = pandas.DataFrame({"a": [1, None]}, index=[5, 6])
    named = pandas.DataFrame({"a": [1]}, index=pandas.Index([5], name="k"))

    assert rows_of(plain, "a long") == [{"a": 1}, {"a": None}]
    assert rows_of(named, "k long, a long") == [{"k": 5, "a": 1}]


def test_a_pandas_frame_of_mixed_values_is_refused() -> None:
    pandas = pytest.importorskip("pandas")

    with pytest.raises(UnreadableInput):
        rows_of(pandas.DataFrame({"a": [1, "x"]}))


def test_duckdb_relations() -> None:
    duckdb = pytest.importorskip("duckdb")

    assert rows_of(duckdb.sql("select 1 as a, 'x' as b"), "a int, b string") == [{"a": 1, "b": "x"}]


@pytest.mark.parametrize("source", [5, "rows.csv", b"x", {"a": [1]}, None, [(1, 2)], ["a"], [None]])
def test_anything_else_is_refused_with_what_is_accepted(source: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_batches(source, schema=schema_of("a int"))

    assert caught.value.hint


def test_a_series_is_no_table() -> None:
    with pytest.raises(UnreadableInput):
        open_batches(pa.chunked_array([[1]]), schema=None)


def test_no_rows_need_a_schema() -> None:
    assert rows_of([], "a int") == []
    with pytest.raises(UnreadableInput):
        open_batches([], schema=None)


GOOD: list[tuple[str, object, Any]] = [
    ("boolean", True, True),
    ("byte", -128, -128),
    ("long", 5.0, 5),
    ("long", Decimal(5), 5),
    ("double", 5, 5.0),
    ("double", float("inf"), float("inf")),
    ("float", 0.1, 0.10000000149011612),
    ("decimal(5,2)", 7, Decimal("7.00")),
    ("decimal(5,2)", Decimal("1.1000"), Decimal("1.10")),
    ("decimal(38,0)", Decimal("9" * 38), Decimal("9" * 38)),
    ("date", date(1, 1, 1), -719_162),
    ("time", time(1, 0, 0, 5), 3_600_000_005),
    ("timestamp", datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
    ("timestamp", datetime(1, 1, 1, tzinfo=UTC), -62_135_596_800_000_000),
    ("timestamp_ntz", NAIVE, 1_706_706_000_000_000),
    ("timestamp_ns", NAIVE, 1_706_706_000_000_000_000),
    ("string", "ü", "ü"),
    ("uuid", UUID(int=1), UUID(int=1).bytes),
    ("uuid", b"x" * 16, b"x" * 16),
    ("binary", bytearray(b"x"), b"x"),
    ("fixed(2)", b"ab", b"ab"),
    ("list<int>", (1, None), [1, None]),
    ("struct<x: int, y: string>", {"x": 1}, {"x": 1, "y": None}),
    ("map<string, int>", {"a": 1}, [("a", 1)]),
    ("map<string, int>", [("a", None)], [("a", None)]),
]


@pytest.mark.parametrize(("kind", "value", "expected"), GOOD, ids=lambda v: str(v)[:30])
def test_a_value_takes_its_columns_type(kind: str, value: object, expected: Any) -> None:
    assert value_of(kind, value) == expected


BAD: list[tuple[str, object, str]] = [
    ("boolean", 1, "boolean"),
    ("int", "5", "text"),
    ("int", True, "number"),
    ("int", 1.5, "whole"),
    ("int", float("nan"), "None"),
    ("int", 2**31, "bits"),
    ("double", "1.5", "text"),
    ("double", Decimal("1.5"), "float"),
    ("double", 2**53 + 1, "exactly"),
    ("double", 10**400, "exactly"),
    ("double", Fraction(1, 3), "exactly"),
    ("float", 1e300, "32 bits"),
    ("decimal(5,2)", 1.5, "Decimal('1.23')"),
    ("decimal(5,2)", Decimal("1.234"), "decimal places"),
    ("decimal(5,2)", Decimal("1e999999"), "decimal places"),
    ("decimal(5,2)", Decimal("NaN"), "finite"),
    ("decimal(5,2)", 1000, "digits"),
    ("decimal(5,2)", "1.5", "number"),
    ("date", NAIVE, ".date()"),
    ("date", "2024-01-31", "date"),
    ("time", time(1, tzinfo=UTC), "zone"),
    ("timestamp", NAIVE, "zone"),
    ("timestamp_ntz", datetime(2024, 1, 1, tzinfo=UTC), "zone"),
    ("timestamp_ns", datetime(9999, 1, 1, tzinfo=UTC).replace(tzinfo=None), "1677"),
    ("timestamp", date(2024, 1, 31), "datetime"),
    ("string", 5, "str(…)"),
    ("string", "\ud800", "surrogates"),
    ("uuid", str(UUID(int=1)), "uuid.UUID"),
    ("uuid", b"x", "16 bytes"),
    ("binary", "x", ".encode()"),
    ("fixed(2)", b"abc", "2 bytes"),
    ("list<int>", "ab", "list"),
    ("list<int>", 5, "list"),
    ("struct<x: int>", 5, "mapping"),
    ("struct<x: int>", {"y": 1}, "no member 'y'"),
    ("map<string, int>", [1], "pair"),
]


@pytest.mark.parametrize(("kind", "value", "says"), BAD, ids=lambda v: repr(v)[:30])
def test_a_value_of_another_kind_is_refused_by_row(kind: str, value: object, says: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        rows_of([{"c": None}, {"c": value}], f"c {kind}")

    assert "column 'c', row 2:" in caught.value.message
    assert says in caught.value.message + caught.value.hint
    assert caught.value.context["row"] == 1


def test_a_nested_value_is_named_by_its_path() -> None:
    with pytest.raises(SchemaMismatch, match=r"column 'c\.x\.element', row 1"):
        rows_of([{"c": {"x": [1, "2"]}}], "c struct<x: list<int>>")


def test_missing_keys_are_null_and_unknown_ones_refused() -> None:
    assert rows_of([{"b": 1}, {}], "a int, b int") == [{"a": None, "b": 1}, {"a": None, "b": None}]
    with pytest.raises(SchemaMismatch, match="no column 'x'"):
        rows_of([{"x": 1}], "a int")
    with pytest.raises(SchemaMismatch, match="NULL in a required column"):
        rows_of([{}], "a int not null")


def test_rows_are_counted_across_chunks() -> None:
    rows = ({"a": 1 if n < ROWS_PER_BATCH * 2 else "x"} for n in range(ROWS_PER_BATCH * 3))

    with pytest.raises(SchemaMismatch) as caught:
        rows_of(rows, "a int")

    assert caught.value.context["row"] == ROWS_PER_BATCH * 2


def test_a_row_of_another_kind_is_named() -> None:
    with pytest.raises(SchemaMismatch, match="row 2: 5"):
        rows_of([{"a": 1}, 5], "a int")


def test_types_are_guessed_from_the_first_rows() -> None:
    rows = [{"a": 1}, {"a": 2.5, "b": "x", "d": Decimal("1.50"), "t": NAIVE, "u": date(2024, 1, 1)}]

    batches = open_batches(rows, schema=None)

    assert [str(t) for t in batches.schema.types] == [
        "double",
        "string",
        "decimal128(3, 2)",
        "timestamp[us]",
        "date32[day]",
    ]
    assert pa.Table.from_batches(batches).num_rows == 2


def test_columns_whose_type_cannot_be_guessed_are_refused() -> None:
    with pytest.raises(UnreadableInput, match="'a'"):
        open_batches([{"a": 1}, {"a": "x"}], schema=None)
    with pytest.raises(InvalidSchema, match="'a'"):
        open_batches([{"a": None}], schema=None)


def test_a_generator_is_read_while_it_is_consumed() -> None:
    made = 0

    def rows() -> Iterator[dict[str, int]]:
        nonlocal made
        for made in range(ROWS_PER_BATCH * 10):
            yield {"a": made}

    batches = iter(open_batches(rows(), schema=schema_of("a long")))
    next(batches)

    assert made < ROWS_PER_BATCH * 2


def test_errors_of_a_stream_are_reported() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})
        raise pa.ArrowInvalid("the query failed")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), broken())

    with pytest.raises(UnreadableInput, match="the query failed"):
        rows_of(reader)


def test_numpy_values_are_numbers_too() -> None:
    numpy = pytest.importorskip("numpy")

    rows = [{"a": numpy.int32(5), "b": numpy.float32(0.5), "c": numpy.bool_(True)}]

    assert rows_of(rows, "a int, b double, c boolean") == [{"a": 5, "b": 0.5, "c": True}]


def test_pandas_times_that_are_none_or_too_fine_are_refused() -> None:
    pandas = pytest.importorskip("pandas")

    for value in (pandas.NaT, pandas.Timestamp(1)):
        with pytest.raises(SchemaMismatch):
            rows_of([{"c": value}], "c timestamp_ntz")
    assert value_of("timestamp_ns", pandas.Timestamp(1)) == 1


def test_no_heavy_library_is_imported() -> None:
    code = (
        "import sys, lakebed.engines.arrow.ingest, lakebed.engines.arrow.write\n"
        "print([m for m in ('pandas', 'polars', 'duckdb') if m in sys.modules])"
    )

    answer = subprocess.check_output([sys.executable, "-c", code], text=True)

    assert answer.strip() == "[]"
