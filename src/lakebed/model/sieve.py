"""Conditions with arithmetic over whole numbers, as values: what a predicate cannot say.

Only what every engine answers alike is bound: sums that might not fit are for the SQL engine.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal as Choice

from lakebed.model.binding import bind
from lakebed.model.errors import InvalidExpression
from lakebed.model.expressions import TRUE, Column, Operator, Predicate
from lakebed.model.schema import Schema
from lakebed.model.types import INTEGERS, Primitive

Sign = Choice["+", "-", "*", "%"]
_WIDTHS = (32, 64)  # shorter ones widen by rules of their own


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`bits` is how wide the result is; 0 until it is bound. The right side of % is a literal."""

    sign: Sign
    left: "Term"
    right: "Term"
    bits: int = 0


Term = Column | int | Arithmetic


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Term
    operator: Operator
    right: Term


@dataclass(frozen=True, slots=True)
class Sieve:
    """Holds for the rows for which the predicate and all of the comparisons are TRUE."""

    comparisons: tuple[Comparison, ...]
    predicate: Predicate = TRUE

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that the comparisons look at, each once."""
        found = (
            name for c in self.comparisons for side in (c.left, c.right) for name in _names(side)
        )
        return tuple(dict.fromkeys(found))

    def bound(self, schema: Schema) -> "Sieve | None":
        """None when a column is none of this schema, or no whole number."""
        try:
            predicate = bind(self.predicate, schema)
        except InvalidExpression:
            return None
        comparisons = []
        for comparison in self.comparisons:
            left, right = _bound(comparison.left, schema), _bound(comparison.right, schema)
            if left is None or right is None:
                return None
            comparisons.append(replace(comparison, left=left, right=right))
        return Sieve(tuple(comparisons), predicate)


def _names(term: Term) -> Iterator[str]:
    match term:
        case Column(path):
            yield path[0]
        case Arithmetic(_, left, right):
            yield from _names(left)
            yield from _names(right)
        case int():
            return


def _bound(term: Term, schema: Schema) -> Term | None:
    match term:
        case Column(path):
            field = schema.find(path)
            if field is None or not isinstance(field.type, Primitive):
                return None
            known = INTEGERS.get(field.type.name) in _WIDTHS
            return Column((field.name,), field.id, field.type) if known else None
        case Arithmetic(_, left, right):
            ours, theirs = _bound(left, schema), _bound(right, schema)
            if ours is None or theirs is None:
                return None
            return replace(term, left=ours, right=theirs, bits=max(_bits(ours), _bits(theirs)))
        case int():
            return term


def _bits(term: Term) -> int:
    match term:
        case Column(_, _, Primitive(name)):
            return INTEGERS[name]
        case Arithmetic(bits=bits):
            return bits
        case _:
            return _WIDTHS[0]
