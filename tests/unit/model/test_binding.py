"""Binding finds columns, refuses what cannot be compared, and never rounds a literal."""

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.model.binding import bind
from lakebed.model.errors import InvalidExpression
from lakebed.model.expressions import (
    Always,
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    TypedText,
)
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.types import Primitive, Stored
from tests.unit.predicate_cases import Meaning, predicates, rows, schemas

DAY = 86_400 * 10**6
C = Column(("c",))
DATE, TIMESTAMP = Primitive("date"), Primitive("timestamp")


def test_columns_get_id_type_and_the_spelling_of_the_schema() -> None:
    schema = new_schema(parse_schema("id long, Place struct<City: string>"))

    bound = bind(Compare(Column(("place", "city")), "=", "Rome"), schema)

    city = schema.find(("Place", "City"))
    assert city is not None
    expected = Column(("Place", "City"), city.id, Primitive("string"))
    assert bound == Compare(expected, "=", "Rome")


def test_an_unknown_column_is_refused_with_the_nearest_name() -> None:
    schema = new_schema(parse_schema("amount long, place struct<city: string>"))

    with pytest.raises(InvalidExpression) as near:
        bind(IsNull(Column(("amuont",))), schema)
    with pytest.raises(InvalidExpression) as nested:
        bind(IsNull(Column(("place", "ctiy"))), schema)
    with pytest.raises(InvalidExpression) as far:
        bind(IsNull(Column(("zzz",))), schema)

    assert near.value.hint == "did you mean amount?"
    assert nested.value.hint == "did you mean place.city?"
    assert far.value.hint == "the columns are: amount, place"


@pytest.mark.parametrize("kind", ["struct<x: long>", "list<long>", "map<string, long>"])
def test_nested_columns_can_only_be_tested_for_null(kind: str) -> None:
    schema = one(kind)

    bound = bind(IsNull(C), schema)

    assert bound == IsNull(Column(("c",), schema.fields[0].id, None))
    with pytest.raises(InvalidExpression, match="cannot be compared"):
        bind(Compare(C, "=", 1), schema)


