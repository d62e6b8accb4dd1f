"""Bounds and partition values: there and back, and the same bytes as pyiceberg's."""

import math
import uuid
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyiceberg.types import (
    DecimalType as PeerDecimal,
)
from pyiceberg.types import (
    FixedType as PeerFixed,
)

from lakebed.formats.iceberg.bounds import (
    from_avro,
    from_binary,
    lower_to_binary,
    to_avro,
    to_binary,
    upper_to_binary,
)
from lakebed.model.errors import DataCorrupt, InvalidInput
from lakebed.model.types import DecimalType, FixedType, Primitive, Scalar

INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1).map(
    lambda n: Decimal(n).scaleb(-3, Context(prec=50))
)
CASES: dict[str, tuple[Scalar, PrimitiveType, st.SearchStrategy[Any]]] = {
    "boolean": (Primitive("boolean"), BooleanType(), st.booleans()),
    "byte": (Primitive("byte"), IntegerType(), st.integers(-128, 127)),
    "short": (Primitive("short"), IntegerType(), st.integers(-(2**15), 2**15 - 1)),
    "int": (Primitive("int"), IntegerType(), INT),
    "long": (Primitive("long"), LongType(), LONG),
    "float": (Primitive("float"), FloatType(), st.floats(width=32, allow_nan=False)),
    "double": (Primitive("double"), DoubleType(), st.floats(allow_nan=False)),
    "date": (Primitive("date"), DateType(), INT),
    "time": (Primitive("time"), TimeType(), st.integers(0, 86_399_999_999)),
    "timestamp": (Primitive("timestamp"), TimestamptzType(), LONG),
    "timestamp_ntz": (Primitive("timestamp_ntz"), TimestampType(), LONG),
    "timestamp_ns": (Primitive("timestamp_ns"), TimestampNanoType(), LONG),
    "timestamptz_ns": (Primitive("timestamptz_ns"), TimestamptzNanoType(), LONG),
    "string": (Primitive("string"), StringType(), st.text()),
    "uuid": (Primitive("uuid"), UUIDType(), st.binary(min_size=16, max_size=16)),
    "fixed": (FixedType(3), PeerFixed(3), st.binary(min_size=3, max_size=3)),
    "binary": (Primitive("binary"), BinaryType(), st.binary()),
    "decimal": (DecimalType(38, 3), PeerDecimal(38, 3), DECIMALS),
}


@given(st.data())
@pytest.mark.parametrize("name", CASES)
def test_a_bound_comes_back_and_pyiceberg_agrees(name: str, data: st.DataObject) -> None:
    kind, peer, values = CASES[name]
    value = data.draw(values)

    binary = to_binary(kind, value)

    assert from_binary(kind, binary) == value
    if name == "uuid":
        assert binary == to_bytes(peer, uuid.UUID(bytes=value))
        return
    assert binary == to_bytes(peer, value)


@given(st.data())
@pytest.mark.parametrize("name", CASES)
def test_a_partition_value_comes_back_from_avro(name: str, data: st.DataObject) -> None:
    kind, _, values = CASES[name]
    value = data.draw(st.none() | values)

    assert from_avro(kind, to_avro(kind, value)) == value


def test_bounds_from_before_a_column_was_widened_are_read() -> None:
    assert from_binary(Primitive("long"), to_binary(Primitive("int"), -5)) == -5
    assert from_binary(Primitive("double"), to_binary(Primitive("float"), 0.5)) == 0.5


def test_zero_bounds_cover_both_zeros() -> None:
    kind = Primitive("double")

    low, high = (
        from_binary(kind, lower_to_binary(kind, 0.0)),
        from_binary(kind, upper_to_binary(kind, -0.0)),
    )

    assert math.copysign(1, low) == -1  # type: ignore[arg-type]
    assert math.copysign(1, high) == 1  # type: ignore[arg-type]
    assert lower_to_binary(Primitive("int"), 0) == b"\0\0\0\0"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Primitive("int"), b"\0"),
        (Primitive("long"), b"\0" * 5),
        (Primitive("boolean"), b"\2"),
        (Primitive("string"), b"\xff"),
        (Primitive("uuid"), b"short"),
        (Primitive("double"), b""),
    ],
)
def test_broken_bounds_are_corrupt_data(kind: Scalar, data: bytes) -> None:
    with pytest.raises(DataCorrupt):
        from_binary(kind, data)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Primitive("int"), 2**31),
        (Primitive("int"), "1"),
        (Primitive("string"), 1),
        (Primitive("binary"), "x"),
        (DecimalType(5, 2), 1),
        (DecimalType(5, 2), Decimal("0.001")),
    ],
)
def test_values_of_another_type_are_refused(kind: Scalar, value: Any) -> None:
    with pytest.raises(InvalidInput):
        to_binary(kind, value)
