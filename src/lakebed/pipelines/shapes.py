"""Steps tried on no rows: columns, types and conditions are wrong or right before anything runs."""

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebed.engines.spark.fit import fitted
from lakebed.engines.spark.types import to_spark
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.pipelines.checking import holds
from lakebed.pipelines.columns import check_frame, col
from lakebed.pipelines.context import Context
from lakebed.pipelines.deciding import Prospect
from lakebed.pipelines.expectations import Expectation
from lakebed.pipelines.failures import step_failed
from lakebed.pipelines.inputs import Changes, Current, Files
from lakebed.pipelines.placing import refuse_other_columns
from lakebed.pipelines.plain import is_plain
from lakebed.pipelines.plan import Planned
from lakebed.pipelines.reading import Reading, frame_of
from lakebed.pipelines.staging import checked_columns
from lakebed.pipelines.step import IS_CURRENT, SESSION, VALID_FROM, VALID_TO, Output, Step


def check_shapes(context: Context, steps: Iterable[Prospect], *, every: bool) -> None:
    """Call steps on empty frames; what does not go together is refused, with name and line.

    A function that may have effects is not called twice, unless `every` one is to be.
    """
    shapes = _Shapes(context)
    for prospect in steps:
        step = prospect.planned.step
        if not every and (step.wants_session or not is_plain(step.function)):
            continue
        try:
            shapes.check(prospect)
        except Exception as error:  # the user's function may raise anything
            raise step_failed(step, error) from error


class _Shapes:
    """What is known of tables: those that are there, and those that steps will make."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._made: dict[str, DataFrame] = {}

    def check(self, prospect: Prospect) -> None:
        planned, step = prospect.planned, prospect.planned.step
        given: dict[str, object] = dict(planned.values)
        for name, reading in prospect.readings.items():
            frame = self._empty(planned, reading)
            if frame is None:
                return
            given[name] = frame
        if step.wants_session:
            given[SESSION] = self._context.session
        result = check_frame(step.function(**given), step.table)
        output = checked_columns(result, step.output)
        for expectation in step.expectations:
            self._analyse(result, expectation)
        self._made[step.table] = self._fit(step, output, _stored(result, output))

    def _fit(self, step: Step, output: Output, shape: DataFrame) -> DataFrame:
        """The columns of the table; refused where those of the result are others."""
        pinned = self._context.pinned.get(step.table)
        if pinned is not None:
            if output.mode in ("merge", "scd2"):
                refuse_other_columns(output, shape.columns, [f.name for f in pinned.schema.fields])
            return fitted(shape, pinned.schema)
        if output.schema is not None:
            return fitted(shape, new_schema(parse_schema(output.schema)))
        return shape

    def _empty(self, planned: Planned, reading: Reading) -> DataFrame | None:
        """An input without rows; None where its columns cannot be known yet."""
        given = reading.given
        if isinstance(given, Current | Changes):
            frame = self._table(given.table)
            if frame is None or isinstance(given, Current):
                return frame
            told = frame.withColumn(given.op, F.lit(""))
            if given.feed:
                version = F.lit(0).cast("long")
                told = told.withColumn("_version", version)
                told = told.withColumn("_time", F.current_timestamp())
            return told
        if isinstance(given, Files) and not (reading.files or reading.known or given.schema):
            return None
        return frame_of(self._context, planned, reading).limit(0)

    def _table(self, name: str) -> DataFrame | None:
        pinned = self._context.pinned.get(name)
        if pinned is None:
            return self._made.get(name)
        return self._context.session.createDataFrame([], to_spark(pinned.schema))

    def _analyse(self, result: DataFrame, expectation: Expectation) -> None:
        """Columns and functions that are not there are told by Spark's analysis."""
        named = [col(name) for name in expectation.columns]
        if expectation.kind in ("condition", "not_null"):
            named.append(holds(expectation))
        result.select(*named or [F.lit(1)]).schema  # noqa: B018 - a client of Connect asks only now
        other = None if expectation.table is None else self._table(expectation.table)
        if other is not None:
            other.select(*map(col, expectation.other_columns)).schema  # noqa: B018 - as above


def _stored(result: DataFrame, output: Output) -> DataFrame:
    """What the table has of the result."""
    frame = result if output.op is None else result.drop(output.op)
    if output.mode != "scd2":
        return frame
    moment = F.current_timestamp()
    return (
        frame.withColumn(VALID_FROM, moment)
        .withColumn(VALID_TO, moment)
        .withColumn(IS_CURRENT, F.lit(True))
    )