@pytest.mark.parametrize(
    ("kind", "operator", "literal", "expected"),
    [
        ("long", ">", Decimal("2.5"), (">", 2)),
        ("long", ">=", Decimal("2.5"), (">", 2)),
        ("long", "<", Decimal("2.5"), ("<=", 2)),
        ("long", "<", Decimal("-2.5"), ("<=", -3)),
        ("long", "=", Decimal("2.5"), False),
        ("long", "!=", Decimal("2.5"), True),
        ("long", "=", Decimal("2.000"), ("=", 2)),
        ("long", "<", 2**80, True),
        ("long", ">", 2**80, False),
        ("long", ">", Decimal("-1e999999"), True),
        ("long", ">", Decimal("1e-999999"), (">", 0)),
        ("long", ">=", Decimal("-1e-999999"), (">", -1)),
        ("long", "<", math.inf, True),
        ("long", "<=", math.nan, True),
        ("byte", "=", 127, ("=", 127)),
        ("byte", "<=", 128, True),
        ("byte", ">=", Decimal("-128.5"), True),
        ("decimal(5,2)", "=", Decimal("1.005"), False),
        ("decimal(5,2)", "<", Decimal("1.005"), ("<=", Decimal("1.00"))),
        ("decimal(5,2)", "<=", Decimal("999.99"), ("<=", Decimal("999.99"))),
        ("decimal(5,2)", "<", 1000, True),
        ("decimal(5,2)", ">", -1000, True),
        ("decimal(38,0)", "=", 10**38 - 1, ("=", Decimal(10**38 - 1))),
        ("decimal(5,2)", "=", 0.1, False),
        ("double", "=", Decimal("0.1"), ("=", 0.1)),
        ("double", "=", 2**53 + 1, ("=", 2.0**53)),
        ("double", "<", 10**400, ("<=", 1.7976931348623157e308)),
        ("double", ">", Decimal("-1e400"), (">", -math.inf)),
        ("double", "<=", "NaN", True),
        ("double", ">", math.nan, False),
        ("double", "<", "-Infinity", ("<", -math.inf)),
        ("date", "=", "1970-01-02", ("=", 1)),
        ("date", ">=", "1970-01-02 10:00:00", (">", 1)),
        ("date", "<", "1970-01-02T00:00:00+01:00", ("<=", 0)),
        ("date", "=", TypedText("1970-01-02", TIMESTAMP), ("=", 1)),
        ("timestamp", "=", TypedText("1970-01-02", DATE), ("=", DAY)),
        ("timestamp", "=", "1970-01-02 00:00", ("=", DAY)),
        ("timestamp", "=", "1970-01-02T01:00:00+01:00", ("=", DAY)),
        ("timestamp", "=", "1970-01-01 22:30:00 -0130", ("=", DAY)),
        ("timestamp", "<", "1970-01-01 00:00:00.0000015", ("<=", 1)),
        ("timestamp", "<", "9999-12-31 23:59:59.999999Z", ("<", 253_402_300_799_999_999)),
        ("timestamp_ntz", "=", "1969-12-31T23:59:59.999999", ("=", -1)),
        ("timestamp_ns", "=", "1970-01-01 00:00:00.000000001", ("=", 1)),
        ("timestamptz_ns", "<", "9999-01-01", True),
        ("time", "=", "00:00:01.5", ("=", 1_500_000)),
        ("time", ">", "23:59:59.9999999", (">", DAY - 1)),
        ("uuid", "=", "F79C3E09-677C-4BBD-A479-3F349CB785E7",
         ("=", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"))),
        ("binary", ">", b"\xca", (">", b"\xca")),
        ("boolean", "=", True, ("=", True)),
    ],
)  # fmt: skip
def test_literals_take_the_stored_form_or_are_rewritten_exactly(
    kind: str, operator: Operator, literal: Stored, expected: bool | tuple[Operator, Stored]
) -> None:
    bound = bind(Compare(C, operator, literal), one(kind))

    if isinstance(expected, bool):
        assert isinstance(bound, Always)
        assert bound.value is expected
    else:
        assert isinstance(bound, Compare)
        assert (bound.operator, bound.value) == expected
        assert type(bound.value) is type(expected[1])


@pytest.mark.parametrize(
    ("kind", "literal", "hint"),
    [
        ("long", "5", "without quotes"),
        ("long", True, "without quotes"),
        ("decimal(5,2)", "5", "without quotes"),
        ("double", "abc", "without quotes"),
        ("double", "1.5", "without quotes"),
        ("string", 5, "single quotes"),
        ("string", Decimal(5), "single quotes"),
        ("string", TypedText("2024-01-01", DATE), "single quotes"),
        ("string", "\ud800", "single quotes"),
        ("boolean", 1, "TRUE or FALSE"),
        ("boolean", "true", "TRUE or FALSE"),
        ("date", 5, "'2024-01-31'"),
        ("date", "yesterday", "'2024-01-31'"),
        ("date", "2024-02-30", "'2024-01-31'"),
        ("timestamp", 10**15, "'2024-01-31 10:30:00+00:00'"),
        ("timestamp", "2024-01-01 24:00:00", "'2024-01-31 10:30:00+00:00'"),
        ("timestamp", "2024-01-01 10:00:00+99:00", "'2024-01-31 10:30:00+00:00'"),
        ("timestamp_ntz", "2024-01-01 10:00:00Z", "without Z"),
        ("time", "25:00", "'10:30:00'"),
        ("time", TypedText("2024-01-01", DATE), "'10:30:00'"),
        ("uuid", "f79c", "UUID"),
        ("uuid", b"\x00", "UUID"),
        ("binary", "abc", "X'CAFE'"),
        ("fixed(2)", b"abc", "2 bytes"),
    ],
)
def test_literals_of_another_kind_are_refused_with_a_way_out(
    kind: str, literal: Stored, hint: str
) -> None:
    with pytest.raises(InvalidExpression) as refused:
        bind(Compare(C, "=", literal), one(kind))

    assert hint in refused.value.hint
    assert refused.value.context == {"column": "c"}


def test_in_lists_keep_what_can_be_equal_once() -> None:
    listed = (1, Decimal("2.5"), Decimal("1.0"), 2**80, 3)

    assert members(In(C, listed), "long") == (1, 3)
    assert len(members(In(C, ("NaN", math.nan, 0.0, -0.0)), "double")) == 2


def test_in_lists_without_a_possible_value_are_false_or_null() -> None:
    schema = one("long")

    assert bind(In(C, (Decimal("2.5"),)), schema) == Always(bound_column(schema), False)
    assert bind(In(C, (Decimal("2.5"),), has_null=True), schema) == Constant(None)


def test_like_needs_text_and_becomes_simpler_where_it_can() -> None:
    schema = one("string")
    column = bound_column(schema)

    assert bind(Like(C, "a\\%b"), schema) == Compare(column, "=", "a%b")
    assert bind(Like(C, "%%"), schema) == Always(column, True)
    assert bind(Like(C, ""), schema) == Compare(column, "=", "")
    assert bind(Like(C, "\\a%\\"), schema) == Like(column, "a%\\\\")
    with pytest.raises(InvalidExpression, match="LIKE needs a string column"):
        bind(Like(C, "a%"), one("long"))


def test_every_part_of_a_tree_is_bound() -> None:
    schema = one("long")
    column = bound_column(schema)
    leaf, bound = Compare(C, "=", 1), Compare(column, "=", 1)

    tree: Predicate = And((Or((leaf, Not(leaf))), Constant(None), Always(C, True)))

    assert bind(tree, schema) == And(
        (Or((bound, Not(bound))), Constant(None), Always(column, True))
    )


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_binding_changes_no_answer(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    table, predicate = data.draw(rows(schema)), data.draw(predicates(schema))
    meaning = Meaning(schema)

    bound = bind(predicate, schema)

    for row in table:
        assert meaning.of_bound(bound, row) == meaning.of(predicate, row)


def one(kind: str) -> Schema:
    return new_schema(parse_schema(f"c {kind}"))


def bound_column(schema: Schema) -> Column:
    bound = bind(Always(C, True), schema)
    assert isinstance(bound, Always)
    return bound.column


def members(predicate: Predicate, kind: str) -> tuple[Stored, ...]:
    bound = bind(predicate, one(kind))
    assert isinstance(bound, In)
    return bound.values
