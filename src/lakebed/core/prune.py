"""Which files can hold a matching row, told from statistics and partition values alone. Pure.

Every leaf gives the outcomes that are possible in the file; doubt adds outcomes, never removes one.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from lakebed.core.domains import Domain, domain_of, less
from lakebed.core.plan import Plan
from lakebed.model.expressions import (
    Always,
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
    like_prefix,
)
from lakebed.model.files import DataFile
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.transforms import apply
from lakebed.model.types import Stored


class Outcomes(NamedTuple):
    """What a predicate may come to for the rows of a file."""

    true: bool
    false: bool
    null: bool


def might_match(
    predicate: Predicate, file: DataFile, spec: PartitionSpec | None, schema: Schema
) -> bool:
    """False only if certainly no row of the file makes the bound predicate TRUE."""
    return file.record_count > 0 and _outcomes(predicate, _domains(file, spec, schema)).true


def must_match(
    predicate: Predicate, file: DataFile, spec: PartitionSpec | None, schema: Schema
) -> bool:
    """True only if certainly every row of the file makes the bound predicate TRUE."""
    if file.record_count == 0:
        return False
    return _outcomes(predicate, _domains(file, spec, schema)) == Outcomes(True, False, False)


def narrowed(plan: Plan, predicate: Predicate) -> Plan:
    """The plan without the files in which the bound predicate is TRUE for no row."""
    kept = tuple(
        live
        for live in plan.files
        if might_match(predicate, live.file, plan.specs.get(live.file.spec_id), plan.schema)
    )
    deleted = {f.id: plan.deleted[f.id] for f in kept if f.id in plan.deleted}
    pruned = plan.pruned + len(plan.files) - len(kept)
    return replace(plan, files=kept, pruned=pruned, deleted=deleted)


def _domains(
    file: DataFile, spec: PartitionSpec | None, schema: Schema
) -> Callable[[Column], Domain]:
    """What the file can hold of a column, told once: ranges ask for both of their ends."""
    known: dict[tuple[str, ...], Domain] = {}

    def domain(column: Column) -> Domain:
        found = known.get(column.path)
        if found is None:
            found = known[column.path] = domain_of(column, file, spec, schema)
        return found

    return domain


def _outcomes(predicate: Predicate, domain: Callable[[Column], Domain]) -> Outcomes:
    match predicate:
        case Constant(value):
            return Outcomes(value is True, value is False, value is None)
        case Not(operand):
            inner = _outcomes(operand, domain)
            return Outcomes(inner.false, inner.true, inner.null)
        case And(operands):
            return _all([_outcomes(p, domain) for p in operands])
        case Or(operands):
            every = _all([_swap(_outcomes(p, domain)) for p in operands])
            return _swap(every)
        case _:
            return _leaf(predicate, domain(predicate.column))


def _swap(outcomes: Outcomes) -> Outcomes:
    return Outcomes(outcomes.false, outcomes.true, outcomes.null)


def _all(parts: list[Outcomes]) -> Outcomes:
    return Outcomes(
        true=all(p.true for p in parts),
        false=any(p.false for p in parts),
        null=any(p.null for p in parts) and all(p.true or p.null for p in parts),
    )


def _leaf(leaf: Always | Compare | In | Like | IsNull, domain: Domain) -> Outcomes:
    match leaf:
        case IsNull():
            return Outcomes(domain.nulls, domain.values or domain.nans, False)
        case Always(_, value):
            true, false = _only(value, domain.values or domain.nans)
        case Compare(column, operator, value):
            true, false = _compare(column, operator, value, domain)
        case In(column, values, has_null):
            true, false = _in(column, values, domain)
            if has_null:
                return Outcomes(true, False, domain.nulls or false)
        case Like(_, pattern):
            true, false = _like(pattern, domain)
    return Outcomes(true, false, domain.nulls)


def _only(answer: bool, possible: bool) -> tuple[bool, bool]:
    return possible and answer, possible and not answer


def _compare(
    column: Column, operator: Operator, value: Stored, domain: Domain
) -> tuple[bool, bool]:
    if operator in ("!=", ">=", ">"):
        opposite: Operator = "=" if operator == "!=" else "<" if operator == ">=" else "<="
        true, false = _compare(column, opposite, value, domain)
        return false, true
    if operator == "=":
        return _in(column, (value,), domain)
    if _is_nan(value):
        true, false = _only(True, domain.values)
        nan_true, nan_false = _only(operator == "<=", domain.nans)
    else:
        true, false = _below(domain, value, operator == "<=")
        nan_true, nan_false = _only(False, domain.nans)
    return true or nan_true, false or nan_false


def _below(domain: Domain, value: Stored, or_equal: bool) -> tuple[bool, bool]:
    """Can a value of the domain be less than (or equal to) this one? Can one be not?"""
    if not domain.values:
        return False, False
    low, high = domain.low, domain.high
    if or_equal:
        return low is None or not less(value, low), high is None or less(value, high)
    return low is None or less(low, value), _reaches(domain, value)


def _reaches(domain: Domain, value: Stored) -> bool:
    """Can a value of the domain be this one or a greater one?"""
    if domain.high is None:
        return True
    return less(value, domain.high) or (value == domain.high and not domain.is_open)


def _in(column: Column, values: tuple[Stored, ...], domain: Domain) -> tuple[bool, bool]:
    numbers = [v for v in values if not _is_nan(v)]
    true = domain.values and any(_holds(domain, column, v) for v in numbers)
    single = domain.low is not None and domain.low == domain.high
    false = domain.values and not (single and domain.low in numbers)
    nan_true, nan_false = _only(len(numbers) < len(values), domain.nans)
    return true or nan_true, false or nan_false


def _holds(domain: Domain, column: Column, value: Stored) -> bool:
    if domain.low is not None and less(value, domain.low):
        return False
    kind = column.type
    return _reaches(domain, value) and (
        kind is None or all(apply(t, kind, value) == bucket for t, bucket in domain.buckets)
    )


def _like(pattern: str, domain: Domain) -> tuple[bool, bool]:
    if not domain.values:
        return False, False
    prefix, only_prefix = like_prefix(pattern)
    low, high = str(domain.low or ""), domain.high
    # Text with the prefix begins at the prefix itself and ends before the next prefix.
    true = low[: len(prefix)] <= prefix and _reaches(domain, prefix)
    bounded = low.startswith(prefix) and high is not None and str(high).startswith(prefix)
    known = bounded or (domain.prefix or "").startswith(prefix)
    return true, not (only_prefix and known)


def _is_nan(value: Stored) -> bool:
    return isinstance(value, float) and math.isnan(value)
