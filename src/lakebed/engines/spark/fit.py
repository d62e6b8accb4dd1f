"""Columns of any DataFrame as a table's exact types, in expressions that run inside of Spark.

The rules are those of `engines.arrow.conform`: by name, and every value is kept exactly or refused.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakebed.engines.arrow.conform import match_names
from lakebed.engines.spark.predicate import literal, named
from lakebed.engines.spark.refusals import refusal
from lakebed.engines.spark.types import check_types, spark_type
from lakebed.model.errors import SchemaMismatch
from lakebed.model.schema import Schema
from lakebed.model.types import (
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    Stored,
    StructType,
    Type,
    children,
    is_scalar,
)

_DIGITS: dict[type[st.DataType], int] = {
    st.ByteType: 3,
    st.ShortType: 5,
    st.IntegerType: 10,
    st.LongType: 19,
}
_FLOATS = (st.FloatType, st.DoubleType)
_UUID = r"(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_SHOWN = 100
_ZEROS: dict[str, Stored] = {"boolean": False, "string": "", "binary": b""}


def fitted(
    frame: DataFrame, schema: Schema, *, beside: Sequence[str] = (), computed: Iterable[str] = ()
) -> DataFrame:
    """The frame with the table's columns, in its order; `beside` are columns to keep behind them.

    `computed` names columns whose decimals may become the nearest float, as in SQL.
    """
    check_types(schema.fields)
    given = [f for f in frame.schema.fields if f.name not in beside]
    at = match_names([f.name for f in given], schema.fields, "")
    columns, rounds = [], set(computed)
    for field, index in zip(schema.fields, at, strict=True):
        if index is None:
            value = left_out(field)
        else:
            name, kind = given[index].name, given[index].dataType
            value = fit(named(name), kind, field, rounds=field.name in rounds)
            value = required(value, field) if given[index].nullable else value
        columns.append(value.alias(field.name))
    return frame.select(*columns, *map(named, beside))


def fit(column: Column, given: st.DataType, field: Field, *, rounds: bool = False) -> Column:
    """The column as the field's type; NULLs stay."""
    return _Place(field.name, rounds).convert(column, given, field.type)


def required(column: Column, field: Field) -> Column:
    """The column, which is never NULL if the field is required."""
    if not field.required:
        return column
    missing = refusal(
        SchemaMismatch,
        F.lit(f"column {field.name!r}: NULL in a required column"),
        hint="fill in the value, or make the column optional in the table",
        column=field.name,
    )
    checked = F.coalesce(column, missing)
    if not isinstance(field.type, Primitive | DecimalType) or field.type == Primitive("uuid"):
        return checked
    # A constant at the end tells Spark that it is never NULL, and so its Parquet writer.
    return F.coalesce(checked, literal(_ZEROS.get(str(field.type), 0), field.type))


def left_out(field: Field) -> Column:
    """What a column gets that the rows do not have."""
    if field.write_default is None:
        return F.lit(None).cast(_kept(field.type))
    assert isinstance(field.type, Primitive | DecimalType | FixedType)
    if field.type == Primitive("uuid"):
        return F.lit(field.write_default)
    return literal(field.write_default, field.type)


