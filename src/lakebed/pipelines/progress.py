"""What a run tells while it goes on; who wants to see it gives a listener."""

from collections.abc import Callable
from dataclasses import dataclass

from lakebed.model.runs import Failure, Run, StepReport, StepWork


@dataclass(frozen=True, slots=True)
class RunBegan:
    run: Run
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunBeganAgain:
    """Somebody else changed an output meanwhile: everything is read anew."""

    reason: str


@dataclass(frozen=True, slots=True)
class StepBegan:
    table: str
    how: str


@dataclass(frozen=True, slots=True)
class StepEnded:
    report: StepReport


@dataclass(frozen=True, slots=True)
class Progressed:
    """What Spark works on now for a step, and what it has read and written for it so far.

    Through Spark Connect: one query of any step, and only bytes read.
    """

    table: str | None
    stages: int
    done: int
    tasks: int
    work: StepWork


@dataclass(frozen=True, slots=True)
class RunEnded:
    run: Run
    failure: Failure | None = None


Event = RunBegan | RunBeganAgain | StepBegan | Progressed | StepEnded | RunEnded
Listener = Callable[[Event], None]


def silent(event: Event) -> None:
    """Nobody listens."""
    del event
