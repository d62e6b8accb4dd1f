"""A published version as a DataFrame: Iceberg's own reader on the metadata of that version."""

from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType

from lakebed.engines.spark.origins import without_lines
from lakebed.engines.spark.predicate import named, to_column
from lakebed.engines.spark.types import check_types, spark_type
from lakebed.model.errors import SparkError
from lakebed.model.expressions import Predicate
from lakebed.model.schema import Schema
from lakebed.model.types import Field


def read_published(
    session: SparkSession,
    metadata_location: str,
    schema: Schema,
    *,
    columns: Sequence[str],
    predicate: Predicate | None,
) -> DataFrame:
    """`schema` is the version's, `predicate` is bound to it; later filters are pushed down too."""
    by_name = {field.name: field for field in schema.fields}
    check_types(by_name[name] for name in columns)
    try:
        rows = session.read.format("iceberg").load(metadata_location)
        kinds = {field.name: field.dataType for field in rows.schema.fields}
    except (PySparkException, Py4JError) as error:
        if "DATA_SOURCE_NOT_FOUND" not in str(error):
            raise
        raise SparkError(
            "this Spark session has no Iceberg connector",
            hint="run `lakebed spark jars` and start it with lake.spark(connectors=True)",
        ) from error
    with without_lines():
        if predicate is not None:
            rows = rows.where(to_column(predicate))
        return rows.select(*(_exact(by_name[name], kinds[name]) for name in columns))


def _exact(field: Field, found: DataType) -> Column:
    """Iceberg has no bytes and shorts: such columns are ints to its reader."""
    wanted = spark_type(field.type)
    column = named(field.name)
    same = found.simpleString() == wanted.simpleString()
    return column if same else column.cast(wanted).alias(field.name)
