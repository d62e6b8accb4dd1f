"""The newest row of each key, and rows that say whether they are to be deleted."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakebed.model.errors import AmbiguousMerge, SchemaMismatch
from lakebed.pipelines.columns import col, distinct
from lakebed.pipelines.net import DELETE
from lakebed.pipelines.step import Output

_RANK = "__lakebed_rank"


def one_each(rows: DataFrame, output: Output, *, keep_deletes: bool = False) -> DataFrame:
    """The newest row of each key; without an order, two of one key are refused."""
    if output.mode != "merge":
        return rows
    keys = [col(name) for name in output.key]
    if output.sequence_by is not None:
        newest = Window.partitionBy(*keys).orderBy(col(output.sequence_by).desc_nulls_last())
        ranked = rows.withColumn(_RANK, F.rank().over(newest))
        rows = ranked.where(F.col(_RANK) == 1).drop(_RANK)
        rows = distinct(rows)
    _refuse_bad_keys(rows, output)
    return rows if keep_deletes else without_op(living(rows, output), output)


def living(rows: DataFrame, output: Output) -> DataFrame:
    return rows if output.op is None else rows.where(~col(output.op).eqNullSafe(DELETE))


def without_op(rows: DataFrame, output: Output) -> DataFrame:
    return rows if output.op is None else rows.drop(output.op)


def _refuse_bad_keys(rows: DataFrame, output: Output) -> None:
    keys = [col(name) for name in output.key]
    nothing = F.lit(False)
    for key in keys:
        nothing = nothing | key.isNull()
    grouped = rows.groupBy(*keys).count()
    found = grouped.where((F.col("count") > 1) | nothing).limit(1).collect()
    if not found:
        return
    values = {name: found[0][name] for name in output.key}
    empty = [name for name, value in values.items() if value is None]
    if empty:
        raise SchemaMismatch(
            f"key column {empty[0]!r} is NULL in {found[0]['count']:,} rows",
            hint="leave such rows out: expect.drop(expect.not_null(…))",
            column=empty[0],
        )
    shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
    raise AmbiguousMerge(
        f"{found[0]['count']:,} rows have the key {shown}",
        hint="leave one row per key, or say which is the newest: sequence_by=…",
    )
