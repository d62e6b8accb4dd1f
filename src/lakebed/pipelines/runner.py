"""Runs a pipeline: steps in order and side by side, then one commit of everything, or none."""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from pyspark.sql import DataFrame, SparkSession

from lakebed.api.active_run import ActiveRun
from lakebed.api.lake import Lake
from lakebed.api.spark import Spark, SparkOptions
from lakebed.model.errors import CommitConflict, LakebedError, TableExists, TableNotFound
from lakebed.model.runs import (
    FAILED,
    INTERRUPTED,
    Cursor,
    Derivation,
    Failure,
    FileMark,
    InputReport,
    Run,
    RunAttachment,
    RunReport,
    StepReport,
)
from lakebed.pipelines.column_lineage import column_lineage
from lakebed.pipelines.context import Context
from lakebed.pipelines.deciding import (
    Prospect,
    marks_of,
    must_run,
    refuse_unknown_tables,
    survey,
    tables_of,
    waits,
)
from lakebed.pipelines.failures import output_moved, step_failed
from lakebed.pipelines.graph import Graph
from lakebed.pipelines.inputs import Changes, Current
from lakebed.pipelines.openlineage import LineageEvents
from lakebed.pipelines.plan import Planned
from lakebed.pipelines.progress import (
    Event,
    Listener,
    RunBegan,
    RunBeganAgain,
    RunEnded,
    StepBegan,
    StepEnded,
)
from lakebed.pipelines.reading import Reading, frame_of, look_at
from lakebed.pipelines.shapes import check_shapes
from lakebed.pipelines.staging import stage
from lakebed.pipelines.step import SESSION
from lakebed.pipelines.watching import Watcher

ATTEMPTS = 3  # when somebody else changes an output meanwhile
_log = logging.getLogger("lakebed.pipelines")


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be run, and how."""

    pipeline: str
    folder: Path
    graph: Graph
    planned: tuple[Planned, ...]
    listen: Listener
    wait_s: float = 0.0
    parallel: int = 4
    author: str | None = None
    check: bool | None = None  # try steps on no rows first; None: those without effects


@dataclass(slots=True)
class _Outcome:
    """What one step adds to the run's end."""

    report: StepReport
    cursors: list[Cursor] = field(default_factory=list)
    marks: list[FileMark] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    derivations: list[Derivation] = field(default_factory=list)


def execute(
    lake: Lake, job: Job, session: SparkSession | None = None, **options: Unpack[SparkOptions]
) -> Run:
    """Run a pipeline; its record, when it succeeded. Otherwise the error, and no table changed."""
    parameters = {k: str(v) for p in job.planned for k, v in p.values.items()}
    began = lake.runs.begin(
        job.pipeline, parameters=parameters, author=job.author, wait_s=job.wait_s
    )
    with began as active:
        events = LineageEvents(job.pipeline, active.run)
        job.listen(RunBegan(active.run, tuple(p.step.table for p in job.planned)))
        events.started()

        def start_spark() -> Spark:
            return lake.spark(session, **options)

        tries = _Tries(job, active, start_spark)
        try:
            attachment = tries.run()
        except BaseException as error:
            run = _failed(lake, active, tries.report(), error)
            job.listen(RunEnded(run, run.report.failure))
            events.failed(run)
            raise
        run = lake.runs.get(active.id)
        events.completed(run, attachment)
    job.listen(RunEnded(run))
    return run


class _Tries:
    """A run whose outputs somebody else changed meanwhile begins again, on the newest versions."""

    def __init__(self, job: Job, active: ActiveRun, start_spark: Callable[[], Spark]) -> None:
        self._job = job
        self._active = active
        self._start_spark = start_spark
        self._work: _Work | None = None

    def run(self) -> RunAttachment:
        for left in reversed(range(ATTEMPTS)):
            self._work = _Work(self._job, self._active, self._start_spark)
            attachment = self._work.run()
            try:
                self._active.finish(
                    attachment, changed=self._work.has_changes(), unmoved=self._work.unmoved()
                )
                return attachment
            except (CommitConflict, TableExists, TableNotFound) as error:
                if not left:
                    raise output_moved(self._job.planned, error, ATTEMPTS) from error
                self._active.begin_again()
                self._job.listen(RunBeganAgain(error.message))
        raise AssertionError("the last attempt returns or raises")

    def report(self) -> RunReport:
        return self._active.run.report if self._work is None else self._work.report()


