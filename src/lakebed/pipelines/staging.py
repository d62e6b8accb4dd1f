"""Rows of a step into its table, by the output's mode; everything is staged, nothing committed."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakebed.model.errors import AmbiguousMerge, SchemaMismatch, StepFailed
from lakebed.model.runs import ExpectationReport
from lakebed.pipelines.checking import judge, part, refuse_failed
from lakebed.pipelines.columns import backticked, check_frame, col, find_columns, table_schema
from lakebed.pipelines.context import Context
from lakebed.pipelines.inputs import Changes, Files
from lakebed.pipelines.net import DELETE
from lakebed.pipelines.plan import Planned
from lakebed.pipelines.scd2 import ADDED, OPERATION, History, refuse_ambiguous
from lakebed.pipelines.step import KEYED, VALID_FROM, Output

_RANK = "__lakebed_rank"
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
    parted = part(context, rows, step.expectations)
    count, reports = judge(context, parted.rows, step.expectations)
    refuse_failed(step.table, parted.rows, step.expectations, reports)
    for table, rejected in parted.rejected.items():
        with context.rejecting:
            _append(context, Output(table, "append"), rejected, evolve=True)
    replaces = output.mode == "replace" or planned.how == "full refresh"
    if count or replaces or not context.has_table(output.table):
        _stage_rows(context, planned, output, parted.rows)
    return Staged(count, parted.dropped, (*parted.reports, *reports))


def _stage_directly(context: Context, planned: Planned, frame: DataFrame) -> Staged:
    """Rows go to the table's own files at once, and are judged there."""
    step, table = planned.step, planned.step.table
    _stage_rows(context, planned, step.output, frame)
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


def _stage_rows(context: Context, planned: Planned, output: Output, rows: DataFrame) -> None:
    tx, table = context.run.transaction, output.table
    if output.mode == "scd2":
        _stage_history(context, planned, output, rows)
    elif planned.how == "backfill" and table in context.pinned:
        made = _one_each(rows, output)
        context.spark.overwrite(made, table, where=planned.where, transaction=tx)
    elif planned.how == "full refresh" or output.mode == "replace":
        _replace(context, output, _one_each(rows, output))
    elif output.mode == "merge":
        _merge(context, planned, output, rows)
    elif output.mode == "replace_partitions" and table in context.pinned:
        context.spark.overwrite(rows, table, partitions=True, transaction=tx)
    else:
        _append(context, output, rows)


def _append(context: Context, output: Output, rows: DataFrame, *, evolve: bool = False) -> None:
    create(context, output, rows)
    context.spark.append(
        rows, output.table, merge_schema=evolve, transaction=context.run.transaction
    )


def _replace(context: Context, output: Output, rows: DataFrame) -> None:
    if create(context, output, rows):
        context.spark.append(rows, output.table, transaction=context.run.transaction)
    else:
        context.spark.overwrite(rows, output.table, transaction=context.run.transaction)


def create(context: Context, output: Output, rows: DataFrame) -> bool:
    """Make the table where there is none; True when it did."""
    with context.lock:
        if context.has_table(output.table):
            context.run.will_write(output.table)
            return False
        keys = (*output.key, VALID_FROM) if output.mode == "scd2" else output.key
        context.run.transaction.create_table(
            output.table,
            output.schema or table_schema(rows, keys),
            partition_by=output.partition_by,
            sort_by=output.sort_by,
            primary_key=keys,
            properties=output.properties,
            comment=output.comment,
        )
        return True


