"""Filters that engines hand down: what they mean, and which files they leave out."""

import math
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakebed.engines.arrow.evaluate import matches
from lakebed.engines.arrow.pushed import as_predicate, holds, weaker_predicate
from lakebed.engines.arrow.terms import Reference, references, term_of
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.expressions import And, Column, Compare, Predicate
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.types import Primitive

NAN = math.nan
SCHEMA = new_schema(
    parse_schema(
        "i int, x double, f float, s string, t boolean, at timestamp, d decimal(5,2),"
        " r struct<m: int>"
    )
)
BATCH = pa.RecordBatch.from_pylist(
    [
        {"i": 1, "x": 0.5, "f": 0.5, "s": "ab", "t": True, "at": 0, "r": {"m": 1}},
        {"i": 2, "x": NAN, "f": NAN, "s": "b%", "t": False, "at": 10**6, "r": {"m": None}},
        {"i": None, "x": None, "f": None, "s": None, "t": None, "at": None, "r": None},
        {"i": -3, "x": -0.0, "f": -0.0, "s": "", "t": True, "at": -1, "r": {"m": 7}},
        {"i": 4, "x": math.inf, "f": 1.5, "s": "a", "t": None, "at": 5, "r": {"m": -1}},
    ],
    schema=to_arrow(SCHEMA),
)
i, x, f, s, t = (pc.field(name) for name in "ixfst")
MOMENT = pa.scalar(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), pa.timestamp("us", "UTC"))
# What SQL says: TRUE, FALSE or NULL for each row of the batch.
T, F, N = True, False, None
MEANINGS: list[tuple[pc.Expression, list[bool | None]]] = [
    (i > 1, [F, T, N, F, T]),
    (pc.scalar(1) < i, [F, T, N, F, T]),
    (x > 1, [F, T, N, F, T]),
    (x <= 1, [T, F, N, T, F]),
    (x == NAN, [F, T, N, F, F]),
    (x != NAN, [T, F, N, T, T]),
    (x < NAN, [T, F, N, T, T]),
    (x == 0, [F, F, N, T, F]),
    (f > 1, [F, T, N, F, T]),
    (pc.is_nan(x), [F, T, N, F, F]),
    (x.isin([0.0, 0.5]), [T, F, N, T, F]),
    (~i.isin([1, 9]), [F, T, N, T, T]),
    (i.isin([1, None]), [T, N, N, N, N]),
    (t, [T, F, N, T, N]),
    (~t, [F, T, N, F, N]),
    (i.is_null(), [F, F, T, F, F]),
    (i.is_valid() & t, [T, F, F, T, N]),
    (t | (i > 3), [T, F, N, T, T]),
    (~((i > 3) & (x > 0)), [T, T, N, T, F]),
    (pc.field("at") >= MOMENT, [F, T, N, F, F]),
    (pc.field("r", "m") > 0, [T, N, N, T, F]),
    (i > pc.scalar(pa.scalar(None, pa.int32())), [N, N, N, N, N]),
    (pc.scalar(True), [T, T, T, T, T]),
    # These no predicate can say.
    (x >= f, [T, T, N, T, T]),
    (x > f, [F, F, N, F, T]),
    (i >= pc.field("r", "m"), [T, N, N, F, T]),
    ((i > 1).is_null(), [F, F, T, F, F]),
    ((x > f) | i.isin([1, None]), [T, N, N, N, T]),
]


@pytest.mark.parametrize(("expression", "answers"), MEANINGS, ids=str)
def test_a_filter_means_what_sql_says(
    expression: pc.Expression, answers: list[bool | None]
) -> None:
    term = term_of(expression)

    assert holds(term, BATCH).to_pylist() == answers
    predicate = as_predicate(term, SCHEMA)
    if predicate is not None:
        assert matches(predicate, BATCH).to_pylist() == answers


@pytest.mark.parametrize(("expression", "answers"), MEANINGS, ids=str)
def test_a_weaker_predicate_keeps_every_row_of_the_filter(
    expression: pc.Expression, answers: list[bool | None]
) -> None:
    predicate = weaker_predicate(term_of(expression), SCHEMA)

    kept = [True] * len(answers) if predicate is None else found(predicate)
    assert all(keeps for keeps, answer in zip(kept, answers, strict=True) if answer)


def test_what_is_known_beside_the_unknown_still_leaves_files_out() -> None:
    known = Compare(Column(("i",), SCHEMA.fields[0].id, Primitive("int")), ">", 1)

    assert weaker_predicate(term_of((i > 1) & (x > f)), SCHEMA) == And((known,))
    assert weaker_predicate(term_of((i > 1) | (x > f)), SCHEMA) is None
    assert weaker_predicate(term_of(~((i > 1) & (x > f))), SCHEMA) is None


@pytest.mark.parametrize(
    "literal", [pa.scalar(2**40), pa.scalar("1"), pa.scalar(1.5)], ids=lambda v: str(v.type)
)
def test_a_literal_that_the_column_cannot_hold_says_nothing(literal: Any) -> None:
    assert as_predicate(term_of(i == pc.scalar(literal)), SCHEMA) is None


def test_names_of_any_kind_are_read() -> None:
    odd = 'odd "name\n'

    assert term_of(pc.field(odd)) == Reference((odd,))
    assert references(term_of((pc.field(odd) > 1) & (pc.field("r", "m") > x))) == {odd, "r", "x"}


def test_a_function_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="the function add"):
        holds(term_of((i + 1) > 2), BATCH)
    with pytest.raises(UnsupportedFeature, match="options of match_like"):
        term_of(pc.match_like(s, "a%"))
    with pytest.raises(UnsupportedFeature, match="options of is_null"):
        term_of(x.is_null(nan_is_null=True))


def found(predicate: Predicate) -> list[bool]:
    return [answer is True for answer in matches(predicate, BATCH).to_pylist()]
