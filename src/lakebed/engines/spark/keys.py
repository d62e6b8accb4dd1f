"""Values that a source's keys have: for leaving files out, and for finding a key given twice."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import functions as F

from lakebed.engines.arrow.transform import stored
from lakebed.engines.arrow.types import arrow_type
from lakebed.engines.spark.joining import Source
from lakebed.engines.spark.predicate import named
from lakebed.engines.spark.types import from_spark, spark_type
from lakebed.model.types import Primitive, Scalar, Stored


def repeated_key(source: Source, key: Sequence[str]) -> dict[str, object] | None:
    columns = [named(name) for name in key]
    counted = source.frame.groupBy(*columns).agg(F.count("*").alias("_lakebed_rows"))
    twice = counted.where(F.col("_lakebed_rows") > 1).limit(1).select(*columns).collect()
    return twice[0].asDict() if twice else None


def values_of(
    source: Source, column: str, kind: Scalar, most: int
) -> tuple[list[Stored], bool] | None:
    given = source.find(column)
    if given is None or kind == Primitive("uuid"):
        return None
    theirs = from_spark(source.frame.select(named(given.name)).schema).field(0).type
    if not _compare_alike(theirs, arrow_type(kind)):
        return None
    values = source.frame.select(named(given.name).cast(spark_type(kind)).alias("v"))
    some = values.where(F.col("v").isNotNull())
    listed = some.distinct().limit(most + 1).toArrow()
    are_all = listed.num_rows <= most
    if not are_all:
        ends = some.agg(F.min("v").alias("low"), F.max("v").alias("high"))
        listed = ends.select(F.explode(F.array("low", "high")).alias("v")).toArrow()
    array = listed.column(0).combine_chunks().cast(arrow_type(kind))
    found: list[Stored] = stored(array, kind).to_pylist()
    return sorted(found), are_all


def _compare_alike(theirs: pa.DataType, ours: pa.DataType) -> bool:
    """Do two types hold values that are equal only if they are the same?"""
    if pa.types.is_integer(theirs) and pa.types.is_integer(ours):
        return bool(theirs.bit_width <= ours.bit_width)
    return bool(theirs == ours)
