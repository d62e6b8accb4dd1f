"""How far Spark is with the steps under way, told every second."""

import threading
from types import TracebackType
from typing import Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakebed.pipelines.context import Context
from lakebed.pipelines.progress import Listener, Progressed

_EVERY_S = 1.0


class Watcher:
    """While its block lasts; a client of Spark Connect has nothing to ask, and is not watched."""

    def __init__(self, context: Context, listen: Listener) -> None:
        self._context = context
        self._listen = listen
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lakebed-watch", daemon=True)

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

    def _watch(self) -> None:
        last: Progressed | None = None
        while not self._done.wait(_EVERY_S):
            session = self._context.started
            if session is None:
                continue
            try:
                now = _progress(session)
            except (PySparkException, Py4JError):
                return  # no tracker, or Spark has gone: the steps themselves will tell
            if now != last:
                self._listen(now)
            last = now


def _progress(session: SparkSession) -> Progressed:
    tracker = session.sparkContext.statusTracker()
    found = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    stages = [info for info in found if info is not None]
    return Progressed(
        len(stages),
        sum(info.numCompletedTasks for info in stages),
        sum(info.numTasks for info in stages),
    )
