"""Many small files made few: what tasks leave that had little to write, as behind a filter."""

import math
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from lakebed.core.plan import Plan
from lakebed.engines.arrow.write import WriteOptions
from lakebed.engines.spark.read import read
from lakebed.model.files import DataFile, staged
from lakebed.model.ids import Version
from lakebed.model.schema import Schema
from lakebed.storage.base import Storage

_LEAST_FILES = 4
_SMALL_PART = 16  # of the size that is meant; larger ones are not worth being written twice


def are_small(files: Sequence[DataFile], options: WriteOptions) -> bool:
    meant = len(files) * options.target_file_size_bytes
    return len(files) >= _LEAST_FILES and _SMALL_PART * _size_bytes(files) < meant


def joined(
    session: SparkSession,
    files: Sequence[DataFile],
    *,
    storage: Storage,
    root: str,
    schema: Schema,
    options: WriteOptions,
) -> DataFrame:
    """Their rows, in as many parts as there should be files."""
    nowhere = Version(0)
    names = tuple(field.name for field in schema.fields)
    plan = Plan(root, nowhere, schema, names, None, tuple(staged(files, nowhere)), 0)
    parts = math.ceil(_size_bytes(files) / options.target_file_size_bytes)
    return read(session, plan, storage).coalesce(parts)


def _size_bytes(files: Sequence[DataFile]) -> int:
    return sum(file.size_bytes for file in files)
