"""Rows that the SQL engine made, as the table takes them: its types, its lineage."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lakebed.engines.arrow.conform import BATCH_ROWS, conform
from lakebed.model.types import Field, Primitive
from lakebed.rowops.settle import written_schema
from lakebed.rowops.target import Target

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
