"""Conditions in the SQL of Spark: the same meaning, or nothing."""

import pytest

from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.sql.spark import to_spark

SCHEMA = new_schema(
    parse_schema(
        "a int, b decimal(9,2), name string, d date, ts timestamp, l array<int>, ok boolean"
    ),
    primary_key=(),
)


@pytest.mark.parametrize(
    ("sql", "spark"),
    [
        ("a < b", "`a` < `b`"),
        ("A::BIGINT + 1 > b / 2", "CAST(`A` AS BIGINT) + 1 > `b` / 2"),
        ("name || 'x' <> 'it''s'", "`name` || 'x' <> 'it\\'s'"),
        ("name LIKE 'a%' AND lower(name) = 'x'", "`name` LIKE 'a%' AND LOWER(`name`) = 'x'"),
        ("ok AND NOT (a IS NULL)", "`ok` AND NOT (`a` IS NULL)"),
        ("starts_with(name, 'a')", "STARTSWITH(`name`, 'a')"),
        ("d > DATE '2024-01-31'", "`d` > CAST('2024-01-31' AS DATE)"),
        ("ts > '2024-01-31 00:00:00Z'", "`ts` > '2024-01-31 00:00:00Z'"),
        ("a IS DISTINCT FROM 5", "`a` IS DISTINCT FROM 5"),
    ],
)
def test_what_spark_understands_is_said(sql: str, spark: str) -> None:
    said = to_spark(sql, SCHEMA)

    assert said == spark


@pytest.mark.parametrize(
    "sql",
    [
        "a",
        "a + 1",
        "name > 5",
        "a = ok",
        "greatest(a) > 0",
        "round() > 1",
        "abs(a, b) > 1",
        "CASE END",
        "l = [1]",
        "nope > 1",
        "CASE a WHEN 1 THEN 2 END = 2",
        "ts - ts > 1",
        "CAST(name AS INT) > 1",
        "md5(name) = 'x'",
        "",
        "a > 1; b > 2",
        "(" * 59 + "a" + ")" * 59 + " > 1",
    ],
)
def test_what_may_mean_something_else_is_not(sql: str) -> None:
    assert to_spark(sql, SCHEMA) is None
