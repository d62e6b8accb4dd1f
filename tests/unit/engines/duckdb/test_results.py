"""Results have Arrow types that hold every value; two columns may share a name."""

from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from lakebed.engines.duckdb.session import Session
from lakebed.model.errors import ConversionFailed
from lakebed.storage.memory import MemoryStorage
from tests.unit.engines.duckdb.plans import LIMITS

ID = "UUID '00000000-0000-0000-0000-0000000000ff'"
BYTES = UUID(int=255).bytes


def answer(sql: str) -> pa.Table:
    with Session(MemoryStorage("r"), LIMITS) as session:
        return session.batches(sql).read_all()


@pytest.mark.parametrize(
    ("sql", "kind", "value"),
    [
        (ID, pa.binary(16), BYTES),
        (f"[{ID}, NULL]", pa.list_(pa.binary(16)), [BYTES, None]),
        (f"{{'u': {ID}, 'n': 1}}", None, {"u": BYTES, "n": 1}),
        (f"MAP {{'k': [{ID}]}}", None, [("k", [BYTES])]),
        (f"MAP {{{ID}: 1}}", pa.map_(pa.binary(16), pa.int32()), [(BYTES, 1)]),
        ("sum(x)", pa.decimal128(38, 0), Decimal(3)),
        ("CAST(5 AS UHUGEINT)", pa.decimal128(38, 0), Decimal(5)),
        ("CAST('101' AS BIT)", pa.string(), "101"),
        ("CAST('b' AS ENUM ('a', 'b'))", pa.string(), "b"),
        ("CAST('12:00:00+01' AS TIMETZ)", pa.string(), "12:00:00+01"),
        ("CAST(repeat('9', 50) AS BIGNUM)", pa.string(), "9" * 50),
        ("CAST(1.25 AS DECIMAL(4,2))", pa.decimal128(4, 2), Decimal("1.25")),
        ("[1, NULL]", pa.list_(pa.int32()), [1, None]),
        ("TIMESTAMPTZ '2020-01-01 00:00:00+01'", pa.timestamp("us", "UTC"), None),
    ],
)
def test_results_have_types_without_loss(sql: str, kind: pa.DataType | None, value: object) -> None:
    found = answer(f"SELECT {sql} AS c FROM (VALUES (1), (2)) t(x) GROUP BY ALL")["c"]

    if kind is not None:
        assert found.type == kind
    if value is not None:
        assert found.to_pylist()[0] == value


def test_numbers_beyond_38_digits_are_refused_not_changed() -> None:
    with pytest.raises(ConversionFailed):
        answer("SELECT CAST(repeat('9', 38) AS HUGEINT) + 1 AS c")


def test_columns_of_one_name_stay_two() -> None:
    found = answer(f"SELECT 1 AS c, {ID} AS c, 3 AS d ORDER BY d")

    assert found.column_names == ["c", "c", "d"]
    assert [column.to_pylist() for column in found.columns] == [[1], [BYTES], [3]]


def test_the_order_of_rows_is_kept_when_types_are_cast() -> None:
    found = answer("SELECT i, uuid() AS u FROM range(300_000) r(i) ORDER BY hash(i)")["i"]
    plain = answer("SELECT i FROM range(300_000) r(i) ORDER BY hash(i)")["i"]

    assert found.to_pylist() == plain.to_pylist()
