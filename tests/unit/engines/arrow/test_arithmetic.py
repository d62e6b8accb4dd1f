"""Arithmetic over Arrow batches gives the rows that the SQL engine gives, or leaves it to it."""

from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.engines.arrow.arithmetic import DoesNotFit, sift
from lakebed.engines.arrow.evaluate import matches
from lakebed.model.ids import FieldId, SchemaId
from lakebed.model.schema import Schema
from lakebed.model.types import Field, Primitive
from lakebed.sql.sieve import parse_sieve

INT, LONG = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
SCHEMA = Schema(
    SchemaId(0),
    tuple(
        Field(FieldId(n), name, Primitive(kind))
        for n, (name, kind) in enumerate((("i", "int"), ("j", "int"), ("k", "long")), 1)
    ),
)
ARROW = pa.schema([("i", pa.int32()), ("j", pa.int32()), ("k", pa.int64())])
Row = tuple[int | None, int | None, int | None]


def numbers(low: int, high: int) -> st.SearchStrategy[int | None]:
    near = st.sampled_from([low, low + 1, high, high - 1])
    return st.none() | st.integers(-20, 20) | st.integers(low, high) | near


rows = st.lists(st.tuples(numbers(*INT), numbers(*INT), numbers(*LONG)), max_size=8)
literals = st.integers(-12, 12) | st.integers(-(2**31) + 1, 2**31 - 1)
columns = st.sampled_from(["i", "j", "k"])


def joined(terms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    either = terms | literals.map(str)
    sums = st.tuples(terms, st.sampled_from("+-*"), either) | st.tuples(
        literals.map(str), st.sampled_from("+-*"), terms
    )
    remainders = st.tuples(terms, st.just("%"), literals.map(str))
    written = (sums | remainders).map(" ".join)
    return written | written.map("({})".format)


terms = st.recursive(columns, joined, max_leaves=4)
comparisons = st.tuples(
    terms, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), terms | literals.map(str)
).map(" ".join)
plain = st.sampled_from(["i IS NULL", "k > 3", "NOT j = 2", "j IN (1, 2)", "(i < 5 OR k = 1)"])


def by_arrow(condition: str, given: Sequence[Row]) -> list[Row] | None:
    """None where it is left to the engine."""
    parsed = parse_sieve(condition)
    sieve = None if parsed is None else parsed.bound(SCHEMA)
    if sieve is None:
        return None
    batch = pa.RecordBatch.from_pylist([dict(zip("ijk", r, strict=True)) for r in given], ARROW)
    try:
        kept = sift(sieve, batch.filter(matches(sieve.predicate, batch)))
    except DoesNotFit:
        return None
    return [(row["i"], row["j"], row["k"]) for row in kept.to_pylist()]


@settings(max_examples=400, deadline=None)
@given(st.lists(comparisons, min_size=1, max_size=2).map(" AND ".join), st.none() | plain, rows)
def test_the_engine_finds_the_same_rows(
    condition: str, beside: str | None, given: list[Row]
) -> None:
    found = by_arrow(condition if beside is None else f"{beside} AND {condition}", given)
    if found is None:
        return
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE t (i INTEGER, j INTEGER, k BIGINT)")
        for row in given:
            engine.execute("INSERT INTO t VALUES (?, ?, ?)", row)
        # In one WHERE, it may compute sums of rows that the other part leaves out, and refuse them.
        left = f"WITH left_ AS MATERIALIZED (SELECT * FROM t WHERE {beside or 'TRUE'})"
        assert engine.sql(f"{left} SELECT * FROM left_ WHERE {condition}").fetchall() == found


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("i % 3 = 0", [(0, 0, 0), (-3, 1, 9)]),
        ("i % 3 = -1", [(-4, 2, 7)]),  # the sign is that of what is divided
        ("i + j = k", [(0, 0, 0)]),
        ("j < i", []),
        ("k - 2 * j = 3 AND i < 0", [(-4, 2, 7)]),
    ],
)
def test_whole_numbers_are_computed(condition: str, left: list[Row]) -> None:
    given: list[Row] = [(0, 0, 0), (-3, 1, 9), (-4, 2, 7), (None, 1, 1)]

    assert by_arrow(condition, given) == left


@pytest.mark.parametrize(
    "condition",
    [
        "i + 1 > 0",
        "i * 2 = 4",
        "k + 1 > 0",
        "k * i = 0",
    ],
)
def test_a_number_that_does_not_fit_is_left_to_the_engine(condition: str) -> None:
    assert by_arrow(condition, [(2**31 - 1, 0, 2**63 - 1)]) is None