def _failed(lake: Lake, active: ActiveRun, known: RunReport, error: BaseException) -> Run:
    interrupted = isinstance(error, KeyboardInterrupt)
    report = replace(known, failure=_failure(error))
    active.fail(INTERRUPTED if interrupted else FAILED, report)
    try:
        return lake.runs.get(active.id)
    except LakebedError:  # the database is what failed: what is known is told all the same
        return replace(active.run, status=FAILED, report=report)


def _failure(error: BaseException) -> Failure:
    if isinstance(error, KeyboardInterrupt):
        return Failure("INTERRUPTED", "interrupted")
    if isinstance(error, LakebedError):
        step, place = error.context.get("step"), error.context.get("place")
        return Failure(
            error.code,
            error.message,
            error.hint,
            None if step is None else str(step),
            None if place is None else str(place),
        )
    return Failure("DEFECT", f"{type(error).__name__}: {error}")


class _Work:
    def __init__(self, job: Job, active: ActiveRun, start_spark: Callable[[], Spark]) -> None:
        self._job = job
        self._active = active
        self._outcomes: dict[str, _Outcome] = {}
        self._prospects: dict[str, Prospect] = {}
        names = tables_of(job.planned)
        pinned = active.look(names)
        self._context = Context(active, job.graph, job.folder, pinned, start_spark)
        self._watcher = Watcher(self._context, self._tell)
        self._lock = threading.Lock()

    def run(self) -> RunAttachment:
        refuse_unknown_tables(self._job.planned, self._context.pinned)
        try:
            self._prospects = survey(self._context, self._job.planned)
            self._check()
            with self._watcher:
                self._run_steps()
        except BaseException:
            self._context.stop()
            raise
        outcomes = self._outcomes.values()
        return RunAttachment(
            self._active.id,
            self._job.pipeline,
            self.report(),
            tuple(c for o in outcomes for c in o.cursors),
            tuple(m for o in outcomes for m in o.marks),
            tuple(f for o in outcomes for f in o.forgotten),
            _told_once([d for o in outcomes for d in o.derivations]),
        )

    def _check(self) -> None:
        """What does not go together is told before the first step; a run of nothing asks nobody."""
        if self._job.check is False:
            return
        every = self._job.check is True
        listed = [p for p in self._prospects.values() if p.runs or every]
        if listed:
            check_shapes(self._context, listed, every=every)

    def report(self) -> RunReport:
        ordered = [o.report for p in self._job.planned if (o := self._outcomes.get(p.step.table))]
        return replace(self._active.run.report, steps=tuple(ordered))

    def has_changes(self) -> bool:
        made = {t for p in self._job.planned for t in p.step.made}
        return any(self._active.is_changed(table) for table in made)

    def unmoved(self) -> list[str]:
        """Outputs that nobody else may have changed since this run looked at them.

        Rows are added whatever others do; but what rests on the rows there were, or was read by
        other steps, would be wrong of a table that has moved.
        """
        read = {t for p in self._job.planned for t in p.step.tables_read}
        added = {
            t
            for p in self._job.planned
            for t in p.step.made
            if (p.step.output.mode == "append" and p.how == "incremental")
            or t in p.step.quarantines
        }
        made = {t for p in self._job.planned for t in p.step.made}
        wanted = made - (added - read)
        return [t for t in wanted if t in self._context.pinned and self._active.is_changed(t)]

    def _run_steps(self) -> None:
        """Steps that do not wait for one another go side by side."""
        chosen = {p.step.table for p in self._job.planned}
        waiting = {p.step.table: p for p in self._job.planned}
        needs = {
            p.step.table: {s.table for s in self._job.graph.before(p.step)} & chosen
            for p in self._job.planned
        }
        under_way: dict[Future[None], str] = {}
        with ThreadPoolExecutor(max(1, self._job.parallel), "lakebed-step") as pool:
            try:
                while waiting or under_way:
                    ready = [
                        t
                        for t in waiting
                        if not needs[t] & (waiting.keys() | set(under_way.values()))
                    ]
                    for table in ready:
                        under_way[pool.submit(self._run_step, waiting.pop(table))] = table
                    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                    for future in done:
                        under_way.pop(future)
                        future.result()
            except BaseException:
                self._context.stop()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _run_step(self, planned: Planned) -> None:
        step, started = planned.step, time.monotonic()
        context = self._context
        context.check_open()
        try:
            outcome = self._done(planned, started)
        except Exception as error:  # the user's function may raise anything
            took = round(1000 * (time.monotonic() - started))
            report = StepReport(step.table, "failed", planned.how, took)
            self._keep(step.table, _Outcome(report))
            raise step_failed(step, error) from error
        self._keep(step.table, outcome)

    def _tell(self, event: Event) -> None:
        with self._lock:
            self._job.listen(event)

    def _keep(self, table: str, outcome: _Outcome) -> None:
        with self._lock:
            self._outcomes[table] = outcome
            self._job.listen(StepEnded(outcome.report))

    def _done(self, planned: Planned, started: float) -> _Outcome:
        step, context = planned.step, self._context
        readings = self._prospects[step.table].readings
        if self._prospects[step.table].behind:  # by now it is known what those steps left
            readings = {name: look_at(context, planned, i) for name, i in step.inputs.items()}
        marks = marks_of(planned)
        if not must_run(context, planned, readings, marks):
            inputs = tuple(r.report for r in readings.values())
            took = round(1000 * (time.monotonic() - started))
            report = StepReport(step.table, "unchanged", planned.how, took, inputs=inputs)
            moved = [] if waits(readings) else _cursors(readings, marks, planned)
            return _Outcome(report, moved)
        self._tell(StepBegan(step.table, planned.how))
        context.session  # noqa: B018 - starts Spark where no step has before
        context.enter_thread()
        with self._watcher.step(step.table):
            frames = {n: frame_of(context, planned, r) for n, r in readings.items()}
            given: dict[str, object] = {**frames, **planned.values}
            if step.wants_session:
                given[SESSION] = context.session
            made = step.function(**given)
            staged = stage(context, planned, made)
        report = StepReport(
            step.table,
            "done",
            planned.how,
            round(1000 * (time.monotonic() - started)),
            staged.rows,
            staged.dropped,
            tuple(_counted(context, r) for r in readings.values()),
            staged.expectations,
            self._watcher.work_of(step.table),
        )
        assert isinstance(made, DataFrame)  # checked when it was staged
        return self._ended(planned, _told(readings, frames, made), marks, report)

    def _ended(
        self,
        planned: Planned,
        readings: Mapping[str, Reading],
        marks: list[Cursor],
        report: StepReport,
    ) -> _Outcome:
        step = planned.step
        derived = [r.derivation for r in readings.values() if r.derivation is not None]
        made = [t for t in step.made if self._active.is_changed(t)]
        derivations = list(
            {(t, d.input): replace(d, output=t) for t in made for d in derived}.values()
        )
        if planned.how == "backfill":  # it makes old rows again: new ones are still to be read
            return _Outcome(report, derivations=derivations)
        return _Outcome(
            report,
            _cursors(readings, marks, planned),
            [m for r in readings.values() for m in r.files],
            [step.table] if any(r.forgets for r in readings.values()) else [],
            derivations,
        )


