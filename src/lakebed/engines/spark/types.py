"""Model types as Spark's, and Spark's as Arrow's: each maps exactly or is refused."""

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import types as st

from lakebed.model.errors import UnsupportedFeature
from lakebed.model.schema import Schema
from lakebed.model.types import (
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    StructType,
    Type,
    walk,
)

FIELD_ID = "parquet.field.id"
_SPARK: dict[str, st.DataType] = {
    "boolean": st.BooleanType(),
    "byte": st.ByteType(),
    "short": st.ShortType(),
    "int": st.IntegerType(),
    "long": st.LongType(),
    "float": st.FloatType(),
    "double": st.DoubleType(),
    "date": st.DateType(),
    "timestamp": st.TimestampType(),
    "timestamp_ntz": st.TimestampNTZType(),
    "string": st.StringType(),
    "uuid": st.StringType(),  # in its usual text, as the Iceberg connector has it
    "binary": st.BinaryType(),
}
_IN_FILES = {**_SPARK, "uuid": st.BinaryType()}
_ARROW: dict[type[st.DataType], pa.DataType] = {
    st.BooleanType: pa.bool_(),
    st.ByteType: pa.int8(),
    st.ShortType: pa.int16(),
    st.IntegerType: pa.int32(),
    st.LongType: pa.int64(),
    st.FloatType: pa.float32(),
    st.DoubleType: pa.float64(),
    st.DateType: pa.date32(),
    st.TimestampType: pa.timestamp("us", "UTC"),
    st.TimestampNTZType: pa.timestamp("us"),
    st.BinaryType: pa.binary(),
    st.NullType: pa.null(),
}


def check_types(fields: Iterable[Field]) -> None:
    """Refuse columns that Spark has no exact type for."""
    for field in fields:
        for inner in walk((field,)):
            if isinstance(inner.type, Primitive) and inner.type.name not in _SPARK:
                raise UnsupportedFeature(
                    f"Spark has no type for column {field.name!r} of type {field.type}",
                    hint="leave it out: columns=[…] names the columns to read",
                    column=field.name,
                )


def to_spark(schema: Schema, *, physical: bool = False) -> st.StructType:
    """The schema as Spark has it; `physical`: with the names and ids of data files."""
    check_types(schema.fields)
    return _struct(schema.fields, physical)


def file_schema(fields: Iterable[Field]) -> st.StructType:
    """Columns as files hold them, to be found by their physical names alone."""
    return _without_ids(_struct(fields, True))


def spark_type(kind: Type, *, physical: bool = False) -> st.DataType:
    match kind:
        case Primitive(name):
            return (_IN_FILES if physical else _SPARK)[name]
        case DecimalType(precision, scale):
            return st.DecimalType(precision, scale)
        case FixedType():
            return st.BinaryType()
        case StructType(fields):
            return _struct(fields, physical)
        case ListType(_, element, required):
            return st.ArrayType(spark_type(element, physical=physical), not required)
        case MapType(_, key, _, value, required):
            inner = spark_type(value, physical=physical)
            return st.MapType(spark_type(key, physical=physical), inner, not required)


def _struct(fields: Iterable[Field], physical: bool) -> st.StructType:
    return st.StructType([_field(field, physical) for field in fields])


def _field(field: Field, physical: bool) -> st.StructField:
    kind = spark_type(field.type, physical=physical)
    if not physical:
        return st.StructField(field.name, kind, not field.required)
    return st.StructField(field.physical, kind, not field.required, {FIELD_ID: field.id})


def _without_ids(struct: st.StructType) -> st.StructType:
    # Spark pushes filters down by name even while it reads by id, so that rows get lost.
    return st.StructType([_named(field) for field in struct.fields])


def _named(field: st.StructField) -> st.StructField:
    return st.StructField(field.name, _all_named(field.dataType))


def _all_named(kind: st.DataType) -> st.DataType:
    match kind:
        case st.StructType():
            return _without_ids(kind)
        case st.ArrayType():
            return st.ArrayType(_all_named(kind.elementType))
        case st.MapType():
            return st.MapType(_all_named(kind.keyType), _all_named(kind.valueType))
        case _:
            return kind


def from_spark(struct: st.StructType) -> pa.Schema:
    """The schema of a DataFrame as tables are made from it."""
    return pa.schema([_arrow_field(field) for field in struct.fields])


def _arrow_field(field: st.StructField) -> pa.Field:
    return pa.field(field.name, _arrow(field.dataType, field.name), field.nullable)


def _arrow(kind: st.DataType, column: str) -> pa.DataType:
    match kind:
        case st.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case st.StructType():
            return pa.struct([_arrow_field(field) for field in kind.fields])
        case st.ArrayType():
            element = _arrow(kind.elementType, column)
            return pa.list_(pa.field("element", element, kind.containsNull))
        case st.MapType():
            value = _arrow(kind.valueType, column)
            return pa.map_(
                _arrow(kind.keyType, column), pa.field("value", value, kind.valueContainsNull)
            )
        case st.StringType():  # with any collation, and CHAR and VARCHAR: the text is the same
            return pa.string()
        case _ if type(kind) in _ARROW:
            return _ARROW[type(kind)]
        case _:
            raise UnsupportedFeature(
                f"no table can hold column {column!r} of Spark's type {kind.simpleString()}",
                hint="cast it first, to text or to a number",
                column=column,
            )
