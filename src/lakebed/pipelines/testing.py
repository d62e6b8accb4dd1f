"""Testing a pipeline: `run_pipeline(p, inputs={…})` in a lake of its own, on a shared session."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from lakebed.api.lake import Lake
from lakebed.api.open import open as open_lake
from lakebed.api.spark import SparkOptions
from lakebed.model.errors import PipelineInvalid
from lakebed.model.runs import Run
from lakebed.pipelines.inputs import Changes, Current
from lakebed.pipelines.pipeline import Pipeline

Rows = list[dict[str, object]]
_LEAN = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}


class Result(Mapping[str, Rows]):
    """Rows of every table of the run, by name; `run` is its record."""

    def __init__(self, run: Run, tables: Mapping[str, pa.Table]) -> None:
        self.run = run
        self._tables = tables

    def __getitem__(self, table: str) -> Rows:
        """The rows of a table, ordered by their values."""
        found: Rows = self.arrow(table).to_pylist()
        return sorted(found, key=lambda row: [(v is None, str(v)) for v in row.values()])

    def arrow(self, table: str) -> pa.Table:
        return self._tables[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def run_pipeline(
    pipeline: Pipeline,
    inputs: Mapping[str, object],
    *,
    params: Mapping[str, object] | None = None,
    select: str | Sequence[str] | None = None,
    session: SparkSession | None = None,
) -> Result:
    """Run a pipeline on small inputs (Arrow tables or lists of dicts), in a lake made for it.

    Steps whose tables are given as input are left out; an input gets the primary key of its step.
    """
    chosen = select if select is not None else _others(pipeline, inputs)
    lean: SparkOptions = {} if session is not None else {"config": _LEAN, "master": "local[2]"}
    with (
        tempfile.TemporaryDirectory(prefix="lakebed-test-") as folder,
        open_lake(Path(folder) / "lake", create=True) as lake,
    ):
        for name, rows in inputs.items():
            _fill(lake, pipeline, name, rows)
        run = pipeline.run(lake, params=params, select=chosen, session=session, **lean)
        tables = {name: lake.table(name).scan().to_arrow() for name in lake.tables()}
    return Result(run, tables)


def _others(pipeline: Pipeline, inputs: Mapping[str, object]) -> list[str]:
    steps = [step.table for step in pipeline.graph().steps if step.table not in inputs]
    if not steps:
        raise PipelineInvalid("every step's table is given as input", hint="leave one out")
    return steps


def _fill(lake: Lake, pipeline: Pipeline, name: str, rows: object) -> None:
    known = {s.table: s.output.key for s in pipeline.steps}
    read = {
        i.table
        for s in pipeline.steps
        for i in s.inputs.values()
        if isinstance(i, Current | Changes)
    }
    read |= {e.table for s in pipeline.steps for e in s.expectations if e.table is not None}
    if name not in read:
        raise PipelineInvalid(
            f"no step reads {name}", hint=f"the inputs are: {', '.join(sorted(read)) or 'none'}"
        )
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
    key = known.get(name, ())
    fields = [f.with_nullable(f.name not in key) for f in table.schema]
    lake.create_table(name, table.cast(pa.schema(fields)), primary_key=key)
