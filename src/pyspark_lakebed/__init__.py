"""Tables of a lake as a data source of any Spark: `format("lakebed")`, found by this name.

Spark imports this in every process that it starts: what it needs is imported when it is asked for.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark_lakebed.reading import TableReader
    from pyspark_lakebed.stream_reading import TableStreamReader
    from pyspark_lakebed.stream_writing import TableStreamWriter
    from pyspark_lakebed.writing import TableWriter

__all__ = ["DefaultSource"]  # the name that Spark looks for


class DefaultSource(DataSource):
    """Made anew in every process that Spark asks; what it knows are the options."""

    @classmethod
    def name(cls) -> str:
        return "lakebed"

    def schema(self) -> StructType:
        from pyspark_lakebed.options import Options
        from pyspark_lakebed.reading import table_schema
        from pyspark_lakebed.stream_reading import stream_schema
        from pyspark_lakebed.telling import told

        with told():
            options = Options(self.options)
            if options.flag("readChangeFeed"):
                return stream_schema(options)
            return table_schema(options)

    def reader(self, schema: StructType) -> "TableReader":
        from pyspark_lakebed.options import Options
        from pyspark_lakebed.reading import TableReader
        from pyspark_lakebed.telling import told

        with told():
            return TableReader.open(Options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> "TableWriter":
        from pyspark_lakebed.options import Options
        from pyspark_lakebed.telling import told
        from pyspark_lakebed.writing import TableWriter

        with told():
            return TableWriter.open(Options(self.options), schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> "TableStreamReader":  # noqa: N802 - Spark's name
        from pyspark_lakebed.options import Options
        from pyspark_lakebed.stream_reading import TableStreamReader
        from pyspark_lakebed.telling import told

        with told():
            return TableStreamReader(Options(self.options), schema)

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> "TableStreamWriter":
        from pyspark_lakebed.options import Options
        from pyspark_lakebed.stream_writing import TableStreamWriter
        from pyspark_lakebed.telling import told

        with told():
            return TableStreamWriter.open(Options(self.options), schema, overwrite=overwrite)
