"""Predicates over Arrow batches mean what the slow interpreter says."""

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.engines.arrow.evaluate import matches
from lakebed.model.binding import bind
from lakebed.model.expressions import (
    Always,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
)
from lakebed.model.ids import FieldId
from lakebed.model.types import Primitive, Scalar
from tests.unit.predicate_cases import Meaning, predicates, rows, schemas, to_batch

NAN = math.nan
FLOAT = Primitive("double")
TEXT = Primitive("string")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_bound_predicates_mean_what_the_interpreter_says(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    table, predicate = data.draw(rows(schema)), data.draw(predicates(schema))

    answers = matches(bind(predicate, schema), to_batch(schema, table)).to_pylist()

    assert answers == [Meaning(schema).of(predicate, row) for row in table]


@pytest.mark.parametrize(
    ("operator", "literal", "expected"),
    [
        ("=", NAN, [False, True, None]),
        ("!=", NAN, [True, False, None]),
        ("<", NAN, [True, False, None]),
        ("<=", NAN, [True, True, None]),
        (">", NAN, [False, False, None]),
        (">=", NAN, [False, True, None]),
        ("=", 1.0, [True, False, None]),
        ("!=", 1.0, [False, True, None]),
        ("<", 2.0, [True, False, None]),
        ("<=", 1.0, [True, False, None]),
        (">", math.inf, [False, True, None]),
        (">=", 2.0, [False, True, None]),
    ],
)
def test_nan_equals_itself_and_is_greatest(
    operator: Operator, literal: float, expected: list[bool | None]
) -> None:
    batch = one(pa.array([1.0, NAN, None]))

    assert answers(Compare(column(FLOAT), operator, literal), batch) == expected


def test_zero_in_a_list_finds_both_zeros_and_nan_finds_nan() -> None:
    batch = one(pa.array([0.0, -0.0, NAN, 1.0, None]))

    assert answers(In(column(FLOAT), (-0.0,)), batch) == [True, True, False, False, None]
    assert answers(In(column(FLOAT), (NAN,)), batch) == [False, False, True, False, None]


def test_not_in_with_null_is_never_true() -> None:
    batch = one(pa.array([1, 2, None]))

    found = answers(Not(In(column(Primitive("long")), (1,), has_null=True)), batch)

    assert found == [False, None, None]


def test_float_columns_compare_as_doubles() -> None:
    batch = one(pa.array([0.1, 0.5], pa.float32()))

    assert answers(Compare(column(Primitive("float")), "=", 0.1), batch) == [False, False]
    assert answers(Compare(column(Primitive("float")), ">", 0.1), batch) == [True, True]


def test_like_escapes_wildcards_and_crosses_lines() -> None:
    batch = one(pa.array(["10%", "10x", "a\nb", "", None]))

    assert answers(Like(column(), "10\\%"), batch) == [True, False, False, False, None]
    assert answers(Like(column(), "a%b"), batch) == [False, False, True, False, None]


def test_members_of_null_structs_are_null_in_slices_too() -> None:
    inner = pa.array([1, 2, 3])
    struct = pa.StructArray.from_arrays([inner], ["x"], mask=pa.array([False, True, False]))
    batch = pa.RecordBatch.from_arrays([struct], ["c"]).slice(1)
    member = Column(("c", "x"), FieldId(2), Primitive("long"))

    assert answers(Compare(member, ">", 0), batch) == [None, True]
    assert answers(IsNull(Column(("c",), FieldId(1))), batch) == [True, False]


@pytest.mark.parametrize(
    "encoded",
    [
        pa.array(["a", None, "b"], pa.large_string()),
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array(["a", None, "b"]).dictionary_encode(),
    ],
)
def test_every_encoding_of_text_can_be_compared(encoded: pa.Array) -> None:
    batch = one(encoded)

    assert answers(Compare(column(), ">=", "b"), batch) == [False, None, True]
    assert answers(In(column(), ("a",)), batch) == [True, None, False]
    assert answers(Like(column(), "a%"), batch) == [True, None, False]


def test_untyped_nulls_and_uuids_can_be_compared() -> None:
    key = bytes(15) + b"\x01"

    assert answers(Compare(column(), "=", "b"), one(pa.nulls(2))) == [None, None]
    assert answers(
        Compare(column(Primitive("uuid")), "=", key), one(pa.array([key, None], pa.uuid()))
    ) == [True, None]


def test_constants_fill_every_row() -> None:
    batch = one(pa.array([1, None]))

    assert answers(Constant(None), batch) == [None, None]
    assert answers(Constant(True), batch) == [True, True]
    assert answers(Always(column(Primitive("long")), False), batch) == [False, None]


def column(kind: Scalar = TEXT) -> Column:
    return Column(("c",), FieldId(1), kind)


def one(array: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([array], ["c"])


def answers(predicate: Predicate, batch: pa.RecordBatch) -> list[bool | None]:
    found = matches(predicate, batch)
    assert isinstance(found, pa.BooleanArray)
    return list(found.to_pylist())
