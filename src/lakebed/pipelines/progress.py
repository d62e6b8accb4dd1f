"""What a run tells while it goes on; who wants to see it gives a listener."""

from collections.abc import Callable
from dataclasses import dataclass

from lakebed.model.runs import Failure, Run, StepReport


@dataclass(frozen=True, slots=True)
class RunBegan:
    run: Run
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepBegan:
    table: str
    how: str


@dataclass(frozen=True, slots=True)
class StepEnded:
    report: StepReport


@dataclass(frozen=True, slots=True)
class RunEnded:
    run: Run
    failure: Failure | None = None


Event = RunBegan | StepBegan | StepEnded | RunEnded
Listener = Callable[[Event], None]


def silent(event: Event) -> None:
    """Nobody listens."""
    del event
