"""Values of Python as SQL: the engine reads back exactly what was given."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import duckdb
import pytest

from lakebed.model.errors import InvalidInput
from lakebed.model.quoting import text_literal
from lakebed.rowops.literal import value_to_sql

VALUES = [
    None,
    True,
    False,
    0,
    -(2**63),
    2**63 - 1,
    0.1,
    -0.0,
    1e300,
    float("inf"),
    Decimal("123.4500"),
    Decimal("-0.001"),
    date(1, 1, 1),
    date(9999, 12, 31),
    datetime(2024, 2, 29, 1, 2, 3, 456789),  # noqa: DTZ001
    time(23, 59, 59, 999999),
    b"",
    b"\x00'\\\xff",
    UUID("00112233-4455-6677-8899-aabbccddeeff"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    with duckdb.connect() as engine:
        (found,) = engine.execute(f"SELECT {value_to_sql('c', value)}").fetchone() or ()

    assert (found, type(found)) == (value, type(value))


def test_a_time_with_a_zone_is_the_same_moment() -> None:
    there = datetime(2024, 1, 1, 12, 0, 0, 7, tzinfo=timezone(timedelta(hours=5)))
    with duckdb.connect() as engine:
        (found,) = engine.execute(f"SELECT epoch_us({value_to_sql('c', there)})").fetchone() or ()

    assert datetime.fromtimestamp(found // 10**6, UTC).hour == 7
    assert found % 10**6 == 7


def test_text_is_sql_already_and_quotes_double_in_literals() -> None:
    assert value_to_sql("c", "a + 1") == "a + 1"
    assert text_literal("it's") == "'it''s'"


@pytest.mark.parametrize("value", [[1], {"a": 1}, object(), Decimal("NaN"), time(1, tzinfo=UTC)])
def test_what_has_no_literal_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="'c'"):
        value_to_sql("c", value)
