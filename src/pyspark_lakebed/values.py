"""Values as Spark has them: uuids as text, bytes of any length; and back."""

from collections.abc import Iterable, Iterator
from uuid import UUID

import pyarrow as pa
from pyspark.sql import types as st

from lakebed import SchemaMismatch
from lakebed.engines.spark.types import to_spark
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.schema import Schema
from lakebed.model.types import Field, Primitive, walk

_UUID = Primitive("uuid")


def struct_of(schema: Schema) -> st.StructType:
    """The columns as Spark shows them; rows of other versions may lack any value."""
    for field in schema.fields:
        if field.type != _UUID and any(inner.type == _UUID for inner in walk((field,))):
            raise UnsupportedFeature(
                f"column {field.name!r} holds uuids inside of {field.type}",
                hint="leave it out with the option columns, or read it by lake.spark().table(…)",
                column=field.name,
            )
    return _open_struct(to_spark(schema))


def shown(batch: pa.RecordBatch, struct: st.StructType) -> pa.RecordBatch:
    """Columns of a table as the types that Spark expects."""
    columns = [
        _shown(column, field.dataType) for column, field in zip(batch.columns, struct, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def taken(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Rows of Spark for a table of this schema; everything but uuids is checked later on."""
    uuids = [field for field in schema.fields if field.type == _UUID]
    for batch in batches:
        yield _with_uuids(batch, uuids) if uuids else batch


def _shown(column: pa.Array, kind: st.DataType) -> pa.Array:
    if isinstance(kind, st.StringType) and pa.types.is_fixed_size_binary(column.type):
        texts = [None if b is None else str(UUID(bytes=b)) for b in column.to_pylist()]
        return pa.array(texts, pa.string())
    if isinstance(kind, st.BinaryType):
        return column.cast(pa.binary())
    return column


def _with_uuids(batch: pa.RecordBatch, uuids: list[Field]) -> pa.RecordBatch:
    names = {field.name.casefold() for field in uuids}
    for index, name in enumerate(batch.schema.names):
        column = batch.column(index)
        if name.casefold() in names and pa.types.is_string(column.type):
            batch = batch.set_column(index, name, _parsed(name, column))
    return batch


def _parsed(name: str, column: pa.Array) -> pa.Array:
    try:
        found = [None if text is None else UUID(text).bytes for text in column.to_pylist()]
    except ValueError as error:
        raise SchemaMismatch(
            f"column {name!r}: {error}", hint="write uuids as 8-4-4-4-12 digits", column=name
        ) from error
    return pa.array(found, pa.binary(16))


def _open_struct(struct: st.StructType) -> st.StructType:
    return st.StructType([st.StructField(f.name, _open(f.dataType)) for f in struct.fields])


def _open(kind: st.DataType) -> st.DataType:
    match kind:
        case st.StructType():
            return _open_struct(kind)
        case st.ArrayType():
            return st.ArrayType(_open(kind.elementType))
        case st.MapType():
            return st.MapType(_open(kind.keyType), _open(kind.valueType))
        case _:
            return kind
