"""Steps tried on no rows: columns, types and conditions are wrong or right before anything runs."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebed.engines.spark.fit import fitted
from lakebed.pipelines.checking import holds
from lakebed.pipelines.columns import check_frame, col
from lakebed.pipelines.context import Context
from lakebed.pipelines.expectations import Expectation
from lakebed.pipelines.failures import step_failed
from lakebed.pipelines.inputs import Changes, Current, Files, Input
from lakebed.pipelines.plan import Planned
from lakebed.pipelines.reading import frame_of, look_at
from lakebed.pipelines.staging import checked_columns
from lakebed.pipelines.step import IS_CURRENT, SESSION, VALID_FROM, VALID_TO, Output


def check_shapes(context: Context, steps: Sequence[Planned]) -> dict[str, str]:
    """Call every step on empty frames: {table: its columns}; what cannot be known is left out.

    What does not go together is refused with the step's name and line.
    """
    made: dict[str, DataFrame] = {}
    for planned in steps:
        try:
            shape = _shape(context, planned, made)
        except Exception as error:  # the user's function may raise anything
            raise step_failed(planned.step, error) from error
        if shape is not None:
            made[planned.step.table] = shape
    return {table: frame.schema.simpleString() for table, frame in made.items()}


def _shape(context: Context, planned: Planned, made: dict[str, DataFrame]) -> DataFrame | None:
    step, given = planned.step, dict[str, object](planned.values)
    for name, each in step.inputs.items():
        frame = _empty(context, planned, each, made)
        if frame is None:
            return None
        given[name] = frame
    if step.wants_session:
        given[SESSION] = context.session
    result = check_frame(step.function(**given), step.table)
    output = checked_columns(result, step.output)
    for expectation in step.expectations:
        _analyse(result, expectation)
    shape = _stored(result, output)
    if step.table in context.pinned:
        schema = context.run.transaction.table(step.table).schema
        fitted(shape, schema)
        return context.table(step.table).limit(0)
    return shape


def _empty(
    context: Context, planned: Planned, given: Input, made: dict[str, DataFrame]
) -> DataFrame | None:
    """An input without rows; None where its columns cannot be known yet."""
    if isinstance(given, Current | Changes):
        frame = made.get(given.table)
        if frame is None:
            if given.table not in context.pinned:
                return None
            frame = context.table(given.table).limit(0)
        if isinstance(given, Current):
            return frame
        told = frame.withColumn(given.op, F.lit(""))
        if given.feed:
            told = told.withColumn("_version", F.lit(0)).withColumn("_time", F.current_timestamp())
        return told
    if isinstance(given, Files) and given.schema is not None:
        frame = context.session.createDataFrame([], given.schema)
        if given.path_column is not None:
            frame = frame.withColumn(given.path_column, F.lit(""))
        return frame
    reading = look_at(context, planned, given)
    if isinstance(given, Files) and not (reading.files or reading.known):
        return None
    return frame_of(context, planned, reading).limit(0)


def _analyse(result: DataFrame, expectation: Expectation) -> None:
    """Columns and functions that are not there are told by Spark's analysis."""
    named = [col(name) for name in expectation.columns]
    if expectation.kind in ("condition", "not_null"):
        named.append(holds(expectation))
    result.select(*named or [F.lit(1)])


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
