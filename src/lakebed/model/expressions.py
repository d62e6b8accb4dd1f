"""Predicates as values. Text is parsed in `sql`; below it only these travel.

An *unbound* predicate names columns by path and holds literals as written; `binding.bind` turns
it into a *bound* one: columns carry field id and type, literals are in the column's stored form.
NULL follows SQL's three-valued logic; NaN equals NaN and is greater than every other number.
"""

from dataclasses import dataclass
from typing import Literal as Choice
from typing import Self

from lakebed.model.ids import FieldId
from lakebed.model.types import Scalar, Stored

Operator = Choice["=", "!=", "<", "<=", ">", ">="]
FLIPPED: dict[Operator, Operator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
NEGATED: dict[Operator, Operator] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}


class TypedText(str):
    """A literal written with its type, as in DATE '2024-01-31'; only unbound predicates hold one.

    It is text so that the literals of bound predicates need no type of their own.
    """

    __slots__ = ("kind",)
    kind: Scalar

    def __new__(cls, text: str, kind: Scalar) -> Self:
        made = super().__new__(cls, text)
        made.kind = kind
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedText) and self.kind == other.kind and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((str(self), self.kind))


@dataclass(frozen=True, slots=True)
class Column:
    """A column by path; bound once `field_id` is set. `type` stays None for a nested column."""

    path: tuple[str, ...]
    field_id: FieldId | None = None
    type: Scalar | None = None

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE or NULL (None) for every row."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Always:
    """`value` wherever the column is not NULL, else NULL: what `int_column < 2.5e30` becomes."""

    column: Column
    value: bool


@dataclass(frozen=True, slots=True)
class Compare:
    column: Column
    operator: Operator
    value: Stored


@dataclass(frozen=True, slots=True)
class In:
    """`values` without NULL; `has_null` says that NULL was listed too."""

    column: Column
    values: tuple[Stored, ...]
    has_null: bool = False


@dataclass(frozen=True, slots=True)
class Like:
    """SQL LIKE: % any text, _ one character, backslash escapes."""

    column: Column
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """A column of any type, nested ones included."""

    column: Column


@dataclass(frozen=True, slots=True)
class Not:
    operand: "Predicate"


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple["Predicate", ...]


Predicate = Constant | Always | Compare | In | Like | IsNull | Not | And | Or
TRUE = Constant(True)


def like_prefix(pattern: str) -> tuple[str, bool]:
    """The literal text a LIKE pattern begins with, and whether the pattern is only `prefix%`."""
    prefix: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char in "%_":
            return "".join(prefix), pattern[at:] == "%"
        if char == "\\" and at + 1 < len(pattern):
            at += 1
            char = pattern[at]
        prefix.append(char)
        at += 1
    return "".join(prefix), False


def columns(predicate: Predicate) -> set[Column]:
    """Every column a predicate looks at."""
    match predicate:
        case Constant():
            return set()
        case Not(operand):
            return columns(operand)
        case And(operands) | Or(operands):
            return set().union(*(columns(p) for p in operands))
        case _:
            return {predicate.column}
