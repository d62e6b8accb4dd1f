"""What a run is asked to do, and the steps that follow from it. Needs neither Spark nor a lake."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lakebed.model.errors import PipelineInvalid
from lakebed.pipelines.graph import Graph
from lakebed.pipelines.parameters import bind_parameters, refuse_unknown
from lakebed.pipelines.step import Step

How = Literal["incremental", "full refresh", "backfill"]


@dataclass(frozen=True, slots=True)
class Request:
    """What `lakebed run` and `Pipeline.run` take."""

    select: tuple[str, ...] = ()
    full_refresh: tuple[str, ...] = ()
    backfill: str | None = None
    where: str | None = None
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Planned:
    """One step of a run, with the values of its parameters."""

    step: Step
    how: How
    values: Mapping[str, object]
    where: str | None = None  # of a backfill


def make_request(
    select: str | Sequence[str] = (),
    full_refresh: str | Sequence[str] = (),
    backfill: str | None = None,
    where: str | None = None,
    params: Mapping[str, object] | None = None,
) -> Request:
    if (backfill is None) != (where is None):
        raise PipelineInvalid(
            "a backfill needs a step and the rows to make again",
            hint="--backfill STEP --where \"day >= '2026-11-01'\"",
        )
    if backfill is not None and full_refresh:
        raise PipelineInvalid("a run is a backfill or a full refresh", hint="leave one out")
    return Request(_texts(select), _texts(full_refresh), backfill, where, dict(params or {}))


def plan_steps(graph: Graph, request: Request) -> tuple[Planned, ...]:
    """The steps to look at, in order; a backfill touches its own step unless more is chosen."""
    refuse_unknown(request.params, [p for s in graph.steps for p in s.parameters])
    fresh = graph.all_after([graph.find(name) for name in request.full_refresh])
    filled = None if request.backfill is None else graph.find(request.backfill)
    if filled is not None and filled.output.mode == "scd2":
        raise PipelineInvalid(
            f"step {filled.table} keeps a history: a part of it cannot be made again",
            hint=f"--full-refresh {filled.table}",
        )
    if request.select:
        chosen = graph.selected(request.select) | (fresh if not filled else {filled.table})
    elif filled is not None:
        chosen = frozenset({filled.table})
    else:
        chosen = graph.selected(())
    planned = []
    for step in graph.steps:
        if step.table in chosen:
            values = bind_parameters(step.parameters, request.params, step.table)
            planned.append(_planned(step, values, step.table in fresh, step is filled, request))
    return tuple(planned)


def _planned(
    step: Step, values: Mapping[str, object], fresh: bool, filled: bool, request: Request
) -> Planned:
    if filled:
        return Planned(step, "backfill", values, request.where)
    return Planned(step, "full refresh" if fresh else "incremental", values)


def _texts(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