def _merge(context: Context, planned: Planned, output: Output, rows: DataFrame) -> None:
    one = _one_each(rows, output, keep_deletes=True)
    if create(context, output, _without_op(one, output)):
        kept = _without_op(_living(one, output), output)
        context.spark.append(kept, output.table, transaction=context.run.transaction)
        return
    names = [name for name in one.columns if name != output.op]
    _refuse_other_columns(context, output, names)
    newer = None
    if output.sequence_by is not None:
        t, s = (f"{side}.{backticked(output.sequence_by)}" for side in "ts")
        newer = f"({t} IS NULL OR {s} >= {t})"
    merge = context.spark.merge(
        output.table, one, _on(output.key), transaction=context.run.transaction
    )
    gone = None if output.op is None else f"s.{backticked(output.op)} = '{DELETE}'"
    if gone is not None:
        merge = merge.when_matched_delete(_both(gone, newer))
    values = {name: f"s.{backticked(name)}" for name in names}
    others = [name for name in names if name not in output.key]
    differs = None if _brings_changes(planned) else _differs(others)
    if others:
        merge = merge.when_matched_update(values, _both(newer, differs))
    merge.when_not_matched_insert(values, None if gone is None else f"NOT ({gone})").execute()


def _stage_history(context: Context, planned: Planned, output: Output, rows: DataFrame) -> None:
    taken = [name for name in ADDED if name in rows.columns and name != output.sequence_by]
    if taken:
        raise StepFailed(
            f"the result has a column {taken[0]!r}, which scd2 adds itself",
            hint="give it another name",
        )
    names = tuple(n for n in rows.columns if n not in (output.op, VALID_FROM))
    now = F.timestamp_millis(F.lit(context.run.run.started_ms))
    moment = now if output.sequence_by is None else col(output.sequence_by)
    history = History(output.key, names, moment, output.op, output.sequence_by)
    events = context.spool(history.events(rows))
    refuse_ambiguous(events, output.key, output.table)
    fresh = planned.how == "full refresh" or not context.has_table(output.table)
    known = None if fresh else context.table(output.table)
    chains = context.spool(history.chains(events, known))
    if fresh:
        _replace(context, output, chains)
        return
    place = replace(
        output, mode="merge", key=(*output.key, VALID_FROM), op=OPERATION, sequence_by=None
    )
    changed = context.spool(history.changes(chains, known))
    if not changed.isEmpty():
        _merge(context, planned, place, changed)


def _one_each(rows: DataFrame, output: Output, *, keep_deletes: bool = False) -> DataFrame:
    """The newest row of each key; without an order, two of one key are refused."""
    if output.mode != "merge":
        return rows
    keys = [col(name) for name in output.key]
    if output.sequence_by is not None:
        newest = Window.partitionBy(*keys).orderBy(col(output.sequence_by).desc_nulls_last())
        ranked = rows.withColumn(_RANK, F.rank().over(newest))
        rows = ranked.where(F.col(_RANK) == 1).drop(_RANK).distinct()
    _refuse_bad_keys(rows, output)
    return rows if keep_deletes else _without_op(_living(rows, output), output)


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


def _living(rows: DataFrame, output: Output) -> DataFrame:
    return rows if output.op is None else rows.where(~col(output.op).eqNullSafe(DELETE))


def _without_op(rows: DataFrame, output: Output) -> DataFrame:
    return rows if output.op is None else rows.drop(output.op)


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


def _refuse_other_columns(context: Context, output: Output, names: list[str]) -> None:
    schema = context.run.transaction.table(output.table).schema
    known = [f.name for f in schema.fields]
    odd = [n for n in names if n not in known] or [n for n in known if n not in names]
    if odd:
        where = (
            "the table has no such column" if odd[0] in names else "the result has no such column"
        )
        raise SchemaMismatch(
            f"column {odd[0]!r}: {where}",
            hint=f"alter {output.table}, or return its columns: {', '.join(known)}",
            column=odd[0],
        )


def _brings_changes(planned: Planned) -> bool:
    """Rows that are read because they changed need not be compared once more."""
    return any(isinstance(i, Changes | Files) for i in planned.step.inputs.values())


def _on(key: tuple[str, ...]) -> str:
    return " AND ".join(f"t.{backticked(name)} = s.{backticked(name)}" for name in key)


def _differs(names: list[str]) -> str | None:
    said = [f"t.{backticked(n)} <=> s.{backticked(n)}" for n in names]
    return f"NOT ({' AND '.join(said)})" if said else None


def _both(one: str | None, other: str | None) -> str | None:
    return " AND ".join(f"({part})" for part in (one, other) if part) or None
