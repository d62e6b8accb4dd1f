"""Data files written in Python workers by the Arrow writer: for partitions, nested types, and
storage that Spark's own writer does not reach."""

import pickle
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.write import LINEAGE, WriteOptions, write
from lakebed.engines.spark.refusals import Refused
from lakebed.model.errors import LakebedError
from lakebed.model.files import DataFile
from lakebed.model.partitioning import PartitionSpec, SortOrder
from lakebed.model.schema import Schema
from lakebed.storage.open import open_storage

Batches = Iterator[pa.RecordBatch]
_RECORD = "record binary"


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker must know to write a part of the rows; it travels to the executors."""

    storage_uri: str
    root: str
    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    options: WriteOptions
    name_prefix: str
    lineage: bool


def write_in_workers(frame: DataFrame, order: Order) -> list[DataFile]:
    """Only what attempts that succeeded handed in counts: Spark takes one result per task."""
    rows = frame.mapInArrow(partial(_write_part, order), _RECORD).collect()
    return [pickle.loads(row["record"]) for row in rows]  # noqa: S301 - our own, by Spark's hand


def _write_part(order: Order, batches: Iterable[pa.RecordBatch]) -> Batches:
    # Attempts of one task must not meet: each has names of its own.
    prefix = f"{order.name_prefix}-{uuid.uuid4().hex[:8]}"
    try:
        files = write(
            _conformed(batches, order),
            storage=open_storage(order.storage_uri),
            root=order.root,
            schema=order.schema,
            spec=order.spec,
            sort_order=order.sort_order,
            options=order.options,
            name_prefix=prefix,
            lineage=order.lineage,
        )
    except LakebedError as error:
        raise Refused(error) from error
    records = pa.array([pickle.dumps(file) for file in files], pa.binary())
    yield pa.RecordBatch.from_arrays([records], ["record"])


def _conformed(batches: Iterable[pa.RecordBatch], order: Order) -> Batches:
    """Required members and texts are checked here once more; lineage comes last, as it is."""
    schema = order.schema
    if order.lineage:
        schema = Schema(schema.id, (*schema.fields, *LINEAGE))
    return conform(batches, schema)
