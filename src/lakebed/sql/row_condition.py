"""Conditions that are kept with a table: any expression over one row that always means the same."""

from dataclasses import dataclass

from sqlglot import exp

from lakebed.model.errors import SqlUnsupported
from lakebed.model.functions import is_changing
from lakebed.sql.fragments import one_value
from lakebed.sql.sandbox import check_calls, check_tree
from lakebed.sql.source import Source, Token
from lakebed.sql.syntax import Syntax, place_of, read_syntax

_LEAD = "SELECT "
_REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Query, "a subquery"),
    (exp.Exists, "a subquery"),
    (exp.Window, "a window function"),
    (exp.AggFunc, "an aggregate"),
    (exp.Placeholder, "a parameter"),
    (exp.Parameter, "a parameter"),
    (exp.Star, "*"),
    (exp.Columns, "COLUMNS"),
    (exp.Comprehension, "a list comprehension"),
)
_HINT = "use the columns of the row, literals and functions that always answer the same"


@dataclass(frozen=True, slots=True)
class RowCondition:
    sql: str  # without comments
    columns: tuple[tuple[str, ...], ...]  # paths, as written


def parse_row_condition(text: str) -> RowCondition:
    """The columns a condition looks at; names and types are for the engine to check."""
    source = Source(text)
    if not source.tokens:
        raise source.error(0, "something is missing here")
    syntax = read_syntax(source, source.tokens, prefix=_LEAD)
    check_calls(source, syntax.tokens)
    check_tree(syntax)
    one_value(syntax)
    _refuse_more_than_a_row(syntax)
    _refuse_changing(source, source.tokens)
    paths = dict.fromkeys(_path(column) for column in syntax.find(exp.Column))
    return RowCondition(source.plain.strip(), tuple(paths))


def _refuse_more_than_a_row(syntax: Syntax) -> None:
    for node in syntax.nodes:
        if node is syntax.tree:
            continue
        for kind, name in _REFUSED:
            if isinstance(node, kind):
                raise syntax.error(place_of(node), f"{name} cannot stand here", hint=_HINT)


def _refuse_changing(source: Source, tokens: list[Token]) -> None:
    """By name: some of these need no brackets behind them."""
    nothing = Token("mark", "", 0, 0)
    for before, token, after in zip(
        [nothing, *tokens], tokens, [*tokens[1:], nothing], strict=False
    ):
        called = token.kind in ("word", "quoted") and after.text == "("
        bare = token.kind == "word" and "." not in (before.text, after.text)
        if is_changing(token.name) and (called or (bare and _needs_no_brackets(token))):
            raise source.error(
                token.start,
                f"{token.text[:60]} does not always answer the same",
                hint=_HINT,
                kind=SqlUnsupported,
            )


def _needs_no_brackets(token: Token) -> bool:
    return token.upper.startswith(("CURRENT_", "LOCALTIME", "SESSION_USER"))


def _path(column: exp.Column) -> tuple[str, ...]:
    names = [part.name for part in column.parts]
    node: exp.Expr | None = column.parent
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        names.append(node.expression.name)
        node = node.parent
    return tuple(names)
