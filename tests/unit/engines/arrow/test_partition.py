"""Vectorised transforms equal the model's; folders are safe whatever the value."""

import math
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lakebed.engines.arrow.partition import NULL_FOLDER, partition_folder, split
from lakebed.engines.arrow.transform import transformed
from lakebed.engines.arrow.types import arrow_type, to_arrow
from lakebed.model.errors import InvalidSchema, LakebedError, SchemaMismatch
from lakebed.model.ids import FieldId
from lakebed.model.partitioning import parse_spec
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.transforms import TEMPORAL, Transform, apply, check_transform
from lakebed.model.types import INTEGERS, DecimalType, Field, Primitive, Type
from lakebed.storage.base import safe_path
from tests.unit.engines.arrow.strategies import scalar_types, values

WIDTHS = st.integers(1, 2**31 - 1) | st.integers(1, 100)
TRANSFORMS = st.one_of(
    st.sampled_from([Transform(name) for name in ("identity", *TEMPORAL)]),
    st.builds(Transform, st.sampled_from(["bucket", "truncate"]), WIDTHS),
)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), kind=scalar_types(), transform=TRANSFORMS)
def test_a_transform_of_an_array_equals_that_of_each_value(
    data: st.DataObject, kind: Type, transform: Transform
) -> None:
    assume(_is_defined(transform, kind))
    column = data.draw(st.lists(st.none() | values(kind), min_size=1, max_size=10))
    expected = [apply(transform, kind, value) for value in column]
    assume(not _too_small(transform, kind, expected))

    result = transformed(pa.array(column, arrow_type(kind)), kind, transform)

    assert [_plain(v) for v in result.to_pylist()] == [_plain(v) for v in expected]


@pytest.mark.parametrize(
    ("kind", "transform", "value", "result"),
    [
        ("date", Transform("year"), -719_162, -1969),
        ("date", Transform("month"), -1, -1),
        ("date", Transform("day"), 2_932_896, 2_932_896),
        ("timestamp", Transform("hour"), -1, -1),
        ("timestamp", Transform("day"), -1, -1),
        ("timestamp_ns", Transform("day"), -1, -1),
        ("timestamp", Transform("month"), 253_402_300_799_999_999, 96_359),
        ("int", Transform("truncate", 10), -1, -10),
        ("long", Transform("bucket", 16), 34, 3),
        ("int", Transform("bucket", 16), 34, 3),
    ],
)
def test_known_values(kind: str, transform: Transform, value: int, result: int) -> None:
    array = pa.array([value], arrow_type(Primitive(kind)))

    assert transformed(array, Primitive(kind), transform).to_pylist() == [result]


def test_bucket_hashes_as_the_specification_says() -> None:
    array = pa.array([34], pa.int64())

    result = transformed(array, Primitive("long"), Transform("bucket", 2**31 - 1))

    assert result.to_pylist() == [(2017239379 & 0x7FFFFFFF) % (2**31 - 1)]


def test_a_number_that_no_multiple_fits_below_is_refused() -> None:
    with pytest.raises(SchemaMismatch):
        transformed(pa.array([-128], pa.int8()), Primitive("byte"), Transform("truncate", 100))


def test_splitting_keeps_every_row_with_its_partition() -> None:
    schema = new_schema(parse_schema("id int, s struct<region string>, ts timestamp"))
    spec = parse_spec(("s.region", "day(ts)"), schema)
    rows = [
        {"id": 1, "s": {"region": "eu"}, "ts": 0},
        {"id": 2, "s": None, "ts": 0},
        {"id": 3, "s": {"region": "eu"}, "ts": 86_400_000_000},
        {"id": 4, "s": {"region": None}, "ts": None},
        {"id": 5, "s": {"region": "eu"}, "ts": 1},
        {"id": 6, "s": {"region": None}, "ts": 5},
    ]
    batch = pa.RecordBatch.from_pylist(rows, to_arrow(schema))

    parts = [(values, part["id"].to_pylist()) for values, part in split(batch, spec, schema)]

    assert parts == [
        (("eu", 0), [1, 5]),
        ((None, 0), [2, 6]),
        (("eu", 1), [3]),
        ((None, None), [4]),
    ]


def test_nan_is_one_partition_and_zero_has_no_sign() -> None:
    schema = new_schema(parse_schema("x double"))
    batch = pa.record_batch({"x": [math.nan, -math.nan, 0.0, -0.0]})

    parts = split(batch, parse_spec(("x",), schema), schema)

    assert [part.num_rows for _, part in parts] == [2, 2]
    assert math.isnan(float(parts[0][0][0] or 0))
    assert math.copysign(1, float(parts[1][0][0] or 0)) == 1


