"""The graph of steps, told from the names of tables: order, cycles, what comes before and after."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter

from lakebed.model.errors import PipelineInvalid
from lakebed.pipelines.step import Step

_SELECTION = re.compile(r"(?P<before>\+?)(?P<name>[^+]+)(?P<after>\+?)")


@dataclass(frozen=True, slots=True)
class Graph:
    """`steps` in an order in which each comes after those it reads from."""

    steps: tuple[Step, ...]

    def before(self, step: Step) -> tuple[Step, ...]:
        """Steps whose tables it reads."""
        makers = makers_of(self.steps)
        found = (makers[t] for t in step.tables_read if t in makers)
        return tuple({s.table: s for s in found if s is not step}.values())

    def after(self, step: Step) -> tuple[Step, ...]:
        made = set(step.made)
        return tuple(s for s in self.steps if s is not step and made & set(s.tables_read))

    def outside(self) -> tuple[str, ...]:
        """Tables that are read and that no step makes."""
        made = makers_of(self.steps)
        return tuple(dict.fromkeys(t for s in self.steps for t in s.tables_read if t not in made))

    def find(self, name: str) -> Step:
        """By the table it makes, or by the function's name."""
        found = [s for s in self.steps if name in (s.table, s.name)]
        if len(found) == 1:
            return found[0]
        known = [s.table for s in self.steps]
        close = get_close_matches(name, [*known, *(s.name for s in self.steps)], n=1)
        hint = f"did you mean {close[0]}?" if close else f"the steps are: {', '.join(known)}"
        if found:
            hint = f"say which table: {', '.join(s.table for s in found)}"
        raise PipelineInvalid(f"there is no step {name!r}", hint=hint)

    def selected(self, selections: Sequence[str]) -> frozenset[str]:
        """Tables of the steps chosen: `gold.daily`, `gold.daily+` and after, `+gold.daily`."""
        if not selections:
            return frozenset(s.table for s in self.steps)
        chosen: set[str] = set()
        for text in selections:
            match = _SELECTION.fullmatch(text.strip())
            if match is None:
                raise PipelineInvalid(
                    f"{text!r} chooses no step",
                    hint='write "gold.daily", "gold.daily+" or "+gold.daily"',
                )
            step = self.find(match["name"])
            chosen.add(step.table)
            if match["after"]:
                chosen |= self.all_after([step])
            if match["before"]:
                chosen |= _closure([step], self.before)
        return frozenset(chosen)

    def all_after(self, steps: Iterable[Step]) -> set[str]:
        """The tables of these steps and of everything that follows from them."""
        return _closure(steps, self.after)


def make_graph(steps: Sequence[Step]) -> Graph:
    """Refuses two makers of one table and circles."""
    makers: dict[str, Step] = {}
    for step in steps:
        for table in step.made:
            other = makers.get(table)
            shared = other is not None and table in step.quarantines and table in other.quarantines
            if other is not None and other is not step and not shared:
                raise PipelineInvalid(
                    f"two steps make {table}: {other.name} ({other.place}) and {step.name}"
                    f" ({step.place})",
                    hint="give one of them another table, or make them one step",
                )
            makers[table] = step
    if not steps:
        raise PipelineInvalid("the pipeline has no step", hint="put @p.step(…) above a function")
    return Graph(tuple(_ordered(steps)))


def makers_of(steps: Iterable[Step]) -> dict[str, Step]:
    """Every table that is made, with the step that makes it."""
    return {table: step for step in steps for table in reversed(step.made)}


def _ordered(steps: Sequence[Step]) -> list[Step]:
    by_table = {s.table: s for s in steps}
    graph = Graph(tuple(steps))
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for step in steps:
        sorter.add(step.table, *(s.table for s in graph.before(step)))
    try:
        order = list(sorter.static_order())
    except CycleError as error:
        circle = list(reversed(error.args[1]))
        raise PipelineInvalid(
            f"the steps go round in a circle: {' -> '.join(circle)}",
            hint="a step cannot wait for what is made from it: split one of them",
        ) from None
    return [by_table[table] for table in order]


def _closure(steps: Iterable[Step], next_of: Callable[[Step], tuple[Step, ...]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(steps)
    while waiting:
        step = waiting.pop()
        if step.table not in seen:
            seen.add(step.table)
            waiting += next_of(step)
    return seen
