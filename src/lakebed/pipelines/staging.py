"""Rows of a step into its table, by the output's mode; everything is staged, nothing committed."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from lakebed.model.runs import ExpectationReport
from lakebed.pipelines.checking import judge, part, refuse_failed
from lakebed.pipelines.columns import check_frame, col, find_columns
from lakebed.pipelines.context import Context
from lakebed.pipelines.deletions import keep_deletions, leave_out_late
from lakebed.pipelines.net import DELETE
from lakebed.pipelines.newest import living, one_each, without_op
from lakebed.pipelines.placing import append_rows, brings_changes, merge_rows, replace_rows
from lakebed.pipelines.plan import Planned
from lakebed.pipelines.staging_history import stage_history
from lakebed.pipelines.step import KEYED, Output

_BEFORE = "update_before"


@dataclass(frozen=True, slots=True)
class Staged:
    """What came of a step's rows."""

    rows: int
    dropped: int
    expectations: tuple[ExpectationReport, ...]


def stage(context: Context, planned: Planned, made: object) -> Staged:
    """Check the rows, then stage them; nothing is staged of rows that are not as expected."""
    step, output = planned.step, planned.step.output
    frame = check_frame(made, output.table)
    output = checked_columns(frame, output)
    if planned.where is not None:
        frame = frame.where(planned.where)
    drops = any(e.action == "drop" for e in step.expectations)
    if output.mode not in KEYED and not drops:
        return _stage_directly(context, planned, frame)
    if output.op is not None:
        frame = frame.where(~col(output.op).eqNullSafe(_BEFORE))
    rows = context.spool(frame)
    # A row that is to go is not judged: it takes its key away whatever else it says.
    parted = part(context, living(rows, output), step.expectations)
    count, reports = judge(context, parted.rows, step.expectations)
    refuse_failed(step.table, parted.rows, step.expectations, reports)
    kept = parted.rows
    if output.op is not None:
        gone = rows.where(col(output.op).eqNullSafe(DELETE))
        count, kept = count + gone.count(), kept.unionByName(gone)
    for table, rejected in parted.rejected.items():
        with context.rejecting:
            append_rows(context, Output(table, "append"), rejected, evolve=True)
    whole = output.mode == "replace" or planned.how == "full refresh" or output.vanished == "close"
    if count or whole or not context.has_table(output.table):
        _stage_rows(context, planned, output, kept, rows)
    return Staged(count, parted.dropped, (*parted.reports, *reports))


def _stage_directly(context: Context, planned: Planned, frame: DataFrame) -> Staged:
    """Rows go to the table's own files at once, and are judged there."""
    step, table = planned.step, planned.step.table
    _stage_rows(context, planned, step.output, frame, frame)
    count = context.run.staged_count(table)
    if not count:
        _forget_nothing(context, planned)
    if not step.expectations:
        return Staged(count, 0, ())
    rows = context.run.staged_rows(context.session, table)
    _, reports = judge(context, rows, step.expectations)
    refuse_failed(table, rows, step.expectations, reports)
    return Staged(count, 0, reports)


def _forget_nothing(context: Context, planned: Planned) -> None:
    """An append of no rows is no change."""
    table = planned.step.table
    if (
        planned.how == "incremental"
        and planned.step.output.mode != "replace"
        and table in context.pinned
    ):
        context.run.transaction.table(table).forget_empty()


def _stage_rows(
    context: Context, planned: Planned, output: Output, rows: DataFrame, present: DataFrame
) -> None:
    """`present` are the rows with those that were dropped."""
    tx, table = context.run.transaction, output.table
    anew = planned.how == "full refresh"
    if output.mode == "scd2":
        stage_history(context, output, rows, present, anew=anew)
    elif output.mode == "merge":
        _stage_merge(context, planned, output, one_each(rows, output, keep_deletes=True))
    elif planned.how == "backfill" and table in context.pinned:
        context.spark.overwrite(rows, table, where=planned.where, transaction=tx)
    elif anew or output.mode == "replace":
        replace_rows(context, output, rows)
    elif output.mode == "replace_partitions" and table in context.pinned:
        context.spark.overwrite(rows, table, partitions=True, transaction=tx)
    else:
        append_rows(context, output, rows)


def _stage_merge(context: Context, planned: Planned, output: Output, one: DataFrame) -> None:
    tx, table = context.run.transaction, output.table
    anew = planned.how == "full refresh"
    if anew:
        replace_rows(context, output, without_op(living(one, output), output))
    elif planned.how == "backfill" and table in context.pinned:
        made = without_op(living(one, output), output)
        context.spark.overwrite(made, table, where=planned.where, transaction=tx)
    else:
        one = leave_out_late(context, output, one)
        merge_rows(context, output, one, compare=not brings_changes(planned))
    keep_deletions(context, output, one, anew=anew)


def checked_columns(frame: DataFrame, output: Output) -> Output:
    """The output with names as the result writes them."""
    key = find_columns(frame, output.key, "its key")
    op = [] if output.op is None else [output.op]
    order = [] if output.sequence_by is None else [output.sequence_by]
    return replace(
        output,
        key=key,
        op=next(iter(find_columns(frame, op, "its op")), None),
        sequence_by=next(iter(find_columns(frame, order, "what rows are ordered by")), None),
    )
