"""Batches take the table's exact types, or the first row that does not fit is named."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakebed.engines.arrow.conform import BATCH_ROWS, conform
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import SchemaMismatch
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema

NAN = float("nan")


def schema_of(text: str) -> Schema:
    return new_schema(parse_schema(text))


def conformed(text: str, *arrays: pa.Array, names: list[str] | None = None) -> pa.Table:
    schema = schema_of(text)
    names = names or [f.name for f in schema.fields]
    batch = pa.RecordBatch.from_arrays(list(arrays), names=names)
    return pa.Table.from_batches(conform([batch], schema), to_arrow(schema))


def refusal(text: str, *arrays: pa.Array, names: list[str] | None = None) -> SchemaMismatch:
    with pytest.raises(SchemaMismatch) as caught:
        conformed(text, *arrays, names=names)
    assert caught.value.hint
    return caught.value


ACCEPTED: list[tuple[str, pa.Array, list[Any]]] = [
    ("byte", pa.array([1, -128, None], pa.int64()), [1, -128, None]),
    ("long", pa.array([255], pa.uint8()), [255]),
    ("long", pa.array([1.0, None, -3.0]), [1, None, -3]),
    ("int", pa.array([Decimal("7.00")]), [7]),
    ("double", pa.array([1.5, NAN, float("inf")], pa.float32()), [1.5, NAN, float("inf")]),
    ("double", pa.array([2**53], pa.int64()), [float(2**53)]),
    ("float", pa.array([0.5, NAN, None], pa.float64()), [0.5, NAN, None]),
    ("float", pa.array([1.5], pa.float16()), [1.5]),
    ("decimal(5,2)", pa.array([Decimal("1.1000")], pa.decimal128(10, 4)), [Decimal("1.10")]),
    ("decimal(38,30)", pa.array([5], pa.int64()), [Decimal(5)]),
    ("decimal(20,0)", pa.array([2**64 - 1], pa.uint64()), [Decimal(2**64 - 1)]),
    ("decimal(9,2)", pa.array([Decimal("1.25")], pa.decimal32(5, 2)), [Decimal("1.25")]),
    ("date", pa.array([86_400_000], pa.date64()), [date(1970, 1, 2)]),
    ("date", pa.array([date(1, 1, 1), date(9999, 12, 31)]), [date(1, 1, 1), date(9999, 12, 31)]),
    (
        "timestamp_ntz",
        pa.array([-1], pa.timestamp("s")),
        [datetime.fromisoformat("1969-12-31T23:59:59")],
    ),
    (
        "timestamp_ntz",
        pa.array([2000], pa.timestamp("ns")),
        [datetime.fromisoformat("1970-01-01T00:00:00.000002")],
    ),
    ("string", pa.array(["a", None], pa.large_string()), ["a", None]),
    ("string", pa.array(["a", None], pa.string_view()), ["a", None]),
    ("string", pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    ("long", pc.run_end_encode(pa.array([4, 4])), [4, 4]),
    (
        "boolean",
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], pa.int8())),
        [False, True],
    ),
    ("binary", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
    ("fixed(2)", pa.array([b"ab", None], pa.large_binary()), [b"ab", None]),
    ("uuid", pa.array([b"x" * 16], pa.binary(16)), [b"x" * 16]),
    ("uuid", pa.array([b"x" * 16], pa.binary(16)).cast(pa.uuid()), [b"x" * 16]),
    ("list<int>", pa.array([[1], None, []], pa.large_list(pa.int64())), [[1], None, []]),
    ("list<int>", pa.array([[1, 2], None], pa.list_view(pa.int64())), [[1, 2], None]),
    ("list<int>", pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), [[1, 2], None]),
    ("string", pa.nulls(2), [None, None]),
    ("struct<x: int not null>", pa.nulls(2), [None, None]),
]


@pytest.mark.parametrize(("kind", "array", "values"), ACCEPTED, ids=lambda v: str(v)[:30])
def test_a_value_that_fits_exactly_is_kept(kind: str, array: pa.Array, values: list[Any]) -> None:
    result = conformed(f"c {kind}", array)

    assert [_told_apart(v) for v in result["c"].to_pylist()] == [_told_apart(v) for v in values]
    result.validate(full=True)


REFUSED_VALUES: list[tuple[str, pa.Array, str]] = [
    ("byte", pa.array([0, 128]), "128"),
    ("int", pa.array([0, 2**31]), str(2**31)),
    ("long", pa.array([0.0, 1.5]), "1.5"),
    ("long", pa.array([0.0, NAN]), "nan"),
    ("int", pa.array([Decimal("0.0"), Decimal("7.5")]), "7.5"),
    ("float", pa.array([0.5, 0.1]), "0.1"),
    ("float", pa.array([0.5, 1e300]), "1e+300"),
    ("double", pa.array([0, 2**53 + 1]), str(2**53 + 1)),
    ("decimal(5,2)", pa.array([Decimal("1.000"), Decimal("1.234")]), "1.234"),
    ("decimal(5,2)", pa.array([999, 1000]), "1000"),
    ("decimal(38,30)", pa.array([0, 2**62]), str(2**62)),
    ("date", pa.array([0, 1], pa.date64()), ""),
    ("date", pa.array([0, 2_932_897], pa.int32()).cast(pa.date32()), "10000"),
    ("timestamp_ntz", pa.array([0, 1001], pa.timestamp("ns")), ""),
    ("timestamp_ntz", pa.array([0, 253_402_300_800], pa.timestamp("s")), ""),
    ("timestamp", pa.array([0, -62_135_596_801], pa.timestamp("s", "UTC")), ""),
    ("time", pa.array([0, 1], pa.time64("ns")), ""),
    ("fixed(2)", pa.array([b"ab", b"abc"]), "abc"),
    ("uuid", pa.array([b"a" * 16, b"abc"]), "abc"),
]


@pytest.mark.parametrize(("kind", "array", "value"), REFUSED_VALUES, ids=lambda v: str(v)[:30])
def test_a_value_that_does_not_fit_is_named_with_its_row(
    kind: str, array: pa.Array, value: str
) -> None:
    error = refusal(f"c {kind}", array)

    assert "column 'c', row 2:" in error.message
    assert value in error.message
    assert (error.context["column"], error.context["row"]) == ("c", 1)


REFUSED_TYPES: list[tuple[str, pa.Array]] = [
    ("int", pa.array(["1"])),
    ("double", pa.array(["1"])),
    ("string", pa.array([1])),
    ("string", pa.array([b"a"])),
    ("boolean", pa.array([1])),
    ("int", pa.array([True])),
    ("decimal(5,2)", pa.array([NAN])),
    ("decimal(5,2)", pa.array([float("inf")])),
    ("double", pa.array([Decimal(1)])),
    ("date", pa.array([0], pa.timestamp("us"))),
    ("timestamp", pa.array([0], pa.timestamp("us"))),
    ("timestamp_ntz", pa.array([0], pa.timestamp("us", "UTC"))),
    ("uuid", pa.array(["6f1d"])),
    ("struct<x: int>", pa.array([1])),
    ("list<int>", pa.array([1])),
    ("map<string, int>", pa.array([[1]])),
    ("long", pa.array([1], pa.duration("s"))),
]


@pytest.mark.parametrize(("kind", "array"), REFUSED_TYPES, ids=lambda v: str(v)[:30])
def test_a_type_that_can_never_fit_is_refused(kind: str, array: pa.Array) -> None:
    error = refusal(f"c {kind}", array)

    assert str(array.type) in error.message
    assert error.context["column"] == "c"


def test_a_naive_time_for_a_zoned_column_gets_a_hint_about_zones() -> None:
    error = refusal("c timestamp", pa.array([0], pa.timestamp("us")))

    assert "zone" in error.hint


def test_a_zone_is_converted_and_the_instant_kept() -> None:
    array = pa.array([3_600_000_000], pa.timestamp("us", "Europe/Berlin"))

    result = conformed("c timestamp", array)

    assert result["c"].type == pa.timestamp("us", "UTC")
    assert result["c"].cast(pa.int64()).to_pylist() == [3_600_000_000]


def test_columns_take_the_tables_order_and_missing_optional_ones_are_null() -> None:
    result = conformed("a int, b string, c int", pa.array([1]), pa.array([2]), names=["C", "a"])

    assert result.to_pylist() == [{"a": 2, "b": None, "c": 1}]


def test_an_exact_name_wins_over_one_in_another_case() -> None:
    error = refusal("a int", pa.array([1]), pa.array([2]), names=["a", "A"])

    assert "twice" in error.message


def test_an_unknown_column_is_refused() -> None:
    error = refusal("a int", pa.array([1]), pa.array([2]), names=["a", "b"])

    assert "no column 'b'" in error.message


def test_a_missing_required_column_is_refused() -> None:
    error = refusal("a int, b int not null", pa.array([1]), names=["a"])

    assert "'b'" in error.message


def test_an_unknown_struct_member_is_refused_with_its_path() -> None:
    error = refusal("s struct<x: int>", pa.array([{"x": 1, "y": 2}]))

    assert "'s.y'" in error.message


NULLS: list[tuple[str, pa.Array, str]] = [
    ("c int not null", pa.array([1, None]), "c"),
    ("c list<int not null>", pa.array([[1], [2, None]]), "c.element"),
    ("c struct<x: int not null>", pa.array([{"x": 1}, {"x": None}]), "c.x"),
    (
        "c map<string, int not null>",
        pa.array([[("a", 1)], [("b", None)]], pa.map_(pa.string(), pa.int32())),
        "c.value",
    ),
    ("c list<struct<x: int not null>>", pa.array([[{"x": 1}], [{"x": None}]]), "c.element.x"),
]


@pytest.mark.parametrize(("text", "array", "path"), NULLS, ids=lambda v: str(v)[:40])
def test_a_null_in_a_required_place_is_named(text: str, array: pa.Array, path: str) -> None:
    error = refusal(text, array)

    assert f"column {path!r}, row 2" in error.message
    assert error.context["row"] == 1


def test_a_required_member_may_be_missing_below_a_null_struct() -> None:
    result = conformed(
        "c struct<x: int not null, y: struct<z: string not null> not null>",
        pa.array([{"x": 1, "y": {"z": "a"}}, None]),
    )

    assert result["c"].to_pylist() == [{"x": 1, "y": {"z": "a"}}, None]


def test_values_hidden_below_nulls_or_outside_a_slice_do_not_matter() -> None:
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()),
        pa.array([1, None, 300], pa.int32()),
        mask=pa.array([False, True, False]),
    ).slice(0, 2)

    result = conformed("c list<byte not null>", hidden)

    assert result["c"].to_pylist() == [[1], None]


def test_a_sliced_map_keeps_its_entries() -> None:
    maps = pa.array([[("a", 1)], None, [("b", 2), ("c", None)]], pa.map_(pa.string(), pa.int64()))

    result = conformed("c map<string, int>", maps.slice(1))

    assert result["c"].to_pylist() == [None, [("b", 2), ("c", None)]]


def test_invalid_utf8_is_named() -> None:
    good = pa.array([b"ok", b"\xff\xfe"]).view(pa.string())

    error = refusal("c string", good)

    assert "row 2" in error.message
    assert "UTF-8" in error.message


def test_a_long_value_is_cut_in_the_message() -> None:
    error = refusal("c fixed(2)", pa.array([b"a" * 5000]))

    assert len(error.message) < 250


def test_rows_are_counted_across_batches_and_slices() -> None:
    schema = schema_of("c byte")
    good = pa.record_batch({"c": pa.array([1] * (BATCH_ROWS + 10), pa.int64())})
    bad = pa.record_batch({"c": pa.array([1, 2, 1000], pa.int64())})

    with pytest.raises(SchemaMismatch) as caught:
        list(conform([good, good, bad], schema))

    assert caught.value.context["row"] == 2 * (BATCH_ROWS + 10) + 2
    assert f"row {2 * (BATCH_ROWS + 10) + 3}" in caught.value.message


def test_batches_are_taken_one_at_a_time() -> None:
    taken = []

    def source() -> Iterator[pa.RecordBatch]:
        for number in range(200):
            taken.append(number)
            yield pa.record_batch({"c": [number]})

    for count, _ in enumerate(conform(source(), schema_of("c long")), 1):
        assert len(taken) == count


def test_an_empty_batch_with_wrong_columns_is_still_refused() -> None:
    assert "no column" in refusal("a int", pa.array([], pa.int32()), names=["b"]).message


def _told_apart(value: Any) -> Any:
    return "nan" if value != value else value  # noqa: PLR0124  # NaN alone differs from itself
