"""A WHERE clause with arithmetic over whole numbers becomes a sieve; all else is for the engine."""

import re

from sqlglot import exp

from lakebed.model.errors import InvalidExpression
from lakebed.model.expressions import And, Column, Compare, In, IsNull, Not, Or, Predicate
from lakebed.model.sieve import Arithmetic, Comparison, Sieve, Sign, Term
from lakebed.sql.literals import NotLiteral, read_literal
from lakebed.sql.predicate import OPERATORS, SIGNS, WORDS, conjuncts, predicate_of

# The engine takes such literals for as wide as the column beside them.
_NARROW = 2**31
_EXACT = 2**24  # what the shortest float holds
_SIGNS: dict[type[exp.Expr], Sign] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Mod: "%"}
_DEEPEST = 20
# `id % 10 = 0`, without the parser.
_PLAIN = re.compile(
    r" *([A-Za-z_]\w*) *% *([1-9]\d{0,8}) *(=|<>|!=|<=|>=|<|>) *(\d{1,9}) *", re.ASCII
)


class _Other(Exception):
    """Something that is no arithmetic over whole numbers."""


def plain_sieve(text: object) -> Sieve | None:
    """The remainder of a column compared with a whole number; None for all else."""
    found = _PLAIN.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[1].upper() in WORDS:
        return None
    left = Arithmetic("%", Column((found[1],)), int(found[2]))
    return Sieve((Comparison(left, SIGNS[found[3]], int(found[4])),))


def parse_sieve(text: str) -> Sieve | None:
    """None when the text says anything that only the engine understands."""
    comparisons: list[Comparison] = []
    predicates: list[Predicate] = []
    try:
        for part in conjuncts(text):
            known = _predicate(part)
            if known is None:
                comparisons.append(_comparison(part))
            else:
                predicates.append(known)
    except (InvalidExpression, NotLiteral, RecursionError, _Other):
        return None
    return Sieve(tuple(comparisons), And(tuple(predicates))) if comparisons else None


def _predicate(node: exp.Expr) -> Predicate | None:
    try:
        found = predicate_of(node)
    except (InvalidExpression, NotLiteral):
        return None
    if not _is_sure(found):
        raise _Other
    return found


def _is_sure(predicate: Predicate) -> bool:
    """Does it compare with whole numbers only, which every type of number holds as they are?"""
    match predicate:
        case Not(operand):
            return _is_sure(operand)
        case And(operands) | Or(operands):
            return all(map(_is_sure, operands))
        case Compare(_, _, value):
            return type(value) is int and abs(value) < _EXACT
        case In(_, values):
            return all(type(value) is int and abs(value) < _EXACT for value in values)
        case IsNull():
            return True
        case _:
            return False


def _comparison(node: exp.Expr) -> Comparison:
    operator = OPERATORS.get(type(node))
    if operator is None or set(node.args) - {"this", "expression"}:
        raise _Other
    left, right = _term(node.this), _term(node.expression)
    if isinstance(left, int) and isinstance(right, int):
        raise _Other
    return Comparison(left, operator, right)


def _term(node: exp.Expr, depth: int = 0) -> Term:
    if depth > _DEEPEST:
        raise _Other
    if isinstance(node, exp.Paren):
        return _term(node.this, depth + 1)
    if isinstance(node, exp.Column):
        if len(node.parts) > 1 or not isinstance(node.this, exp.Identifier):
            raise _Other
        return Column((node.this.name,))
    if type(node) not in _SIGNS:
        return _literal(node)
    left, right = _term(node.this, depth + 1), _term(node.expression, depth + 1)
    if isinstance(left, int) and isinstance(right, int):
        raise _Other  # how wide that is, the engine knows
    sign = _SIGNS[type(node)]
    if sign == "%" and (not isinstance(right, int) or right in (0, -1)):
        raise _Other
    return Arithmetic(sign, left, right)


def _literal(node: exp.Expr) -> int:
    value = read_literal(node)
    if type(value) is not int or abs(value) >= _NARROW:
        raise _Other
    return value
