"""Expectations: what the rows of a step must be like, and what happens when they are not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from lakebed.model.errors import PipelineInvalid
from lakebed.model.names import parse_table_name

Action = Literal["fail", "drop", "warn"]
Kind = Literal["condition", "not_null", "unique", "references", "row_count", "freshness"]
F = TypeVar("F", bound=Callable[..., object])
ATTRIBUTE = "__lakebed_expectations__"
WHOLE = ("row_count", "freshness")  # about the rows together: no row can be dropped for it


@dataclass(frozen=True, slots=True)
class Expectation:
    """`columns`, `table`, `least` … are those that its kind needs."""

    kind: Kind
    action: Action
    text: str  # for people, and the condition of kind `condition`
    columns: tuple[str, ...] = ()
    table: str | None = None
    other_columns: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    within_s: float | None = None
    quarantine: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """What is expected, before it is said what happens otherwise."""

    expectation: Expectation


class Expect:
    """`@expect.fail(…)`, `@expect.drop(…)`, `@expect.warn(…)` stand between `@p.step` and `def`."""

    def fail(self, rule: "str | Rule") -> Callable[[F], F]:
        """The run ends without a commit."""
        return _decorator(_expectation(rule, "fail"))

    def warn(self, rule: "str | Rule") -> Callable[[F], F]:
        """It is counted, kept and told."""
        return _decorator(_expectation(rule, "warn"))

    def drop(self, rule: "str | Rule", *, quarantine: str | None = None) -> Callable[[F], F]:
        """Rows that are not so are left out; `quarantine` is the table that gets them."""
        made = _expectation(rule, "drop")
        if made.kind in WHOLE:
            raise PipelineInvalid(
                f"{made.text}: no row can be dropped for it", hint="use expect.fail or expect.warn"
            )
        name = None if quarantine is None else str(parse_table_name(quarantine))
        return _decorator(replace(made, quarantine=name))

    def not_null(self, *columns: str) -> Rule:
        return Rule(_columns("not_null", columns))

    def unique(self, *columns: str) -> Rule:
        """No two rows of the step's result have the same values; of such rows drop keeps one."""
        return Rule(_columns("unique", columns))

    def references(
        self, columns: str | Sequence[str], table: str, other: str | Sequence[str] | None = None
    ) -> Rule:
        """Every value is found in a column of a table, as this run leaves it; NULL needs none."""
        names = _names(columns)
        others = names if other is None else _names(other)
        name = str(parse_table_name(table))
        if len(names) != len(others):
            raise PipelineInvalid("references(): as many columns here as there", hint="name both")
        text = f"references({', '.join(names)} -> {name}({', '.join(others)}))"
        return Rule(Expectation("references", "fail", text, names, name, others))

    def row_count(self, *, least: int | None = None, most: int | None = None) -> Rule:
        """How many rows the step's result has."""
        if least is None and most is None:
            raise PipelineInvalid("row_count() needs a bound", hint="row_count(least=1)")
        text = f"row_count({_bounds(least, most)})"
        return Rule(Expectation("row_count", "fail", text, least=least, most=most))

    def freshness(
        self,
        column: str,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> Rule:
        """The newest value of a time column is not older than so much, at the time of the run."""
        within = seconds + 60 * minutes + 3600 * hours + 86400 * days
        if within <= 0:
            raise PipelineInvalid("freshness() needs a time", hint='freshness("ts", hours=6)')
        text = f"freshness({column} within {within:g} s)"
        return Rule(Expectation("freshness", "fail", text, (column,), within_s=within))


expect = Expect()


def expectations_of(function: Callable[..., object]) -> tuple[Expectation, ...]:
    """Those declared on a function, from top to bottom."""
    return tuple(reversed(getattr(function, ATTRIBUTE, ())))


def _expectation(rule: "str | Rule", action: Action) -> Expectation:
    if isinstance(rule, Rule):
        return replace(rule.expectation, action=action)
    said: object = rule
    if not isinstance(said, str) or not said.strip():
        raise PipelineInvalid(
            f"{rule!r} is no expectation", hint='write a condition: expect.fail("amount >= 0")'
        )
    return Expectation("condition", action, said.strip())


def _decorator(made: Expectation) -> Callable[[F], F]:
    def add(function: F) -> F:
        setattr(function, ATTRIBUTE, (*getattr(function, ATTRIBUTE, ()), made))
        return function

    return add


def _columns(kind: Kind, columns: Sequence[str]) -> Expectation:
    names = _names(columns)
    return Expectation(kind, "fail", f"{kind}({', '.join(names)})", names)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    if not names or not all(names):
        raise PipelineInvalid("an expectation names columns", hint='unique("id")')
    return names


def _bounds(least: int | None, most: int | None) -> str:
    said = [f"least={least}"] if least is not None else []
    return ", ".join(said + ([f"most={most}"] if most is not None else []))
