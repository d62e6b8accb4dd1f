"""What the condition of a join says of one side alone."""

from dataclasses import replace

from lakebed.model.expressions import And, Column, Compare, In, IsNull, Not, Or, Predicate
from lakebed.rowops.condition import Condition


def of_alias(on: Condition, alias: str) -> Condition:
    """The parts of the condition that look at columns of this alias only, without the alias."""
    if on.predicate is None:
        return on
    parts = on.predicate.operands if isinstance(on.predicate, And) else (on.predicate,)
    ours = tuple(p for part in parts if (p := _stripped(part, alias)) is not None)
    return replace(on, predicate=And(ours) if ours else None, is_exact=False)


def _stripped(predicate: Predicate, alias: str) -> Predicate | None:
    match predicate:
        case Not(operand):
            inner = _stripped(operand, alias)
            return None if inner is None else Not(inner)
        case And(operands) | Or(operands):
            below = [_stripped(p, alias) for p in operands]
            kept = tuple(p for p in below if p is not None)
            return type(predicate)(kept) if len(kept) == len(operands) else None
        case Compare() | In() | IsNull():
            column = _column(predicate.column, alias)
            return None if column is None else replace(predicate, column=column)
        case _:
            return None


def _column(column: Column, alias: str) -> Column | None:
    top, *rest = column.path
    return Column(tuple(rest)) if rest and top.casefold() == alias.casefold() else None
