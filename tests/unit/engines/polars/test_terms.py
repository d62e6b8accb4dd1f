"""Filters as Polars hands them down become predicates that leave files out."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import polars as pl
import pytest
from polars import col
from polars.io.plugins import register_io_source

from lakebed.engines.arrow.pushed import weaker_predicate
from lakebed.engines.polars.native import frame_schema
from lakebed.engines.polars.terms import term_of
from lakebed.model.binding import bind
from lakebed.model.expressions import Predicate
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.sql.predicate import parse_predicate

SCHEMA = new_schema(
    parse_schema(
        "i int, b byte, l long, x double, f float, s string, t boolean, d date, at timestamp,"
        " n timestamp_ntz, q decimal(9,2), c time, r struct<m: int>, z binary"
    )
)
NAIVE = datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC).replace(tzinfo=None)
KNOWN: list[tuple[pl.Expr, str]] = [
    (col("i") > 5, "i > 5"),
    (pl.lit(5) < col("b"), "b > 5"),
    (col("l") != 2**40, "l <> 1099511627776"),
    (col("x") <= 1, "x <= 1"),
    (col("f") == 0.5, "f = 0.5"),
    (col("s") == "it's", "s = 'it''s'"),
    (col("s").str.starts_with("50%"), r"s LIKE '50\%%'"),
    (col("t"), "t = TRUE"),
    (col("d") >= date(2024, 2, 29), "d >= DATE '2024-02-29'"),
    (col("at") < datetime(2024, 1, 1, tzinfo=UTC), "at < TIMESTAMP '2024-01-01 00:00:00Z'"),
    (col("n") < NAIVE, "n < '2024-01-01 00:00:00.000001'"),
    (col("q") == Decimal("1.25"), "q = 1.25"),
    (col("c") > time(1, 2, 3), "c > '01:02:03'"),
    (col("r").struct.field("m") == 1, "r.m = 1"),
    (col("z") == b"\x00a", "z = X'0061'"),
    (col("i").is_in([1, 2, 3]), "i IN (1, 2, 3)"),
    (col("s").is_in(["a", None]), "s IN ('a', NULL)"),
    (col("d").is_in([date(1970, 1, 2)]), "d IN (DATE '1970-01-02')"),
    (col("i").is_between(1, 3), "i >= 1 AND i <= 3"),
    (col("i").is_between(1, 3, closed="right"), "i > 1 AND i <= 3"),
    (col("i").is_null() | (col("x") > 1), "i IS NULL OR x > 1"),
    (~(col("i") > 5), "i <= 5"),
    (~col("t"), "NOT t = TRUE"),
    (col("x").is_nan(), "x = 'NaN'"),
]
# Nothing is left out by these.
UNKNOWN = [
    col("i") + 1 > 2,
    col("i") > col("l"),
    col("at").dt.year() == 2024,
    col("s").str.contains("a"),
    col("i").eq_missing(3),
    col("x") == float("nan"),  # noqa: PLW0177 - it is 1 beside another
    (col("i") > 1) | (col("s").str.len_bytes() > 2),
    ~((col("i") > 1) & (col("s").str.len_bytes() > 2)),
]


def handed_down(condition: pl.Expr) -> Predicate | None:
    """What a source hears of a filter after Polars has rewritten it."""
    heard: list[pl.Expr] = []

    def source(
        _columns: list[str] | None, predicate: pl.Expr | None, _rows: int | None, _size: int | None
    ) -> list[pl.DataFrame]:
        heard.extend([] if predicate is None else [predicate])
        return [pl.DataFrame(schema=schema)]

    schema = frame_schema(SCHEMA.fields)
    register_io_source(lambda *asked: iter(source(*asked)), schema=schema).filter(
        condition
    ).collect()
    (predicate,) = heard
    return weaker_predicate(term_of(predicate), SCHEMA)


@pytest.mark.parametrize(("condition", "sql"), KNOWN, ids=str)
def test_a_filter_of_polars_is_the_predicate_of_the_same_words(
    condition: pl.Expr, sql: str
) -> None:
    wanted = bind(parse_predicate(sql), SCHEMA)

    assert repr(handed_down(condition)) == repr(wanted)


@pytest.mark.parametrize("condition", UNKNOWN, ids=str)
def test_a_filter_that_is_not_understood_leaves_nothing_out(condition: pl.Expr) -> None:
    assert handed_down(condition) is None