def _kept(kind: Type) -> st.DataType:
    """Spark's type of a value on its way into a file."""
    return spark_type(kind, physical=is_scalar(kind))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands, for errors."""

    path: str
    rounds: bool

    def convert(self, column: Column, given: st.DataType, kind: Type) -> Column:
        if isinstance(given, st.NullType):
            return column.cast(_kept(kind))
        if _is_same(given, kind):
            return column
        match kind:
            case StructType():
                return self._struct(column, given, kind)
            case ListType():
                return self._list(column, given, kind)
            case MapType():
                return self._map(column, given, kind)
            case FixedType(length):
                self._check(given, kind, isinstance(given, st.BinaryType))
                fits = F.length(column) == length
                return self._unless(fits, column, column, f"is not {length} bytes long")
            case Primitive("uuid"):
                return self._uuid(column, given, kind)
            case _:
                return self._scalar(column, given, kind)

    def _scalar(self, column: Column, given: st.DataType, kind: Type) -> Column:
        wanted = spark_type(kind)
        to_float = isinstance(wanted, _FLOATS)
        from_float = isinstance(given, _FLOATS) and not isinstance(wanted, st.DecimalType)
        rounded = isinstance(given, st.DecimalType) and to_float and self.rounds
        from_decimal = isinstance(given, st.DecimalType) and not to_float
        numbers = type(given) in _DIGITS or from_float or from_decimal or rounded
        self._check(given, kind, numbers and isinstance(wanted, st.NumericType))
        if rounded or _is_wider(given, wanted):
            return column.cast(wanted)
        fitting = column.try_cast(wanted)
        same = fitting.try_cast(given) == column
        return self._unless(same, fitting, column, f"does not fit {kind} exactly")

    def _uuid(self, column: Column, given: st.DataType, kind: Type) -> Column:
        self._check(given, kind, isinstance(given, st.StringType | st.BinaryType))
        if isinstance(given, st.BinaryType):
            return self._unless(F.length(column) == 16, column, column, "is not 16 bytes long")
        digits = F.unhex(F.replace(column, F.lit("-"), F.lit("")))
        return self._unless(column.rlike(_UUID), digits, column, "is no uuid")

    def _struct(self, column: Column, given: st.DataType, kind: StructType) -> Column:
        self._check(given, kind, isinstance(given, st.StructType))
        assert isinstance(given, st.StructType)
        at = match_names(given.names, kind.fields, f"{self.path}.")
        members = []
        for field, index in zip(kind.fields, at, strict=True):
            if index is None:
                value = left_out(field)
            else:
                below = replace(self, path=f"{self.path}.{field.name}")
                member = given.fields[index]
                value = below.convert(column.getField(member.name), member.dataType, field.type)
            members.append(value.alias(field.name))
        return F.when(column.isNotNull(), F.struct(*members))

    def _list(self, column: Column, given: st.DataType, kind: ListType) -> Column:
        self._check(given, kind, isinstance(given, st.ArrayType))
        assert isinstance(given, st.ArrayType)
        (element,), old = children(kind), given.elementType
        below = replace(self, path=f"{self.path}.element")
        return F.transform(column, lambda each: below.convert(each, old, element.type))

    def _map(self, column: Column, given: st.DataType, kind: MapType) -> Column:
        self._check(given, kind, isinstance(given, st.MapType))
        assert isinstance(given, st.MapType)
        (key, value), olds = children(kind), (given.keyType, given.valueType)
        keys, values = (replace(self, path=f"{self.path}.{n}") for n in ("key", "value"))

        def pair(each: Column) -> Column:
            return F.struct(
                keys.convert(each.getField("key"), olds[0], key.type).alias("key"),
                values.convert(each.getField("value"), olds[1], value.type).alias("value"),
            )

        return F.map_from_entries(F.transform(F.map_entries(column), pair))

    def _unless(self, good: Column, value: Column, given: Column, reason: str) -> Column:
        shown = F.substring(given.cast("string"), 1, _SHOWN)
        refused = refusal(
            SchemaMismatch,
            F.concat(F.lit(f"column {self.path!r}: "), shown, F.lit(f" {reason}")),
            hint="correct the value, or give the column another type",
            column=self.path,
        )
        return F.when(given.isNull(), F.lit(None)).when(good, value).otherwise(refused)

    def _check(self, given: st.DataType, kind: Type, fits: bool) -> None:
        if not fits:
            raise SchemaMismatch(
                f"column {self.path!r} has Spark's type {given.simpleString()}, the table has"
                f" {kind}",
                hint=f"cast the column to {kind} first",
                column=self.path,
            )


def _is_same(given: st.DataType, kind: Type) -> bool:
    """Is nothing to be converted, renamed or checked?"""
    match kind:
        case StructType(fields):
            return (
                isinstance(given, st.StructType)
                and given.names == [f.name for f in fields]
                and all(_is_same(g.dataType, f.type) for g, f in zip(given, fields, strict=True))
            )
        case ListType(_, element):
            return isinstance(given, st.ArrayType) and _is_same(given.elementType, element)
        case MapType(_, key, _, value):
            return (
                isinstance(given, st.MapType)
                and _is_same(given.keyType, key)
                and _is_same(given.valueType, value)
            )
        case Primitive("string"):
            return isinstance(given, st.StringType)
        case Primitive("uuid") | FixedType():
            return False
        case _:
            return bool(given == spark_type(kind))


def _is_wider(given: st.DataType, wanted: st.DataType) -> bool:
    """Does every value of one have its twin in the other?"""
    digits = _DIGITS.get(type(given))
    if digits is not None and type(wanted) in _DIGITS:
        return digits <= _DIGITS[type(wanted)]
    if isinstance(wanted, st.DecimalType):
        whole = wanted.precision - wanted.scale
        if isinstance(given, st.DecimalType):
            return given.scale <= wanted.scale and given.precision - given.scale <= whole
        return digits is not None and digits <= whole
    return isinstance(given, st.FloatType) and isinstance(wanted, st.DoubleType)
