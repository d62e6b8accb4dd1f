"""Columns of data files as the table has them now: renamed, filled with defaults, and guarded
where Spark would push a filter down wrongly."""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakebed.engines.spark.predicate import literal, named
from lakebed.engines.spark.types import spark_type
from lakebed.model.ids import FieldId
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

_UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


@dataclass(frozen=True, slots=True)
class Shape:
    """How files differ from the table: fields to fill in, and fields whose filters must stay."""

    filled: frozenset[FieldId] = frozenset()  # with a default: the files lack them
    # may hold NaN, which no statistics tell of, or -0.0, which dictionaries keep apart from 0.0
    floats: frozenset[FieldId] = frozenset()

    def shown(self, field: Field) -> Column:
        """A top-level column of the table, made from the file's."""
        if field.id in self.filled:
            return _default(field).alias(field.name)
        return self._value(named(field.physical), field, guarded=True).alias(field.name)

    def keeps(self, field: Field) -> bool:
        """Is the table's column the file's, by its name too?"""
        names_stay = all(inner.name == inner.physical for inner in walk((field,)))
        return names_stay and self._is_plain(field, guarded=True)

    def _member(self, struct: Column, field: Field, guarded: bool) -> Column:
        if field.id in self.filled:
            # Spark takes a literal for NOT NULL, which is more than it can keep in a NULL struct.
            return F.when(struct.isNotNull(), _default(field))
        return self._value(struct.getField(field.physical), field, guarded)

    def _value(self, column: Column, field: Field, guarded: bool) -> Column:
        kind = field.type
        if isinstance(kind, Primitive | DecimalType | FixedType):
            return self._leaf(column, field, guarded)
        if not self._is_plain(field, guarded):
            return self._nested(column, kind, guarded)
        # Members are matched by their places: this only gives them their names.
        renamed = any(inner.name != inner.physical for inner in walk((field,)) if inner != field)
        return column.cast(_open(spark_type(kind))) if renamed else column

    def _is_plain(self, field: Field, guarded: bool) -> bool:
        """Is nothing below it to be filled in, converted or guarded?"""
        return not any(
            inner.id in self.filled
            or inner.type == Primitive("uuid")
            or (guarded and _is_guarded(inner, self.floats))
            for inner in walk((field,))
        )

    def _leaf(self, column: Column, field: Field, guarded: bool) -> Column:
        if field.type == Primitive("uuid"):
            return _uuid_text(column)
        if not guarded or not _is_guarded(field, self.floats):
            return column
        if isinstance(field.type, DecimalType):
            # There and back: a wider literal must not reach the statistics of a narrower file.
            return F.negate(F.negate(column))
        return F.nanvl(column, F.lit(float("nan")).cast(spark_type(field.type)))

    def _nested(self, column: Column, kind: Type, guarded: bool) -> Column:
        match kind:
            case StructType(fields):
                members = (self._member(column, f, guarded).alias(f.name) for f in fields)
                return F.when(column.isNotNull(), F.struct(*members))
            case ListType(element_id, element):
                inner = Field(element_id, "element", element)
                return F.transform(column, lambda each: self._value(each, inner, False))
            case MapType(key_id, key, value_id, value):
                key_field, value_field = Field(key_id, "key", key), Field(value_id, "value", value)
                pairs = F.transform(
                    F.map_entries(column),
                    lambda pair: F.struct(
                        self._value(pair.getField("key"), key_field, False).alias("key"),
                        self._value(pair.getField("value"), value_field, False).alias("value"),
                    ),
                )
                return F.map_from_entries(pairs)
            case _:
                return column


def _open(kind: st.DataType) -> st.DataType:
    """Any value may be missing: Spark takes none of a file for required, and casts to none."""
    match kind:
        case st.StructType(fields=fields):
            return st.StructType([st.StructField(f.name, _open(f.dataType)) for f in fields])
        case st.ArrayType(elementType=element):
            return st.ArrayType(_open(element))
        case st.MapType(keyType=key, valueType=value):
            return st.MapType(_open(key), _open(value))
        case _:
            return kind


def _default(field: Field) -> Column:
    assert field.initial_default is not None
    assert isinstance(field.type, Primitive | DecimalType | FixedType)
    return literal(field.initial_default, field.type)


def _uuid_text(column: Column) -> Column:
    digits = F.lower(F.hex(column))
    text = F.concat_ws("-", *(digits.substr(first, length) for first, length in _UUID_PARTS))
    return F.when(column.isNotNull(), text)


def _is_guarded(field: Field, floats: frozenset[FieldId]) -> bool:
    """Would Spark leave out row groups by a filter on it that must not be left out?"""
    if isinstance(field.type, DecimalType):
        return bool(field.widened)
    return field.id in floats
