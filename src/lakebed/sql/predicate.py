"""A WHERE clause as text becomes an unbound predicate; what a predicate cannot say is refused.

The text compares columns with literals, nothing else: no functions, no two columns, no subqueries.
"""

import operator
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import ClassVar

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot import Tokenizer as BaseTokenizer
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parser import Parser

from lakebed.model.errors import InvalidExpression
from lakebed.model.expressions import (
    FLIPPED,
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
from lakebed.model.types import Stored
from lakebed.sql.literals import NotLiteral, read_literal

# Compiled builds of the parser do not notice a full stack; this is far below what they can take.
_DEEPEST = 100
_SUPPORTED = (
    "compare a column with a literal by =, <>, <, <=, >, >=, IN, BETWEEN, LIKE or IS NULL, "
    "joined by AND, OR and NOT"
)
OPERATORS: dict[type, Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_COMPARE: dict[Operator, Callable[[Stored, Stored], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_PREFIXES = (TokenType.NOT, TokenType.DASH, TokenType.PLUS)
# The parser has its own ways to stumble over odd text; none of them may reach the caller.
_STUMBLES = (ValueError, TypeError, AttributeError, LookupError, RecursionError)


# `id < 10`: most conditions of small changes are such, and to parse one takes longer than the rest.
_PLAIN = re.compile(r" *([A-Za-z_]\w*) *(=|<>|!=|<=|>=|<|>) *(\d{1,18}) *", re.ASCII)
SIGNS: dict[str, Operator] = {**{sign: sign for sign in _COMPARE}, "<>": "!="}


class _Where(Dialect):
    """Standard SQL; names may be quoted with backticks too."""

    class Tokenizer(BaseTokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]


# A word of the language may mean something else than a column of that name.
WORDS = frozenset({*_Where.Tokenizer.KEYWORDS, *Parser.NO_PAREN_FUNCTION_PARSERS})


def parse_predicate(text: str) -> Predicate:
    """The predicate a text says; every refusal is an InvalidExpression.

    >>> parse_predicate("price > 2.50 AND kind IN ('a', 'b')")
    """
    plain = _plain(text)
    if plain is not None:
        return plain
    node = _parse(text)
    try:
        return predicate_of(node)
    except NotLiteral as error:
        raise _refusal(error.node, error.reason) from None
    except RecursionError:
        raise _too_deep() from None


def _plain(text: object) -> Predicate | None:
    """A column compared with a whole number, without the parser; None for all else."""
    found = _PLAIN.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[1].upper() in WORDS:
        return None
    return Compare(Column((found[1],)), SIGNS[found[2]], int(found[3]))


def parse_known_part(text: str) -> Predicate | None:
    """What a predicate can say of a condition in any SQL: it holds wherever the condition does."""
    try:
        parts = conjuncts(text)
    except InvalidExpression:
        return None
    known = tuple(found for part in parts if (found := _known(part)) is not None)
    return And(known) if known else None


def conjuncts(text: str) -> list[exp.Expr]:
    """The trees that AND joins; an InvalidExpression if the text cannot be read."""
    return list(_conjuncts(_parse(text)))


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    for part in _operands(_bare(node), exp.And):
        if isinstance(_bare(part), exp.And):
            yield from _conjuncts(part)
        else:
            yield part


def _known(node: exp.Expr) -> Predicate | None:
    try:
        found = predicate_of(node)
    except (InvalidExpression, NotLiteral, RecursionError):
        return None
    # Engines differ in how a pattern escapes its signs.
    return None if node.find(exp.Like) else found


def _parse(text: str) -> exp.Expr:
    dialect = _Where()
    try:
        words = dialect.tokenize(text)
        if _depth(words) > _DEEPEST:
            raise _too_deep()
        parsed = dialect.parser().parse_into(exp.Condition, words, text)
    except ParseError as error:
        raise _unreadable(error) from None
    except RecursionError:
        raise _too_deep() from None
    except (SqlglotError, *_STUMBLES):
        raise InvalidExpression(
            "the predicate cannot be read",
            hint="check that every quote is closed and X'…' holds hex digits",
        ) from None
    found = [node for node in parsed if isinstance(node, exp.Expr)]
    if len(found) != 1:
        raise InvalidExpression(
            "the predicate is empty" if not found else "there is more than one predicate",
            hint=f"write one condition without ';': {_SUPPORTED}",
        )
    return found[0]


def _depth(words: list[Token]) -> int:
    """How deep brackets and prefix operators nest, at most."""
    deepest = brackets = prefixes = 0
    for word in words:
        if word.token_type in _PREFIXES:
            prefixes += 1
        elif word.token_type in _OPENING:
            brackets += 1
        else:
            prefixes = 0
            brackets -= word.token_type in _CLOSING
        deepest = max(deepest, brackets + prefixes)
    return deepest


def predicate_of(node: exp.Expr) -> Predicate:
    """The predicate of a tree; raises InvalidExpression or NotLiteral."""
    if node.args.get("negate"):
        # Some versions of the parser mark NOT LIKE on the node, others wrap it.
        node.set("negate", None)
        return Not(predicate_of(node))
    match node:
        case exp.Paren():
            return predicate_of(node.this)
        case exp.And():
            return And(tuple(predicate_of(p) for p in _operands(node, exp.And)))
        case exp.Or():
            return Or(tuple(predicate_of(p) for p in _operands(node, exp.Or)))
        case exp.Not():
            return Not(predicate_of(node.this))
        case exp.Boolean():
            return Constant(bool(node.this))
        case exp.Null():
            return Constant(None)
        case exp.Column() | exp.Dot():
            return Compare(_column(node), "=", True)
        case _:
            return _test(node)


def _operands(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The parts of `a AND b AND c …`: the parser nests them, as deep as there are parts."""
    waiting, parts = [node], []
    while waiting:
        part = waiting.pop()
        if type(part) is kind:
            waiting += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def _test(node: exp.Expr) -> Predicate:
    match node:
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _compare(node, OPERATORS[type(node)])
        case exp.NullSafeEQ():
            return _null_safe(node)
        case exp.NullSafeNEQ():
            return Not(_null_safe(node))
        case exp.In():
            return _in(node)
        case exp.Between():
            _only(node, "this", "low", "high")
            column = _column(node.this)
            low, high = read_literal(node.args["low"]), read_literal(node.args["high"])
            return And((_against(column, ">=", low), _against(column, "<=", high)))
        case exp.Like() | exp.Escape():
            return _like(node)
        case exp.Is():
            return _is(node)
        case _:
            raise _refusal(node)


def _compare(node: exp.Expr, sign: Operator) -> Predicate:
    _only(node, "this", "expression")
    left, right = _bare(node.this), _bare(node.expression)
    if _is_column(left) and _is_column(right):
        raise _refusal(right, "two columns cannot be compared with each other")
    if _is_column(left):
        return _against(_column(left), sign, read_literal(right))
    if _is_column(right):
        return _against(_column(right), FLIPPED[sign], read_literal(left))
    return _constant(node, sign, read_literal(left), read_literal(right))


def _against(column: Column, sign: Operator, literal: Stored | None) -> Predicate:
    # A comparison with NULL is NULL, as is `column IN (NULL)`; the column's name is still checked.
    return In(column, (), has_null=True) if literal is None else Compare(column, sign, literal)


def _constant(
    node: exp.Expr, sign: Operator, left: Stored | None, right: Stored | None
) -> Predicate:
    """`1 = 1`, which generated SQL is full of."""
    if left is None or right is None:
        return Constant(None)
    numbers = all(type(v) in (int, Decimal) for v in (left, right))
    if not numbers and (type(left) is not type(right) or isinstance(left, float | TypedText)):
        raise _refusal(node, "these two literals cannot be compared")
    return Constant(_COMPARE[sign](left, right))


def _null_safe(node: exp.Expr) -> Predicate:
    """Equal, where NULL equals NULL: never NULL itself."""
    _only(node, "this", "expression")
    left, right = _bare(node.this), _bare(node.expression)
    if not _is_column(left):
        left, right = right, left
    column, literal = _column(left), read_literal(right)
    if literal is None:
        return IsNull(column)
    return And((Not(IsNull(column)), Compare(column, "=", literal)))


def _in(node: exp.Expr) -> Predicate:
    _only(node, "this", "expressions")
    column = _column(node.this)
    listed = [read_literal(item) for item in node.expressions]
    if not listed:
        raise _refusal(node, "an IN list needs at least one value")
    values = tuple(value for value in listed if value is not None)
    return In(column, values, has_null=len(values) < len(listed))


def _like(node: exp.Expr) -> Predicate:
    _only(node, "this", "expression")
    escape = "\\"
    if isinstance(node, exp.Escape):
        given = read_literal(node.expression)
        if type(given) is not str or len(given) != 1 or not isinstance(node.this, exp.Like):
            raise _refusal(node, "ESCAPE needs LIKE and one character")
        node, escape = node.this, given
        if node.args.get("negate"):
            node.set("negate", None)
            return Not(_like_escaped(node, escape))
    return _like_escaped(node, escape)


def _like_escaped(node: exp.Expr, escape: str) -> Predicate:
    _only(node, "this", "expression")
    column, pattern = _column(node.this), read_literal(node.expression)
    if pattern is None:
        return In(column, (), has_null=True)
    if type(pattern) is not str:
        raise _refusal(node, "LIKE needs a pattern in single quotes")
    return Like(column, pattern if escape == "\\" else _with_backslashes(pattern, escape))


def _with_backslashes(pattern: str, escape: str) -> str:
    written, at = [], 0
    while at < len(pattern):
        escaped = pattern[at] == escape and at + 1 < len(pattern)
        at += escaped
        plain = escaped or pattern[at] == "\\"
        written.append(f"\\{pattern[at]}" if plain else pattern[at])
        at += 1
    return "".join(written)


def _is(node: exp.Expr) -> Predicate:
    _only(node, "this", "expression")
    column = _column(node.this)
    match node.expression:
        case exp.Null():
            return IsNull(column)
        case exp.Boolean() as answer:
            return And((Not(IsNull(column)), Compare(column, "=", bool(answer.this))))
        case _:
            raise _refusal(node, "IS needs NULL, TRUE or FALSE")


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column | exp.Dot)


def _column(node: exp.Expr) -> Column:
    node, names = _bare(node), []
    while isinstance(node, exp.Dot):
        names.append(node.expression)
        node = node.this
    if not isinstance(node, exp.Column) or node.args.get("join_mark"):
        raise _refusal(node, "" if _is_known_to_fail(node) else "a column is expected")
    parts = [*node.parts, *reversed(names)]
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise _refusal(node, "this is no name of a column")
    return Column(tuple(part.name for part in parts))


def _is_known_to_fail(node: exp.Expr) -> bool:
    return isinstance(node, exp.Func | exp.Query | exp.Subquery)


def _only(node: exp.Expr, *expected: str) -> None:
    """Refuse a node that says more than is understood here."""
    if any(value and key not in expected for key, value in node.args.items()):
        raise _refusal(node)


def _refusal(node: exp.Expr, reason: str = "") -> InvalidExpression:
    where = _position(node)
    place = f" at line {where[0]}, column {where[1]}" if where else ""
    context = {"line": where[0], "character": where[1]} if where else {}
    reason = reason or f"{_named(node)} is not supported in a predicate"
    return InvalidExpression(f"{reason}{place}", hint=_SUPPORTED, **context)


def _named(node: exp.Expr) -> str:
    match node:
        case exp.Anonymous():
            return f"the function {node.name[:40]}"
        case exp.Query() | exp.Subquery() | exp.Exists():
            return "a subquery"
        case exp.In():
            return "IN with anything but a list of literals"
        case exp.Column() | exp.Dot():
            return "a column in this place"
        case exp.Placeholder() | exp.Parameter():
            return "a parameter"
        case exp.Literal():
            return "a literal alone"
        case exp.Func():
            return f"the function {node.sql_name()}"
        case _:
            return node.key.upper()


def _position(node: exp.Expr) -> tuple[int, int] | None:
    """Line and column of the first name or literal inside; the parser keeps no others."""
    marks = [part.meta for part in node.walk() if "line" in part.meta]
    if not marks:
        return None
    first = min(marks, key=lambda mark: int(mark["start"]))
    return first["line"], max(1, first["col"] - first["end"] + first["start"])


def _unreadable(error: ParseError) -> InvalidExpression:
    first = error.errors[0] if error.errors else {}
    line, last, near = first.get("line"), first.get("col"), str(first.get("highlight") or "")
    if line is None or last is None:
        return InvalidExpression("the predicate cannot be parsed", hint=_SUPPORTED)
    column = max(1, last - len(near) + 1)
    return InvalidExpression(
        f"the predicate cannot be parsed at line {line}, column {column}, near {near[:40]!r}",
        hint=_SUPPORTED,
        line=line,
        character=column,
    )


def _too_deep() -> InvalidExpression:
    return InvalidExpression(
        "the predicate is nested too deeply", hint="join conditions with AND and OR, or use IN"
    )
