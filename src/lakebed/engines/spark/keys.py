"""Values that a source's keys have: for leaving files out, and for finding a key given twice."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakebed.engines.arrow.transform import stored
from lakebed.engines.arrow.types import arrow_type
from lakebed.engines.spark.joining import Source
from lakebed.engines.spark.predicate import named
from lakebed.engines.spark.types import from_spark, spark_type
from lakebed.model.types import Primitive, Scalar, Stored

SourceKey = tuple[str, Scalar]  # a column of the source, and the type that it is compared as
SourceValues = dict[SourceKey, tuple[list[Stored], bool]]


def repeated_key(source: Source, key: Sequence[str]) -> dict[str, object] | None:
    columns = [named(name) for name in key]
    counted = source.frame.groupBy(*columns).agg(F.count("*").alias("_lakebed_rows"))
    twice = counted.where(F.col("_lakebed_rows") > 1).limit(1).select(*columns).collect()
    return twice[0].asDict() if twice else None


def values_of(source: Source, keys: Iterable[SourceKey], most: int) -> SourceValues:
    """Of the columns that compare as the table's do; a small source is looked at once for all."""
    columns = {key: _compared(source, *key) for key in keys}
    known = {key: column for key, column in columns.items() if column is not None}
    if not known:
        return {}
    if source.rows > most:
        return {key: _some(source.frame, column, key[1], most) for key, column in known.items()}
    rows = source.frame.select(*(column.alias(str(n)) for n, column in enumerate(known.values())))
    listed = rows.toArrow()  # no shuffle: what is there twice is found here
    return {key: (_sorted(listed.column(n), key[1]), True) for n, key in enumerate(known)}


def _some(frame: DataFrame, column: Column, kind: Scalar, most: int) -> tuple[list[Stored], bool]:
    some = frame.select(column.alias("v")).where(F.col("v").isNotNull())
    listed = some.distinct().limit(most + 1).toArrow()
    are_all = listed.num_rows <= most
    if not are_all:
        ends = some.agg(F.min("v").alias("low"), F.max("v").alias("high"))
        listed = ends.select(F.explode(F.array("low", "high")).alias("v")).toArrow()
    return _sorted(listed.column(0), kind), are_all


def _sorted(values: pa.ChunkedArray, kind: Scalar) -> list[Stored]:
    array = pc.unique(values.drop_null()).cast(arrow_type(kind))
    found: list[Stored] = stored(array, kind).to_pylist()
    return sorted(found)


def _compared(source: Source, column: str, kind: Scalar) -> Column | None:
    """The column as the table's type; None when the two do not compare as values of one do."""
    given = source.find(column)
    if given is None or kind == Primitive("uuid"):
        return None
    theirs = from_spark(source.frame.select(named(given.name)).schema).field(0).type
    if not _compare_alike(theirs, arrow_type(kind)):
        return None
    return named(given.name).cast(spark_type(kind))


def _compare_alike(theirs: pa.DataType, ours: pa.DataType) -> bool:
    """Do two types hold values that are equal only if they are the same?"""
    if pa.types.is_integer(theirs) and pa.types.is_integer(ours):
        return bool(theirs.bit_width <= ours.bit_width)
    return bool(theirs == ours)
