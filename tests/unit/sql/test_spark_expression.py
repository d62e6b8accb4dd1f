"""Expressions in Spark's SQL: those that do not speak of one row are refused."""

import pytest

from lakebed.model.errors import InvalidExpression
from lakebed.sql.spark_expression import check_spark_expression, equal_columns


@pytest.mark.parametrize(
    "text",
    [
        "n + 1",
        "t.`a b`.c <=> 'x\\'y'",
        "CASE WHEN a THEN b END",
        "transform(l, x -> x + 1)",
        "some words that nobody reads",  # Spark says what is wrong with it
    ],
)
def test_expressions_of_one_row_are_left_to_spark(text: str) -> None:
    assert check_spark_expression(text, "it") == text


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "a\0b",
        "max(n)",
        "1 + sum(n)",
        "row_number() OVER (ORDER BY n)",
        "id IN (SELECT id FROM u)",
        "EXISTS (SELECT 1)",
        "explode(l)",
        "posexplode(l)",
        "stack(2, 1, 2)",
        "inline(l)",
        "count(*)",
    ],
)
def test_others_are_refused(text: object) -> None:
    with pytest.raises(InvalidExpression, match="it "):
        check_spark_expression(text, "it")


def test_equal_columns_are_those_that_every_match_has() -> None:
    assert equal_columns("(t.a = s.b) AND s.`c d`.e = t.f AND t.x > s.x AND t.y = 1") == (
        (("t", "a"), ("s", "b")),
        (("s", "c d", "e"), ("t", "f")),
    )
    assert equal_columns("t.a = s.a OR t.b = s.b") == ()
    assert equal_columns("no sql at all") == ()
