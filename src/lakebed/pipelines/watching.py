"""How far Spark is with each step under way: tasks, rows and bytes, told every second."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakebed.engines.spark.session import is_connect
from lakebed.model.runs import StepWork
from lakebed.pipelines.context import Context
from lakebed.pipelines.progress import Listener, Progressed

_EVERY_S = 1.0
_CAUGHT_UP_MS = 2_000  # Spark counts what its tasks did behind them
_UNDER_WAY = ("ACTIVE", "PENDING")
_GONE = (PySparkException, Py4JError, ConnectionError, AttributeError)


@dataclass(frozen=True, slots=True)
class _Stage:
    is_active: bool
    tasks: int
    done: int
    work: StepWork


class _Client(Protocol):
    """A session of Spark Connect."""

    def registerProgressHandler(self, handler: Any) -> None: ...  # noqa: N802 - Spark's name
    def removeProgressHandler(self, handler: Any) -> None: ...  # noqa: N802 - as above


class Watcher:
    """While its block lasts. Spark Connect tells of all steps together, and no rows."""

    def __init__(self, context: Context, listen: Listener) -> None:
        self._context = context
        self._listen = listen
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lakebed-watch", daemon=True)
        self._under_way: dict[str, str] = {}  # table: the tag of its jobs
        self._finished: dict[int, _Stage] = {}
        self._client: _Client | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        if self._client is not None:
            self._client.removeProgressHandler(self._hear)

    @contextmanager
    def step(self, table: str) -> Iterator[None]:
        """Jobs that this thread starts meanwhile are the step's."""
        tag = self._tag(table)
        session = self._context.session
        marked = not is_connect(session)
        if marked:
            session.sparkContext.addJobTag(tag)
        self._under_way[table] = tag
        try:
            yield
        finally:
            del self._under_way[table]
            if marked:
                with suppress(*_GONE):
                    session.sparkContext.removeJobTag(tag)

    def work_of(self, table: str) -> StepWork | None:
        """All that was read and written for a step that has ended; None where nobody tells."""
        session = self._context.session
        if is_connect(session):
            return None
        with suppress(*_GONE):
            bus = session.sparkContext._jsc.sc().listenerBus()  # noqa: SLF001 - no public way
            bus.waitUntilEmpty(_CAUGHT_UP_MS)
            return self._progress(session, table, self._tag(table)).work
        return None

    def _tag(self, table: str) -> str:
        return f"{self._context.tag}-{table}".replace(",", "-")

    def _watch(self) -> None:
        last: dict[str, Progressed] = {}
        while not self._done.wait(_EVERY_S):
            session = self._context.started
            if session is None:
                continue
            if is_connect(session):
                self._follow(session)
                return
            for table, tag in list(self._under_way.items()):
                try:
                    now = self._progress(session, table, tag)
                except _GONE:
                    return  # Spark has gone: the steps themselves will tell
                if now != last.get(table):
                    self._listen(now)
                last[table] = now

    def _progress(self, session: SparkSession, table: str, tag: str) -> Progressed:
        # What it has read and written it tells nowhere else.
        spark: Any = session.sparkContext._jsc.sc()  # noqa: SLF001 - no public way
        tracker, store = spark.statusTracker(), spark.statusStore()
        stages: dict[int, _Stage] = {}
        for job in tracker.getJobIdsForTag(tag):
            info = tracker.getJobInfo(job)
            for number in list(info.get().stageIds()) if info.isDefined() else ():
                found = self._finished.get(number) or _stage(store, number)
                if found is not None:
                    stages[number] = found
                    if not found.is_active:
                        self._finished[number] = found
        return _summed(table, stages.values())

    def _follow(self, session: Any) -> None:
        self._client = session
        session.registerProgressHandler(self._hear)

    def _hear(self, stages: Sequence[Any] | None = None, **_: object) -> None:
        """What the server of Spark Connect tells of one query."""
        active = [s for s in stages or () if not s.done]
        self._listen(
            Progressed(
                None,
                len(active),
                sum(s.num_completed_tasks for s in active),
                sum(s.num_tasks for s in active),
                StepWork(bytes_read=sum(s.num_bytes_read for s in stages or ())),
            )
        )


def _stage(store: Any, number: int) -> _Stage | None:
    """None when Spark has forgotten it: it keeps a thousand stages, or what it is told to."""
    try:
        data = store.lastStageAttempt(number)
    except Py4JJavaError:
        return None
    return _Stage(
        data.status().toString() in _UNDER_WAY,
        data.numTasks(),
        data.numCompleteTasks(),
        StepWork(data.inputRecords(), data.inputBytes(), data.outputRecords(), data.outputBytes()),
    )


def _summed(table: str, stages: Iterable[_Stage]) -> Progressed:
    """Tasks of the stages under way; rows and bytes of all there were."""
    listed = list(stages)
    active = [s for s in listed if s.is_active]
    work = StepWork(
        sum(s.work.rows_read for s in listed),
        sum(s.work.bytes_read for s in listed),
        sum(s.work.rows_written for s in listed),
        sum(s.work.bytes_written for s in listed),
    )
    return Progressed(
        table, len(active), sum(s.done for s in active), sum(s.tasks for s in active), work
    )
