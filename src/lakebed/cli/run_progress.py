"""How a run is shown while it goes on: lines for people, JSON lines for programs."""

import dataclasses
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakebed.cli.describe import run_record
from lakebed.cli.output import count_of, one_line, say, to_json, write_bytes

if TYPE_CHECKING:
    from lakebed.model.runs import Run, StepReport, StepWork
    from lakebed.pipelines.progress import Event, Listener, Progressed


@contextmanager
def listener_for(*, as_json: bool) -> Iterator["Listener"]:
    if as_json:
        yield _to_json
        return
    live = _Live(sys.stderr.isatty())
    try:
        yield live.listen
    finally:
        live.clear()


def _to_json(event: "Event") -> None:
    from lakebed.pipelines import progress

    match event:
        case progress.RunBegan(run, steps):
            plain = {"event": "run_began", "run": run.id, "pipeline": run.pipeline, "steps": steps}
        case progress.RunBeganAgain(reason):
            plain = {"event": "run_began_again", "reason": reason}
        case progress.StepBegan(table, how):
            plain = {"event": "step_began", "table": table, "how": how}
        case progress.Progressed():
            told = dataclasses.asdict(event)
            plain = {"event": "progressed", **told.pop("work"), **told}
        case progress.StepEnded(report):
            plain = {"event": "step_ended", **dataclasses.asdict(report)}
        case progress.RunEnded(run):
            plain = {"event": "run_ended", **run_record(run)}
    write_bytes(to_json(plain).encode() + b"\n")


class _Live:
    """On a terminal the steps under way stand in the last line."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal
        self._under_way: dict[str, str] = {}  # how far each step is
        self._of_all = ""

    def listen(self, event: "Event") -> None:
        from lakebed.pipelines import progress

        self.clear()
        match event:
            case progress.RunBegan(run, steps):
                say(f"run {run.id} of {run.pipeline}: {count_of(len(steps), 'step')}")
            case progress.RunBeganAgain(reason):
                self._under_way.clear()
                say(f"beginning again: {reason}")
            case progress.StepBegan(table, how):
                self._under_way[table] = ""
                if not self._terminal:
                    say(f"{table}: began" + ("" if how == "incremental" else f" ({how})"))
            case progress.Progressed(table):
                if table is None:
                    self._of_all = how_far(event)
                elif table in self._under_way:
                    self._under_way[table] = how_far(event)
            case progress.StepEnded(report):
                self._under_way.pop(report.table, None)
                say(step_line(report))
            case progress.RunEnded(run):
                self._under_way.clear()
                say(_summary(run))
        self._show()

    def clear(self) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def _show(self) -> None:
        if self._terminal and self._under_way:
            said = ", ".join(
                f"{t}{f' ({far})' if far else ''}" for t, far in self._under_way.items()
            )
            line = f"… {said}{f' ({self._of_all})' if self._of_all else ''}"
            sys.stderr.write(line[: shutil.get_terminal_size().columns - 1])
            sys.stderr.flush()


def how_far(event: "Progressed") -> str:
    """`3/8 tasks of 2 stages, 1,000 rows (2.5 MB) read, …`; what there is none of is left out."""
    parts = []
    if event.tasks:
        parts.append(f"{event.done}/{event.tasks} tasks of {count_of(event.stages, 'stage')}")
    return ", ".join([*parts, *worked(event.work)])


def worked(work: "StepWork") -> list[str]:
    """`1,000 rows (2.5 MB) read`, and written."""
    parts = []
    for rows, size, what in (
        (work.rows_read, work.bytes_read, "read"),
        (work.rows_written, work.bytes_written, "written"),
    ):
        if rows:
            parts.append(f"{count_of(rows, 'row')} ({size / 1e6:,.1f} MB) {what}")
        elif size:
            parts.append(f"{size / 1e6:,.1f} MB {what}")
    return parts


def step_line(report: "StepReport") -> str:
    if report.status == "unchanged":
        return f"{report.table}: nothing new"
    seconds = f"{report.duration_ms / 1000:.1f} s"
    if report.status != "done":
        return f"{report.table}: {report.status} after {seconds}"
    parts = [count_of(report.rows or 0, "row")]
    if report.dropped:
        parts.append(f"{report.dropped:,} dropped")
    bad = [e for e in report.expectations if not e.passed and e.action == "warn"]
    parts += [one_line(f"warning: {e.text}: {e.detail or f'{e.rows:,} rows'}") for e in bad]
    return f"{report.table}: {', '.join(parts)}, {seconds}"


def _summary(run: "Run") -> str:
    took = ((run.finished_ms or run.started_ms) - run.started_ms) / 1000
    if run.status == "succeeded":
        wrote = ", ".join(f"{t} version {v}" for t, v in run.report.written.items())
        return f"run {run.id} succeeded in {took:.1f} s: {wrote}"
    if run.status == "unchanged":
        return f"run {run.id}: nothing new, nothing changed"
    return f"run {run.id} {run.status} after {took:.1f} s: no table was changed"
