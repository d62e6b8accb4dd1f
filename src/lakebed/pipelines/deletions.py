"""Keys that a merge took away, and since when: an older row that comes late brings none back."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebed.model.errors import StepFailed
from lakebed.pipelines.columns import col
from lakebed.pipelines.context import Context
from lakebed.pipelines.net import DELETE
from lakebed.pipelines.placing import merge_rows, replace_rows
from lakebed.pipelines.step import Output, side_table

_SINCE = "__lakebed_since"


def leave_out_late(context: Context, output: Output, rows: DataFrame) -> DataFrame:
    """The rows without those that are older than the deletion of their key."""
    place = _place(output)
    if place is None or not context.has_table(place.table):
        return rows
    assert output.sequence_by is not None
    _refuse_other_table(context, place)
    since = context.table(place.table).withColumnRenamed(output.sequence_by, _SINCE)
    joined = rows.join(since, list(output.key), "left")
    order = col(output.sequence_by)
    counts = F.col(_SINCE).isNull() | (order >= F.col(_SINCE))
    return joined.where(counts).select(*map(col, rows.columns))


def keep_deletions(context: Context, output: Output, rows: DataFrame, *, anew: bool) -> None:
    """Remember the deletions among rows, one of each key; `anew`: they are all there are."""
    place = _place(output)
    if place is None or output.op is None:
        return
    gone = rows.where((col(output.op) == DELETE) & col(place.key[-1]).isNotNull())
    gone = gone.select(*map(col, (*output.key, place.key[-1])))
    there = context.has_table(place.table)
    if gone.isEmpty() and not (anew and there):
        return
    if there:
        _refuse_other_table(context, place)
    kept = Output(place.table, "merge", output.key, comment=place.comment)
    (replace_rows if anew else merge_rows)(context, kept, gone)


def _place(output: Output) -> Output | None:
    """The table beside the output; its last key column is the order."""
    table = side_table(output)
    if table is None or output.sequence_by is None:
        return None
    said = f"keys deleted from {output.table}, and since when"
    return Output(table, "merge", (*output.key, output.sequence_by), comment=said)


def _refuse_other_table(context: Context, place: Output) -> None:
    schema = context.run.transaction.table(place.table).schema
    if {f.name for f in schema.fields} != set(place.key):
        raise StepFailed(
            f"table {place.table} is not the one that remembers deletions: it has other columns",
            hint=f"rename it; its columns would be {', '.join(place.key)}",
        )
