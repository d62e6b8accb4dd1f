"""A pipeline: steps under one name, from the first declaration to a run."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, Unpack

from pyspark.sql import SparkSession

from lakebed.api.lake import Lake
from lakebed.api.spark import SparkOptions
from lakebed.model.errors import PipelineInvalid
from lakebed.model.names import is_text
from lakebed.model.runs import Run
from lakebed.pipelines.graph import Graph, make_graph
from lakebed.pipelines.plan import Planned, make_request, plan_steps
from lakebed.pipelines.progress import Listener, silent
from lakebed.pipelines.runner import Job, default_parallel, execute
from lakebed.pipelines.step import Step, make_output, make_step

F = TypeVar("F", bound=Callable[..., object])


class Pipeline:
    """Steps are added by decorating functions; names of tables tell how they hang together.

    `folder` is where relative patterns of `files()` begin: that of the file it is made in.
    """

    def __init__(self, name: str, *, folder: str | Path | None = None) -> None:
        given: object = name
        if not isinstance(given, str) or not given.strip() or not is_text(given):
            raise PipelineInvalid(f"{name!r} is no name of a pipeline", hint='Pipeline("sales")')
        self.name = name
        self.folder = Path(folder) if folder is not None else _folder_of_caller()
        self._steps: list[Step] = []

    @property
    def steps(self) -> tuple[Step, ...]:
        """In the order they were declared."""
        return tuple(self._steps)

    def step(
        self,
        table: str,
        *,
        key: str | Sequence[str] | None = None,
        mode: str | None = None,
        op: str | None = None,
        sequence_by: str | None = None,
        partition_by: str | Sequence[str] = (),
        sort_by: str | Sequence[str] = (),
        schema: str | None = None,
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
        vanished: str = "keep",
        name: str | None = None,
    ) -> Callable[[F], F]:
        """Make a table from what a function returns.

        With a `key` rows are merged, without one appended; `mode` says otherwise: replace,
        replace_partitions, scd2. `op` names the column whose `delete` takes a row away,
        `sequence_by` the column by which an older row never replaces a newer one. `vanished` says
        what scd2 does with a key that the result has no more: "keep" it, or "close" its row.
        """
        output = make_output(
            table,
            mode,
            key,
            op=op,
            sequence_by=sequence_by,
            partition_by=partition_by,
            sort_by=sort_by,
            schema=schema,
            properties=properties,
            comment=comment,
            vanished=vanished,
        )

        def add(function: F) -> F:
            self._steps.append(make_step(function, output, name))
            return function

        return add

    def graph(self) -> Graph:
        """The steps in order; refused when they do not go together."""
        return make_graph(self._steps)

    def plan(
        self,
        *,
        select: str | Sequence[str] = (),
        full_refresh: str | Sequence[str] = (),
        backfill: str | None = None,
        where: str | None = None,
        params: Mapping[str, object] | None = None,
    ) -> tuple[Planned, ...]:
        """What run() would look at, in order, with the same arguments; nothing is read."""
        request = make_request(select, full_refresh, backfill, where, params)
        return plan_steps(self.graph(), request)

    def run(
        self,
        lake: Lake,
        *,
        select: str | Sequence[str] = (),
        full_refresh: str | Sequence[str] = (),
        backfill: str | None = None,
        where: str | None = None,
        params: Mapping[str, object] | None = None,
        session: SparkSession | None = None,
        wait_s: float = 0.0,
        parallel: int | None = None,
        author: str | None = None,
        check: bool | None = None,
        listen: Listener | None = None,
        **spark: Unpack[SparkOptions],
    ) -> Run:
        """Run the steps on Spark and commit all their tables together, or none.

        `wait_s`: how long to wait for another run of this pipeline. Steps that only build a query
        are called on empty frames first, so that wrong columns and types are found before anything
        runs; `check=True` does so with every step, False with none. Other options are those of
        `lake.spark()`. Returns the record of the run; a failure is raised.
        """
        graph = self.graph()
        request = make_request(select, full_refresh, backfill, where, params)
        job = Job(
            self.name,
            self.folder,
            graph,
            plan_steps(graph, request),
            listen or silent,
            wait_s,
            parallel or default_parallel(),
            author,
            check,
        )
        return execute(lake, job, session, **spark)


def _folder_of_caller() -> Path:
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame and frame.f_back else None
    named = Path(caller.f_code.co_filename) if caller else None
    return named.resolve().parent if named and named.is_file() else Path.cwd()
