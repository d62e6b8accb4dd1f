"""How rows lie in files: which go together, in which order, and how many to a file."""

from collections.abc import Iterable, Mapping

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from lakebed.engines.arrow.exact import exact
from lakebed.engines.arrow.nested import plain
from lakebed.engines.arrow.transform import transformed
from lakebed.engines.spark.predicate import named
from lakebed.engines.spark.session import is_connect
from lakebed.model.partitioning import PartitionSpec, SortOrder
from lakebed.model.schema import Schema
from lakebed.model.transforms import Transform
from lakebed.model.types import INTEGERS, DecimalType, FixedType, Primitive, Type

# Spark's hash takes the hash of the value before as its seed; this number's is 0, which is the
# seed that Iceberg's buckets begin with.
_SEED_ZERO = -1693959553
_SMALL_BYTES = 64 * 2**20
_UNKNOWN_BYTES = 2**63 - 1  # what Spark says of a source that does not tell its size
_LEAST_ROWS = 10_000
_COMPRESSED = 4  # a guess: what encodings and zstd save, with care
_WIDTHS = {"boolean": 1, "byte": 1, "short": 2, "int": 4, "float": 4, "date": 4, "string": 20}


def gathered(frame: DataFrame, spec: PartitionSpec, schema: Schema) -> DataFrame:
    """Rows of one partition come to one task, or to several when they are many."""
    columns = frame.columns
    return moved(frame, partition_keys(spec, schema)).select(*map(named, columns))


def partition_keys(spec: PartitionSpec, schema: Schema) -> dict[str, Column]:
    """By names that no column has."""
    return {
        f"_lakebed_partition_{n}": _key(
            _source(schema, f.source_id), schema.field(f.source_id).type, f.transform
        )
        for n, f in enumerate(spec.fields)
    }


def moved(frame: DataFrame, keys: Mapping[str, Column]) -> DataFrame:
    """The rows with their keys, those of one key together."""
    columns = [column.alias(name) for name, column in keys.items()]
    keyed = frame.select(*map(named, frame.columns), *columns)
    if is_adaptive(frame.sparkSession):
        return keyed.hint("rebalance", *keys)
    return keyed.repartition(*map(named, keys))


def evened(frame: DataFrame) -> DataFrame:
    """Rows of a frame that is small, or may be, come together; a large one stays as it is."""
    size_bytes = _estimate(frame)
    small = size_bytes is None or size_bytes <= _SMALL_BYTES
    return frame.hint("rebalance") if small and is_adaptive(frame.sparkSession) else frame


def is_adaptive(session: SparkSession) -> bool:
    return str(session.conf.get("spark.sql.adaptive.enabled")).lower() == "true"


def has_plain_order(order: SortOrder) -> bool:
    return all(field.transform.name == "identity" for field in order.fields)


def ordered(
    frame: DataFrame, order: SortOrder, schema: Schema, *, behind: Iterable[str] = ()
) -> DataFrame:
    """Sorted within each file, behind some keys; to Spark too NaN is the greatest number."""
    if not order.fields:
        return frame
    keys = [named(name).asc() for name in behind]
    for field in order.fields:
        column = _source(schema, field.source_id)
        if field.descending:
            keys.append(
                column.desc_nulls_first() if field.nulls_first else column.desc_nulls_last()
            )
        else:
            keys.append(column.asc_nulls_first() if field.nulls_first else column.asc_nulls_last())
    return frame.sortWithinPartitions(*keys)


def rows_per_file(schema: Schema, size_bytes: int) -> int:
    """A guess: files are cut before they are far above the size meant."""
    width = sum(_width(field.type) for field in schema.walk())
    return max(_LEAST_ROWS, _COMPRESSED * size_bytes // max(1, width))


def _width(kind: Type) -> int:
    if isinstance(kind, Primitive):
        return _WIDTHS.get(kind.name, 8)
    return 8 if isinstance(kind, DecimalType) else 0


def _source(schema: Schema, field_id: int) -> Column:
    top, *members = schema.path_of(field_id)
    column = named(top.name)
    for member in members:
        column = column.getField(member.name)
    return column


def _key(column: Column, kind: Type, transform: Transform) -> Column:
    """What all rows of a partition share; the values themselves are told by the Arrow writer."""
    whole = isinstance(kind, Primitive) and kind.name in INTEGERS
    match transform.name:
        case "identity":
            return column
        case "year" | "month" | "day" | "hour":
            return F.date_trunc(transform.name, column)
        case "bucket" if whole:
            hashed = F.hash(F.lit(_SEED_ZERO), column.cast("long"))
            return F.pmod(hashed.bitwiseAND(F.lit(0x7FFFFFFF)), F.lit(transform.width))
        case "truncate" if whole:
            return column.cast("long") - F.pmod(column.cast("long"), F.lit(transform.width))
        case "truncate" if kind == Primitive("string"):
            return F.substring(column, 1, transform.width)
        case _:
            return _by_arrow(column, kind, transform)


def _by_arrow(column: Column, kind: Type, transform: Transform) -> Column:
    assert isinstance(kind, Primitive | DecimalType | FixedType)
    scalar = kind

    def values(array: pa.Array) -> pa.Array:
        found = transformed(exact(plain(array), scalar), scalar, transform)
        return pa.array([None if v is None else str(v) for v in found.to_pylist()], pa.string())

    # The stubs ask for the kind of function, which it finds by itself.
    return arrow_udf(values, "string")(column)  # type: ignore[call-overload,no-any-return]


def _estimate(frame: DataFrame) -> int | None:
    """What Spark's planner thinks that the rows take; None: it does not know.

    It does not of rows that Python made, and a client of Spark Connect cannot ask.
    """
    if is_connect(frame.sparkSession):
        return None
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - no other way
    leaves = plan.collectLeaves()
    sizes = [_size_bytes(leaves.apply(number)) for number in range(leaves.size())]
    return None if max(sizes, default=0) >= _UNKNOWN_BYTES else _size_bytes(plan)


def _size_bytes(plan: JavaObject) -> int:
    return int(str(plan.stats().sizeInBytes()))