def _told(
    readings: Mapping[str, Reading], frames: Mapping[str, DataFrame], made: DataFrame
) -> dict[str, Reading]:
    """The readings with the columns that the result is made from, where they are known."""
    found = column_lineage(made, frames)
    return {
        name: replace(r, derivation=replace(r.derivation, columns=found.get(name, {})))
        if r.derivation
        else r
        for name, r in readings.items()
    }


def _told_once(derivations: Sequence[Derivation]) -> tuple[Derivation, ...]:
    """Several steps may make one table of the same input: rows that they reject."""
    found: dict[tuple[str, str], Derivation] = {}
    for each in derivations:
        known = found.setdefault((each.output, each.input), each)
        found[each.output, each.input] = replace(known, columns={**each.columns, **known.columns})
    return tuple(found.values())


def _counted(context: Context, reading: Reading) -> InputReport:
    """With the rows of a table; what is no table tells none without being read."""
    given = reading.given
    if not (isinstance(given, Current | Changes) and reading.is_there):
        return reading.report
    after = reading.after if isinstance(given, Changes) else None
    return replace(reading.report, rows=context.run.rows_since(given.table, after))


def _cursors(
    readings: Mapping[str, Reading], marks: list[Cursor], planned: Planned
) -> list[Cursor]:
    if planned.how == "backfill":
        return []
    moved = {r.cursor.input: r.cursor for r in readings.values() if r.cursor is not None}
    return [*moved.values(), *marks]


def default_parallel() -> int:
    return max(1, min(4, os.cpu_count() or 1))
