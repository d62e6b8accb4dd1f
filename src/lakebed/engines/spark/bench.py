"""Spark as operations use it: frames read from plans, and written as data files."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakebed.core.plan import Plan
from lakebed.engines.arrow.write import WriteOptions
from lakebed.engines.spark.read import read
from lakebed.engines.spark.types import from_spark
from lakebed.engines.spark.write import write
from lakebed.model.errors import InvalidInput
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile
from lakebed.model.partitioning import PartitionSpec, SortOrder
from lakebed.model.schema import Schema
from lakebed.storage.base import Storage


@dataclass(frozen=True, slots=True)
class Bench:
    session: SparkSession
    storage: Storage

    def check_frame(self, given: object) -> DataFrame:
        if not isinstance(given, DataFrame):
            raise InvalidInput(
                f"{type(given).__name__} is no DataFrame of Spark",
                hint="make one with sp.session.createDataFrame(…), or use the table's own methods",
            )
        return given

    def arrow_schema(self, frame: DataFrame) -> pa.Schema:
        return from_spark(frame.schema)

    def read(self, plan: Plan, metadata: tuple[str, ...] = ()) -> DataFrame:
        return read(self.session, plan, self.storage, metadata=metadata)

    def write(
        self,
        frame: DataFrame,
        *,
        root: str,
        schema: Schema,
        spec: PartitionSpec,
        sort_order: SortOrder,
        options: WriteOptions,
        name_prefix: str,
        lineage: bool,
        checks: Mapping[str, str],
        must_match: Predicate | str | None = None,
    ) -> list[DataFile]:
        return write(
            self.session,
            frame,
            storage=self.storage,
            root=root,
            schema=schema,
            spec=spec,
            sort_order=sort_order,
            options=options,
            name_prefix=name_prefix,
            lineage=lineage,
            checks=checks,
            must_match=must_match,
        )
