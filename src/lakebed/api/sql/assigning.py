"""Rows of a query on their way into a table: which column each is, and literals without a type."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakebed.engines.arrow.types import arrow_type
from lakebed.model.errors import SchemaMismatch
from lakebed.model.schema import Schema
from lakebed.model.types import Field, Primitive, is_scalar
from lakebed.sql.statements import Insert

_FLOATS = (Primitive("float"), Primitive("double"))


def fitted_rows(
    rows: pa.RecordBatchReader, schema: Schema, statement: Insert
) -> pa.RecordBatchReader:
    """As the table takes them; whether each value fits exactly is for the table to say."""
    names = _names(rows.schema.names, schema, statement)
    fields = [_field(schema, name) for name in names]
    kinds = [_kind(column.type, field) for column, field in zip(rows.schema, fields, strict=True)]
    shape = pa.schema([pa.field(n, k) for n, k in zip(names, kinds, strict=True)])
    return pa.RecordBatchReader.from_batches(shape, _fitted(rows, shape))


def _names(given: Sequence[str], schema: Schema, statement: Insert) -> list[str]:
    fixed = {p.column.casefold() for p in statement.partition if p.value is not None}
    if statement.by_name:
        return list(given)
    if statement.columns is not None:
        wanted = [".".join(path) for path in statement.columns]
    else:
        wanted = [f.name for f in schema.fields if f.name.casefold() not in fixed]
    if len(wanted) != len(given):
        raise SchemaMismatch(
            f"the query has {len(given)} columns, the table takes {len(wanted)}:"
            f" {', '.join(wanted)}",
            hint="name the columns: INSERT INTO t (a, b) …, or use BY NAME",
        )
    return wanted


def _field(schema: Schema, name: str) -> Field | None:
    return schema.find((name,))


def _kind(found: pa.DataType, field: Field | None) -> pa.DataType:
    """Text becomes what the column is, as a literal in quotes does, and a decimal a float."""
    if field is None or not is_scalar(field.type):
        return found
    target = arrow_type(field.type)
    if pa.types.is_null(found):
        return target
    if pa.types.is_string(found) and field.type != Primitive("string"):
        return target
    return target if field.type in _FLOATS and pa.types.is_decimal(found) else found


def _fitted(rows: pa.RecordBatchReader, shape: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        columns = [_cast(c, field) for c, field in zip(batch.columns, shape, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=shape)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), field.type)
    try:
        return column.cast(field.type, safe=not pa.types.is_decimal(column.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(
            f"column {field.name!r}: {str(error).strip()}",
            hint=f"write the text as {field.type}, or CAST it",
            column=field.name,
        ) from error
