"""Rows of a step into a history, and the events that it does not show into a table beside it."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebed.model.errors import StepFailed
from lakebed.pipelines.columns import col
from lakebed.pipelines.context import Context
from lakebed.pipelines.newest import one_each
from lakebed.pipelines.placing import merge_rows, replace_rows
from lakebed.pipelines.scd2 import ADDED, IS_END, OPERATION, History, refuse_ambiguous
from lakebed.pipelines.step import VALID_FROM, Output, side_table


@dataclass(frozen=True, slots=True)
class _Place:
    """A table by key and moment, and what is in it."""

    output: Output
    names: tuple[str, ...]
    stored: DataFrame | None


def stage_history(
    context: Context, output: Output, rows: DataFrame, present: DataFrame, *, anew: bool
) -> None:
    """`present` are the rows before any was dropped: what was rejected has not vanished."""
    history = _history(context, output, rows)
    table = _place(context, output.table, history.shown_columns, output, anew=anew)
    events = history.events(rows)
    if table.stored is not None and output.vanished == "close":
        now = F.timestamp_millis(F.lit(context.run.run.started_ms))
        events = events.unionByName(history.vanished(table.stored, present, now))
    events = context.spool(events)
    refuse_ambiguous(events, output.key, output.table)
    beside = side_table(output)
    hidden = None
    if beside is not None:
        said = f"events that {output.table} does not show"
        kept = Output(beside, "scd2", output.key, comment=said)
        hidden = _place(context, beside, history.hidden_columns, kept, anew=anew)
    stored = None if hidden is None else hidden.stored
    chains = context.spool(history.chains(events, table.stored, stored))
    _write(context, history, table, history.shown(chains), chains, anew=anew, always=True)
    if hidden is not None:
        _write(context, history, hidden, history.hidden(chains), chains, anew=anew, always=False)


def _history(context: Context, output: Output, rows: DataFrame) -> History:
    taken = [
        name for name in (*ADDED, IS_END) if name in rows.columns and name != output.sequence_by
    ]
    if taken:
        raise StepFailed(
            f"the result has a column {taken[0]!r}, which scd2 adds itself",
            hint="give it another name",
        )
    names = tuple(n for n in rows.columns if n not in (output.op, VALID_FROM))
    now = F.timestamp_millis(F.lit(context.run.run.started_ms))
    moment = now if output.sequence_by is None else col(output.sequence_by)
    return History(output.key, names, moment, output.op, output.sequence_by)


def _place(
    context: Context, table: str, names: tuple[str, ...], output: Output, *, anew: bool
) -> _Place:
    if anew or not context.has_table(table):
        return _Place(output, names, None)
    known = {f.name for f in context.run.transaction.table(table).schema.fields}
    missing = [n for n in names if n not in known]
    if missing:
        raise StepFailed(
            f"table {table} has no column {missing[0]!r}",
            hint=f"alter {table}: it needs {', '.join(names)}",
        )
    return _Place(output, names, context.table(table))


def _write(
    context: Context,
    history: History,
    place: _Place,
    now: DataFrame,
    chains: DataFrame,
    *,
    anew: bool,
    always: bool,
) -> None:
    """`always`: the table is made even when there is nothing for it."""
    table = place.output.table
    if place.stored is None:
        if always or (anew and context.has_table(table)) or not now.isEmpty():
            replace_rows(context, place.output, now)
        return
    before = history.of_keys(place.stored, chains, place.names)
    changed = context.spool(history.changes(now, before, place.names))
    if changed.isEmpty():
        return
    merged = replace(
        place.output,
        mode="merge",
        key=(*history.key, VALID_FROM),
        op=OPERATION,
        sequence_by=None,
    )
    merge_rows(context, merged, one_each(changed, merged, keep_deletes=True), compare=False)
