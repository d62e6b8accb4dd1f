"""What all steps of a run share: the lake at one set of versions, the session, what has changed."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakebed.api.active_run import ActiveRun, PinnedTable
from lakebed.api.spark import Spark
from lakebed.model.errors import PipelineError
from lakebed.pipelines.graph import Graph


@dataclass(slots=True)
class Context:
    run: ActiveRun
    graph: Graph
    folder: Path
    pinned: Mapping[str, PinnedTable]
    start_spark: Callable[[], Spark]
    lock: threading.RLock = field(default_factory=threading.RLock)
    # Several steps may reject rows to one table: one after the other.
    rejecting: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)
    frames: dict[tuple[str, int], DataFrame] = field(default_factory=dict)  # by step and input
    _spark: Spark | None = None
    _numbers: int = 0

    @property
    def spark(self) -> Spark:
        """Started when the first step needs it: a run with nothing to do needs no Java."""
        with self.lock:
            if self._spark is None:
                self._spark = self.start_spark()
            return self._spark

    @property
    def session(self) -> SparkSession:
        return self.spark.session

    @property
    def started(self) -> SparkSession | None:
        """The session, where a step has needed it."""
        return None if self._spark is None else self._spark.session

    def has_table(self, name: str) -> bool:
        """Is it there, or made by this run?"""
        return name in self.pinned or self.run.transaction.has(name)

    def table(self, name: str) -> DataFrame:
        """The whole table as this run sees it; what it has not touched may come by a connector."""
        if self.run.is_changed(name):
            return self.spark.table(name, transaction=self.run.transaction)
        return self.spark.table(name, version=self.pinned[name].version)

    def spool(self, frame: DataFrame) -> DataFrame:
        """The rows of a frame, made once and kept until the run ends, however often they are read.

        A source that gives other rows at every look, or a machine that is lost, changes nothing.
        """
        self.check_open()
        with self.lock:
            self._numbers += 1
            path = self.run.scratch(str(self._numbers))
        frame.write.mode("overwrite").parquet(path)
        named = self.session.read.option("__globPaths__", "false")  # whatever is in the lake's name
        return named.schema(frame.schema).parquet(path)

    def check_open(self) -> None:
        if self.stopped.is_set():
            raise PipelineError("the run was stopped", hint="another step failed first")

    def stop(self) -> None:
        """End the jobs of this run that are under way."""
        self.stopped.set()
        if self._spark is not None:
            try:
                self._spark.session.interruptTag(self.tag)
            except (PySparkException, Py4JError, ConnectionError):
                return  # Spark has ended, and its jobs with it
            except AttributeError:
                return  # a session that knows no tags lets its jobs end by themselves

    def enter_thread(self) -> None:
        """Jobs of this thread belong to the run."""
        if self._spark is not None:
            try:
                self._spark.session.addTag(self.tag)
            except (PySparkException, Py4JError, ConnectionError, AttributeError):
                return  # what comes next will tell

    @property
    def tag(self) -> str:
        return f"lakebed-run-{self.run.id}"
