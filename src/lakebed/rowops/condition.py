"""Which rows: a condition as an engine reads it, and what can be told from it without one."""

from dataclasses import dataclass

from lakebed.model.binding import bind
from lakebed.model.errors import InvalidExpression
from lakebed.model.expressions import And, Predicate
from lakebed.model.schema import Schema
from lakebed.model.sieve import Sieve


@dataclass(frozen=True, slots=True)
class Condition:
    """`predicate` is unbound and holds wherever the text does; exact: it says all of it."""

    text: str
    predicate: Predicate | None
    is_exact: bool
    is_bound: bool = False  # to the schema that it will be used with
    sieve: Sieve | None = None  # says all of it where the schema allows, if no predicate does

    def bound(self, schema: Schema) -> Predicate | None:
        """What leaves files out. Of a text for the engine, as much as the schema can answer."""
        if self.is_bound:
            return self.predicate
        if self.predicate is None or self.is_exact:
            return None if self.predicate is None else bind(self.predicate, schema)
        parts = self.predicate.operands if isinstance(self.predicate, And) else (self.predicate,)
        known = tuple(b for p in parts if (b := _bound(p, schema)) is not None)
        return And(known) if known else None


def _bound(predicate: Predicate, schema: Schema) -> Predicate | None:
    try:
        return bind(predicate, schema)
    except InvalidExpression:
        return None  # the engine says what is wrong with it