def test_a_piece_does_not_keep_the_whole_batch_alive() -> None:
    schema = new_schema(parse_schema("x int, y long"))
    batch = pa.record_batch({"x": pa.array([1] * 9_999 + [2], pa.int32()), "y": range(10_000)})

    parts = split(batch, parse_spec(("x",), schema), schema)

    assert parts[1][1].get_total_buffer_size() < 1000


AWKWARD = ["a/b", "..", ".", "", "ü", "%2e%2e", "x" * 300, "\n", "a/../b", "a\\..\\b", "%252e/.."]
AWKWARD += ["x/%2e%2e/y", " ", "=", "~", NULL_FOLDER, "😀" * 90, ".tmp-1", "\x7f", "a&b?c#d"]


@pytest.mark.parametrize("value", AWKWARD)
def test_a_folder_is_safe_whatever_the_value(value: str) -> None:
    schema = new_schema(parse_schema("region string"))
    spec = parse_spec(("region",), schema)

    folder = partition_folder(spec, (value,), schema)

    assert safe_path(f"t/data/{folder}/f.parquet")
    # Nothing to decode: Polars misses the deletion vectors of files whose path is encoded.
    assert re.fullmatch(r"[A-Za-z0-9_.=-]{1,255}", folder)
    # Where readers could not get the value back from the name, it must not look like one.
    assert ("=" in folder) == (folder == f"region={value}")
    assert folder.count("=") <= 1


def test_different_long_values_get_different_folders() -> None:
    schema = new_schema(parse_schema("region string"))
    spec = parse_spec(("region",), schema)

    folders = {partition_folder(spec, ("x" * 300 + end,), schema) for end in "ab"}

    assert len(folders) == 2


@settings(max_examples=200, deadline=None)
@given(name=st.text(min_size=1, max_size=80), value=st.text(max_size=200))
def test_any_name_and_value_make_a_safe_folder(name: str, value: str) -> None:
    try:
        schema = new_schema((Field(FieldId(0), name, Primitive("string")),))
    except LakebedError:
        assume(False)
    spec = parse_spec((schema.fields[0].name,), schema)

    assert safe_path(partition_folder(spec, (value,), schema))


@pytest.mark.parametrize(
    ("text", "by", "value", "folder"),
    [
        ("d date", "d", -1, "d=1969-12-31"),
        ("d date", "year(d)", -1, "d_year=1969"),
        ("d date", "month(d)", 648, "d_month=2024-01"),
        ("d date", "day(d)", -719_162, "d_day=0001-01-01"),
        ("t timestamp", "hour(t)", 474_037, "t_hour=2024-01-29-13"),
        ("i long", "bucket(16, i)", 7, "i_bucket=7"),
        ("b boolean", "b", True, "b=true"),
        ("u uuid", "u", bytes(16), "u=00000000-0000-0000-0000-000000000000"),
        ("b binary", "b", b"\x00\xff", "b=00ff"),
        ("m decimal(20,10)", "m", Decimal("1E-10"), "m=0.0000000001"),
        ("f double", "f", math.nan, "f=nan"),
        ("s string", "s", None, f"s={NULL_FOLDER}"),
    ],
)
def test_values_read_as_people_write_them(text: str, by: str, value: Any, folder: str) -> None:
    schema = new_schema(parse_schema(text))

    assert partition_folder(parse_spec((by,), schema), (value,), schema) == folder


@pytest.mark.parametrize(
    ("text", "value", "stem"),
    [
        ("t timestamp", 1_500_000, "t_1970-01-01T00_00_01_500000-"),
        ("t timestamp_ns", -1, "t_1969-12-31T23_59_59_999999999-"),
        ("t time", 3_600_000_000, "t_01_00_00-"),
    ],
)
def test_values_that_do_not_fit_a_name_are_still_recognized(
    text: str, value: int, stem: str
) -> None:
    schema = new_schema(parse_schema(text))

    assert partition_folder(parse_spec(("t",), schema), (value,), schema).startswith(stem)


def _is_defined(transform: Transform, kind: Type) -> bool:
    try:
        check_transform(transform, kind, "c")
    except InvalidSchema:
        return False
    return True


def _too_small(transform: Transform, kind: Type, results: list[Any]) -> bool:
    if transform.name != "truncate":
        return False
    if isinstance(kind, DecimalType):
        return any(v is not None and -v >= 10 ** (kind.precision - kind.scale) for v in results)
    bits = INTEGERS.get(str(kind))
    return bits is not None and any(v is not None and v < -(2 ** (bits - 1)) for v in results)


def _plain(value: Any) -> Any:
    return "nan" if isinstance(value, float) and math.isnan(value) else value
