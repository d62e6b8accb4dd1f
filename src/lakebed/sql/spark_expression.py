"""Expressions in Spark's SQL: refused where they do not speak of one row, and what ON demands."""

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakebed.model.errors import InvalidExpression

_NOT_HERE: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Window,), "a window function"),
    ((exp.Subquery, exp.Select, exp.Exists), "a subquery"),
    ((exp.AggFunc,), "an aggregate"),
    ((exp.Explode, exp.Unnest, exp.UDTF), "a function that makes rows"),
    ((exp.Placeholder, exp.Parameter), "a parameter"),
    ((exp.Star,), "*"),
)
_MAKE_ROWS = frozenset({"INLINE", "INLINE_OUTER", "STACK", "JSON_TUPLE", "VARIANT_EXPLODE"})
Path = tuple[str, ...]


def check_spark_expression(text: object, what: str) -> str:
    """The text, if it may be one expression of one row; Spark itself reads it later."""
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InvalidExpression(f"{what} is no SQL text: {text!r}", hint="write an expression")
    tree = _parsed(text)
    for node in tree.walk() if tree is not None else ():
        refused = next((name for kinds, name in _NOT_HERE if isinstance(node, kinds)), None)
        if isinstance(node, exp.Anonymous) and node.name.upper() in _MAKE_ROWS:
            refused = "a function that makes rows"
        if refused is not None:
            raise InvalidExpression(
                f"{what} has {refused}, which cannot stand here: {text.strip()[:200]}",
                hint="use the columns of the table, literals and functions of one row",
            )
    return text


def equal_columns(text: str) -> tuple[tuple[Path, Path], ...]:
    """Of `a = b AND c = d AND …`, the parts that compare two columns."""
    tree = _parsed(text)
    return () if tree is None else tuple(_equalities(tree))


def _parsed(text: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(text, read="spark", into=exp.Condition)
    except (SqlglotError, RecursionError):
        return None  # Spark knows more words, and says what is wrong with others


def _equalities(node: exp.Expr) -> Iterator[tuple[Path, Path]]:
    if isinstance(node, exp.Paren):
        yield from _equalities(node.this)
    elif isinstance(node, exp.And):
        yield from _equalities(node.left)
        yield from _equalities(node.right)
    elif isinstance(node, exp.EQ):
        sides = _path(node.left), _path(node.right)
        if all(sides):
            yield sides


def _path(node: exp.Expr) -> Path:
    if isinstance(node, exp.Dot):
        above = _path(node.this)
        return (*above, node.expression.name) if above else ()
    return tuple(part.name for part in node.parts) if isinstance(node, exp.Column) else ()
