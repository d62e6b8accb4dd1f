"""Rows that the SQL engine made, as the table takes them: its types, its lineage."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from lakebed.engines.arrow.conform import BATCH_ROWS, conform
from lakebed.model.quoting import quoted, text_literal
from lakebed.model.schema import Schema
from lakebed.model.types import Field, Primitive
from lakebed.rowops.assign import Assignments, projected
from lakebed.rowops.settle import written_schema
from lakebed.rowops.target import Target
from lakebed.rowops.workbench import Workbench

ROW_ID = "_row_id"
_FLOATS = (Primitive("float"), Primitive("double"))


def fitted(
    batches: Iterable[pa.RecordBatch], target: Target, computed: Iterable[Field] = ()
) -> Iterator[pa.RecordBatch]:
    """Rows for `Target.write`; a `_row_id` column says which rows they were before.

    Nothing is rounded or cut; only a computed decimal may become the nearest float, as in SQL.
    """
    schema = target.schema
    floats = {f.name for f in computed if f.type in _FLOATS}
    for batch in batches:
        names = [f.name for f in schema.fields if f.name in batch.schema.names]
        for start in range(0, batch.num_rows, BATCH_ROWS):
            piece = batch.slice(start, BATCH_ROWS)
            (rows,) = conform([_floated(piece.select(names), floats)], schema)
            yield _with_lineage(rows, piece, target)


def refuse_misfits(bench: Workbench, target: Target, assigned: Assignments, relations: str) -> None:
    """Values that no row can get, even where no row is met; `relations` as FROM.

    Types are known without rows, and a constant is the same for every row. NULL is for the rows
    to refuse.
    """
    if not assigned.expressions:
        return
    none = bench.bind(target.plan(()), ())
    values, fields = {}, []
    for field_id in assigned.expressions:
        path = target.schema.path_of(field_id)
        field = replace(path[-1], name=".".join(f.name for f in path), required=False)
        fields.append(field)
        values[field_id] = projected(field, assigned, partial(_empty, none, path))
    tests = " AND ".join(f"{e.sql} IS NOT NULL" for e in assigned.expressions.values())
    listed = ", ".join(values.values())
    shape = bench.shape(f"SELECT {listed} FROM {relations} WHERE {tests} LIMIT 0")
    tried = [pa.RecordBatch.from_pylist([], schema=shape)]
    constants = [values[i] for i, e in assigned.expressions.items() if not e.columns]
    if constants:
        tried += bench.batches(f"SELECT {', '.join(constants)}")
    floats = {f.name for f in fields if f.type in _FLOATS}
    for batch in tried:
        for _ in conform([_floated(batch, floats)], Schema(target.schema.id, tuple(fields))):
            pass


def _empty(relation: str, path: Sequence[Field]) -> str:
    """SQL that is NULL, of the type at the path."""
    top, *members = (f.name for f in path)
    sql = f"(SELECT {quoted(top)} FROM {relation})"
    for name in members:
        sql = f"struct_extract({sql}, {text_literal(name)})"
    return sql


def _floated(batch: pa.RecordBatch, names: set[str]) -> pa.RecordBatch:
    columns = [
        column.cast(pa.float64())
        if field.name in names and pa.types.is_decimal(field.type)
        else column
        for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _with_lineage(rows: pa.RecordBatch, piece: pa.RecordBatch, target: Target) -> pa.RecordBatch:
    if not target.lineage:
        return rows
    index = piece.schema.get_field_index(ROW_ID)
    unknown = pa.nulls(rows.num_rows, pa.int64())
    ids = piece.column(index) if index >= 0 else unknown
    # A changed row gets its sequence number from the commit: NULL until then.
    return pa.RecordBatch.from_arrays([*rows.columns, ids, unknown], schema=written_schema(target))
