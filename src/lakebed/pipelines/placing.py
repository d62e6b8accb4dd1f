"""Rows into a table of the run's transaction: created where there is none, and never committed."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from lakebed.model.errors import SchemaMismatch
from lakebed.pipelines.columns import backticked, comparable_text, table_schema
from lakebed.pipelines.context import Context
from lakebed.pipelines.inputs import Changes, Files
from lakebed.pipelines.net import DELETE
from lakebed.pipelines.newest import living, without_op
from lakebed.pipelines.plan import Planned
from lakebed.pipelines.step import VALID_FROM, Output


def append_rows(context: Context, output: Output, rows: DataFrame, *, evolve: bool = False) -> None:
    create(context, output, rows)
    context.spark.append(
        rows, output.table, merge_schema=evolve, transaction=context.run.transaction
    )


def replace_rows(context: Context, output: Output, rows: DataFrame) -> None:
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


def merge_rows(context: Context, output: Output, one: DataFrame, *, compare: bool = True) -> None:
    """One row per key; `compare` leaves rows alone that are there already as they are."""
    if create(context, output, without_op(one, output)):
        kept = without_op(living(one, output), output)
        context.spark.append(kept, output.table, transaction=context.run.transaction)
        return
    names = [name for name in one.columns if name != output.op]
    refuse_other_columns(
        output, names, [f.name for f in context.run.transaction.table(output.table).schema.fields]
    )
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
    kinds = {f.name: f.dataType for f in one.schema.fields}
    differs = _differs({n: kinds[n] for n in others}) if compare else None
    if others:
        merge = merge.when_matched_update(values, _both(newer, differs))
    merge.when_not_matched_insert(values, None if gone is None else f"NOT ({gone})").execute()


def refuse_other_columns(output: Output, names: list[str], known: list[str]) -> None:
    """Rows to merge have the columns of the table, all of them."""
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


def brings_changes(planned: Planned) -> bool:
    """Rows that are read because they changed need not be compared once more."""
    return any(isinstance(i, Changes | Files) for i in planned.step.inputs.values())


def _on(key: tuple[str, ...]) -> str:
    return " AND ".join(f"t.{backticked(name)} = s.{backticked(name)}" for name in key)


def _differs(kinds: Mapping[str, DataType]) -> str | None:
    sides = [[comparable_text(k, f"{s}.{backticked(n)}") for s in "ts"] for n, k in kinds.items()]
    said = [f"{theirs} <=> {ours}" for theirs, ours in sides]
    return f"NOT ({' AND '.join(said)})" if said else None


def _both(one: str | None, other: str | None) -> str | None:
    return " AND ".join(f"({part})" for part in (one, other) if part) or None
