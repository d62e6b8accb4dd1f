"""Rows of a query on their way into a table: which column each is, and literals without a type."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from lakebed.api.sql.texts import read_texts
from lakebed.engines.arrow.types import arrow_type
from lakebed.model.errors import SchemaMismatch, SqlColumnUnknown
from lakebed.model.nearest import nearest
from lakebed.model.schema import Schema
from lakebed.model.types import (
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    StructType,
    Type,
    is_scalar,
)
from lakebed.rowops.literal import literal
from lakebed.sql.statements import Insert

_FLOATS = (Primitive("float"), Primitive("double"))
_TEXT = Primitive("string")


def fitted_rows(
    rows: pa.RecordBatchReader, schema: Schema, statement: Insert, fixed: Mapping[str, object]
) -> pa.RecordBatchReader:
    """As the table takes them; whether each value fits exactly is for the table to say.

    `fixed` are columns with one value for all rows, those of PARTITION (day = '…').
    """
    names = _names(rows.schema.names, schema, statement, fixed)
    added = [pa.scalar(value) for value in fixed.values()]
    fields = [known_field(schema, (name,)) for name in (*names, *fixed)]
    kinds = [
        _kind(found, field)
        for found, field in zip([*rows.schema.types, *(v.type for v in added)], fields, strict=True)
    ]
    shape = pa.schema([pa.field(f.name, k) for f, k in zip(fields, kinds, strict=True)])

    def fitted() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            columns = [*batch.columns, *(pa.repeat(value, batch.num_rows) for value in added)]
            arrays = [_cast(c, f, k) for c, f, k in zip(columns, fields, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=shape)

    return pa.RecordBatchReader.from_batches(shape, fitted())


def _names(
    given: Sequence[str], schema: Schema, statement: Insert, fixed: Mapping[str, object]
) -> list[str]:
    if statement.by_name:
        return list(given)
    wanted = _wanted(schema, statement, fixed)
    if len(wanted) != len(given):
        raise SchemaMismatch(
            f"the query has {len(given)} columns, the table takes {len(wanted)}:"
            f" {', '.join(wanted)}",
            hint="name the columns: INSERT INTO t (a, b) …, or use BY NAME",
        )
    return wanted


def _wanted(schema: Schema, statement: Insert, fixed: Mapping[str, object]) -> list[str]:
    """The columns that the rows of the source are for, in order."""
    if statement.columns is not None:
        return [".".join(path) for path in statement.columns]
    known = {name.casefold() for name in fixed}
    return [f.name for f in schema.fields if f.name.casefold() not in known]


def default_texts(schema: Schema, statement: Insert, fixed: Mapping[str, object]) -> list[str]:
    """What DEFAULT stands for in each column of VALUES, as SQL."""
    names = _wanted(schema, statement, fixed)
    return [default_text(known_field(schema, tuple(name.split(".")))) for name in names]


def default_text(field: Field) -> str:
    if field.write_default is None:
        return "NULL"
    return literal(pa.scalar(field.write_default, arrow_type(field.type)).as_py())


def known_field(schema: Schema, path: tuple[str, ...]) -> Field:
    """The field that a statement names for writing."""
    field = schema.find(path)
    if field is None:
        name = ".".join(path)
        names = [f.name for f in schema.fields]
        close = nearest(name, names)
        raise SqlColumnUnknown(
            f"the table has no column {name!r}",
            hint=f"did you mean {close[0]}?" if close else f"the columns are: {', '.join(names)}",
            column=path[-1],
        )
    return field


def _kind(found: pa.DataType, field: Field) -> pa.DataType:
    """Text becomes what the column is, as a literal in quotes does, and a decimal a float."""
    if not is_scalar(field.type):
        return _floated(found, field.type)
    target = arrow_type(field.type)
    if pa.types.is_null(found):
        return target
    if pa.types.is_string(found) and field.type != _TEXT:
        return pa.binary() if isinstance(field.type, FixedType) else target
    return target if field.type in _FLOATS and pa.types.is_decimal(found) else found


def _floated(found: pa.DataType, wanted: Type) -> pa.DataType:
    """Decimals inside lists, maps and structs become floats too, where the column has those."""
    if pa.types.is_decimal(found) and wanted in _FLOATS:
        return arrow_type(wanted)
    match wanted:
        case ListType(_, element) if pa.types.is_list(found):
            return pa.list_(_floated(found.value_type, element))
        case MapType(_, key, _, value) if pa.types.is_map(found):
            return pa.map_(_floated(found.key_type, key), _floated(found.item_type, value))
        case StructType(fields) if pa.types.is_struct(found):
            known = {f.name.casefold(): f.type for f in fields}
            return pa.struct(
                [f.with_type(_floated(f.type, known.get(f.name.casefold(), _TEXT))) for f in found]
            )
        case _:
            return found


def _cast(column: pa.Array, field: Field, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_string(column.type):
        return read_texts(column, field)
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    return column.cast(kind, safe=False)  # decimals, to the nearest float
