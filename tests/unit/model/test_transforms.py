"""Partition transforms: the values of Iceberg's specification, and numbers of full width."""

from decimal import Decimal

import pytest

from lakebed.model.transforms import Transform, apply, hash_bytes, murmur3
from lakebed.model.types import DecimalType, Primitive, Stored, Type

# From the appendix of the Iceberg specification (32-bit hash requirements).
SPECIFIED = [
    (Primitive("int"), 34, 2017239379),
    (Primitive("long"), 34, 2017239379),
    (DecimalType(9, 2), Decimal("14.20"), -500754589),
    (Primitive("date"), 17486, -653330422),
    (Primitive("time"), 81068000000, -662762989),
    (Primitive("timestamp_ntz"), 1510871468000000, -2047944441),
    (Primitive("timestamp_ns"), 1510871468000000000, -2047944441),
    (Primitive("string"), "iceberg", 1210000089),
    (Primitive("binary"), b"\x00\x01\x02\x03", -188683207),
    (
        Primitive("uuid"),
        bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"),
        1488055340,
    ),
]


@pytest.mark.parametrize(("kind", "value", "expected"), SPECIFIED)
def test_hashes_are_those_of_the_specification(kind: Type, value: Stored, expected: int) -> None:
    found = murmur3(hash_bytes(kind, value))

    assert (found ^ 0x80000000) - 0x80000000 == expected


def test_wide_decimals_are_truncated_exactly() -> None:
    value = Decimal(12345678901234567890123456789012345678)

    found = apply(Transform("truncate", 10), DecimalType(38, 0), value)

    assert found == Decimal(12345678901234567890123456789012345670)


@pytest.mark.parametrize(
    ("name", "micros", "expected"),
    [("hour", -1, -1), ("day", -1, -1), ("month", -1, -1), ("year", -1, -1), ("day", 0, 0)],
)
def test_times_before_1970_fall_into_the_period_they_lie_in(
    name: str, micros: int, expected: int
) -> None:
    assert apply(Transform(name), Primitive("timestamp"), micros) == expected
