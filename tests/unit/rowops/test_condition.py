"""What a condition says without an engine: as much as is certain, never more."""

import pytest

from lakebed.model.errors import InvalidExpression
from lakebed.model.expressions import And, Predicate
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.rowops.condition import Condition
from lakebed.rowops.known import of_alias
from lakebed.sql.predicate import parse_known_part, parse_predicate

SCHEMA = new_schema(parse_schema("id long, p string, s struct<a: int>"))


def known(text: str) -> Predicate | None:
    return Condition(text, parse_known_part(text), is_exact=False).bound(SCHEMA)


def exact(text: str) -> Predicate:
    bound = Condition(text, parse_predicate(text), is_exact=True).bound(SCHEMA)
    assert bound is not None
    return bound


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id = 5 AND length(p) = 1", "id = 5"),
        ("(length(p) = 1 AND (id > 5)) AND p = 'x'", "id > 5 AND p = 'x'"),
        ("s.a IN (1, 2) AND id = abs(id)", "s.a IN (1, 2)"),
        ("id = 5 AND nope = 3 AND f(id)", "id = 5"),  # the engine says that there is no nope
    ],
)
def test_the_parts_that_columns_and_literals_make(text: str, says: str) -> None:
    parts = exact(says)
    wanted = parts.operands if isinstance(parts, And) else (parts,)

    assert known(text) == And(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "id = 5 OR length(p) = 1",
        "NOT (id = 5 AND length(p) = 1)",
        "p LIKE 'a\\%' AND f(p)",  # engines escape differently
        "length(p) = 1",
        "id = = 1",
        "",
    ],
)
def test_nothing_is_said_where_nothing_is_certain(text: str) -> None:
    assert known(text) is None


def test_an_exact_condition_must_fit_the_schema() -> None:
    with pytest.raises(InvalidExpression, match="nope"):
        exact("nope = 1")


@pytest.mark.parametrize(
    ("on", "says"),
    [
        ("t.id = 5 AND t.id = s.id", "id = 5"),
        ("T.id = 5 AND s.id = 6 AND id = 7", "id = 5"),
        ("(t.id = 5 OR t.p = 'x') AND t.s.a IS NULL", "(id = 5 OR p = 'x') AND s.a IS NULL"),
        ("NOT t.id = 5 AND f(t.id)", "NOT id = 5"),
        ("t.id = 5 OR s.id = 6", None),
    ],
)
def test_what_a_join_says_of_one_side(on: str, says: str | None) -> None:
    condition = Condition(on, parse_known_part(on), is_exact=False)
    bound = of_alias(condition, "t").bound(SCHEMA)

    if says is None:
        assert bound is None
    else:
        parts = exact(says)
        inner = parts.operands if isinstance(parts, And) else (parts,)
        assert bound == And(inner)
