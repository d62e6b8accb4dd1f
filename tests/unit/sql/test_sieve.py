"""Which conditions are arithmetic over whole numbers, and which are left to the SQL engine."""

import pytest

from lakebed.model.expressions import And, Column, Compare
from lakebed.model.ids import FieldId, SchemaId
from lakebed.model.schema import Schema
from lakebed.model.sieve import Arithmetic, Comparison
from lakebed.model.types import Field, Primitive
from lakebed.sql.sieve import parse_sieve, plain_sieve

ID = Column(("id",))


def test_a_remainder_is_read_with_and_without_the_parser() -> None:
    text = "id % 10 = 3"

    found = parse_sieve(text)

    assert found is not None
    assert found.comparisons == (Comparison(Arithmetic("%", ID, 10), "=", 3),)
    plain = plain_sieve(text)
    assert plain is not None
    assert plain.comparisons == found.comparisons


def test_products_bind_closer_than_sums_and_brackets_closest() -> None:
    found = parse_sieve("a + b * 2 > (a + b) * 2")

    assert found is not None
    a, b = Column(("a",)), Column(("b",))
    left = Arithmetic("+", a, Arithmetic("*", b, 2))
    right = Arithmetic("*", Arithmetic("+", a, b), 2)
    assert found.comparisons == (Comparison(left, ">", right),)
    assert found.columns == ("a", "b")


def test_plain_comparisons_beside_it_stay_a_predicate() -> None:
    found = parse_sieve("id < 100 AND id % 2 = 1")

    assert found is not None
    assert found.predicate == And((Compare(ID, "<", 100),))


@pytest.mark.parametrize(
    "text",
    [
        "id < 10",  # a predicate says it all
        "id % 0 = 1",
        "id % -1 = 0",
        "id % other = 0",
        "id / 2 = 1",
        "id // 2 = 1",
        "id % 10 = 0 OR id = 3",
        "NOT id % 10 = 0",
        "id % 10 = 1.5",
        "id % 10 = 3000000000",
        "id + 3000000000 > 0",
        "1 + 1 = id",
        "-id = 3",
        "abs(id) = 3",
        "t.id % 2 = 0",
        "id % 2 = 0 AND name = 'a'",  # how engines read a text is theirs to say
        "id % 2 = 0 AND name LIKE 'a%'",
        "id % 2 = 0 AND price = 0.1",
        "id % 2 = (SELECT 1)",
        "id % 2",
        "id %",
        "",
    ],
)
def test_all_else_is_left_to_the_engine(text: str) -> None:
    assert parse_sieve(text) is None
    assert plain_sieve(text) is None


@pytest.mark.parametrize("kind", ["short", "double", "string"])
def test_only_numbers_of_32_and_64_bits_are_computed(kind: str) -> None:
    found = parse_sieve("id % 2 = 0")

    assert found is not None
    assert found.bound(Schema(SchemaId(0), (Field(FieldId(1), "id", Primitive(kind)),))) is None
    assert found.bound(Schema(SchemaId(0), (Field(FieldId(1), "other", Primitive("int")),))) is None


def test_names_are_found_as_anywhere_in_sql() -> None:
    found = parse_sieve("ID % 2 = 0")

    assert found is not None
    bound = found.bound(Schema(SchemaId(0), (Field(FieldId(1), "Id", Primitive("long")),)))
    assert bound is not None
    assert bound.columns == ("Id",)
