"""What changed in a table between two versions, on Spark: net, or change by change."""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakebed.model.errors import PipelineInvalid, UnsupportedFeature
from lakebed.model.ids import Version
from lakebed.pipelines.columns import col, comparable, has_map
from lakebed.pipelines.context import Context
from lakebed.pipelines.inputs import Changes

INSERT, UPDATE, DELETE = "insert", "update", "delete"


def net_changes(context: Context, given: Changes, after: Version | None) -> DataFrame:
    """One row per primary key that differs, with what happened to it in the column `op`.

    A deleted row comes as it was; without a primary key an update is a delete and an insert.
    """
    gone, came = context.run.changed_rows(context.session, given.table, after)
    schema = context.run.transaction.table(given.table).schema
    _refuse_taken(given, [f.name for f in schema.fields])
    if gone is None:
        rows = context.table(given.table).limit(0) if came is None else came
        return rows.withColumn(given.op, F.lit(INSERT))
    key = [schema.field(i).name for i in schema.primary_key]
    if came is None:
        return gone.withColumn(given.op, F.lit(DELETE))
    return _by_key(gone, came, key, given.op) if key else _by_row(gone, came, given)


def change_feed(context: Context, given: Changes, after: Version | None) -> DataFrame:
    """Every change with its version and time; made on the driver, version by version."""
    if context.run.is_changed(given.table):
        raise PipelineInvalid(
            f"changes({given.table!r}, feed=True): a step of this run changes the table, and its"
            " changes have no version yet",
            hint="use changes() without feed, or read the table in a second pipeline",
        )
    until = context.pinned[given.table].version
    read = context.run.feed(given.table, after, until)
    frame = context.session.createDataFrame(read)
    _refuse_taken(given, [n for n in frame.columns if n not in ("_op", "_version", "_time")])
    return frame.withColumnRenamed("_op", given.op)


def _by_key(gone: DataFrame, came: DataFrame, key: list[str], op: str) -> DataFrame:
    names = came.columns
    old, new = _numbered(gone, key, names, "old"), _numbered(came, key, names, "new")
    on = [_field("old", name).eqNullSafe(_field("new", name)) for name in key]
    on.append(F.col("old_number") == F.col("new_number"))
    joined = old.join(new, reduce(Column.__and__, on), "full_outer")
    kind = (
        F.when(F.col("old").isNull(), INSERT)
        .when(F.col("new").isNull(), DELETE)
        .when(_differ(came, names), UPDATE)
    )
    shown = F.coalesce("new", "old")
    listed = [shown.getField(name).alias(name) for name in names]
    return joined.select(*listed, kind.alias(op)).where(col(op).isNotNull())


def _numbered(rows: DataFrame, key: list[str], names: list[str], side: str) -> DataFrame:
    """Nobody checks a primary key: rows that share one meet one another, each once."""
    each = Window.partitionBy(*map(col, key)).orderBy(*map(col, key))
    number = F.row_number().over(each).alias(f"{side}_number")
    return rows.select(F.struct(*map(col, names)).alias(side), number)


def _by_row(gone: DataFrame, came: DataFrame, given: Changes) -> DataFrame:
    maps = [f.name for f in came.schema.fields if has_map(f.dataType)]
    if maps:
        raise UnsupportedFeature(
            f"changes({given.table!r}): rows with a map ({maps[0]}) are told apart by a key only",
            hint="give the table a primary key",
        )
    inserted = came.exceptAll(gone).withColumn(given.op, F.lit(INSERT))
    return gone.exceptAll(came).withColumn(given.op, F.lit(DELETE)).unionByName(inserted)


def _differ(frame: DataFrame, names: list[str]) -> Column:
    kinds = {f.name: f.dataType for f in frame.schema.fields}
    equal = [
        comparable(kinds[n], _field("old", n)).eqNullSafe(comparable(kinds[n], _field("new", n)))
        for n in names
    ]
    return ~reduce(Column.__and__, equal)


def _refuse_taken(given: Changes, names: list[str]) -> None:
    if given.op.casefold() in {name.casefold() for name in names}:
        raise PipelineInvalid(
            f"changes({given.table!r}): the table has a column {given.op!r} of its own",
            hint='choose another name: changes(…, op="_op")',
        )


def _field(side: str, name: str) -> Column:
    return F.col(side).getField(name)
