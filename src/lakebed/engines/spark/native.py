"""Data files by Spark's own Parquet writer: the fast way for flat rows on a file system."""

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from lakebed.engines.arrow.exact import FIRST_DAY, LAST_DAY
from lakebed.engines.arrow.stats import file_stats
from lakebed.engines.arrow.write import LINEAGE, split_offsets
from lakebed.engines.spark.arrow_out import Order
from lakebed.engines.spark.layout import evened, has_plain_order, moved, ordered, rows_per_file
from lakebed.engines.spark.placing import Placing, file_keys, is_parted
from lakebed.engines.spark.predicate import named
from lakebed.engines.spark.types import FIELD_ID, spark_type
from lakebed.model.errors import LakebedError, SchemaMismatch
from lakebed.model.files import ColumnStats, DataFile
from lakebed.model.ids import FieldId
from lakebed.model.partitioning import UNSORTED
from lakebed.model.schema import Schema
from lakebed.model.types import DecimalType, Field, Primitive, StructType, is_scalar
from lakebed.storage.base import Storage
from lakebed.storage.folders import sync_folder

_ELSEWHERE = ("uuid",)  # types that Spark would write as another one
_FLOATS = (Primitive("float"), Primitive("double"))
_DAY_MICROS = 86_400_000_000
_READERS = 8
_ROW_GROUP_ROWS = 2**18  # Iceberg's reader skips no pages: it takes row groups whole
_DICTIONARY_BYTES = 2**18  # each row group begins anew; Parquet's 1 MiB is for larger ones
_CODECS = ("zstd", "snappy", "gzip")  # that mean the same to both writers
# What a session of the user's own may have set to something else.
_TIMES = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
_NEEDED = {
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}


def is_native(session: SparkSession, order: Order) -> bool:
    """Does Spark's writer give the same files as ours, but for their rows' order of arrival?"""
    return (
        order.storage_uri.startswith("file:")
        and order.options.codec in _CODECS
        and is_parted(session, order.spec, order.schema)
        and has_plain_order(order.sort_order)
        and all(_is_flat(field) for field in order.schema.fields)
        and all(session.conf.get(name) == value for name, value in _needed(order.schema).items())
    )


def _needed(schema: Schema) -> dict[str, str]:
    has_times = any(field.type == Primitive("timestamp") for field in schema.walk())
    return {**_NEEDED, **_TIMES} if has_times else _NEEDED


def _is_flat(field: Field) -> bool:
    """No list or map, whose elements Spark gives no ids; no required member of a struct."""
    if isinstance(field.type, StructType):
        return all(not f.required and _is_flat(f) for f in field.type.fields)
    if isinstance(field.type, Primitive):
        return field.type.name not in _ELSEWHERE
    return isinstance(field.type, DecimalType)


def write_natively(frame: DataFrame, order: Order, storage: Storage) -> list[DataFile]:
    """The job's own commit decides which files count: nothing else is in the folder then."""
    folder = f"data/{order.name_prefix}"
    floats = [path for path in _leaves(order.schema) if path[-1].type in _FLOATS]
    keys = file_keys(order.spec, order.schema)
    together = moved(frame, keys) if keys else evened(frame)
    watched, seen = _watched(together, floats)
    # Last: whatever came behind it, Spark would not know that the rows are sorted by their keys.
    rows = ordered(watched, order.sort_order, order.schema, behind=keys)
    options = order.options
    _physical(rows, order, keys).write.partitionBy(*keys).options(
        **{
            "compression": options.codec,
            f"parquet.compression.codec.{options.codec}.level": str(options.level),
            # Files of a task appear when the job commits: no attempt that failed leaves any.
            "mapreduce.fileoutputcommitter.algorithm.version": "1",
            "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
            "parquet.block.row.count.limit": str(min(options.row_group_rows, _ROW_GROUP_ROWS)),
            "parquet.dictionary.page.size": str(_DICTIONARY_BYTES),
            "maxRecordsPerFile": str(rows_per_file(order.schema, options.target_file_size_bytes)),
        }
    ).parquet(storage.location(f"{order.root}/{folder}"))
    footers = _Footers(storage, order, _nan_counts(floats, seen))
    if not keys:
        return footers.files(folder)
    return Placing(storage, order, footers.file).files(folder)


def _physical(frame: DataFrame, order: Order, keys: Iterable[str]) -> DataFrame:
    fields = (*order.schema.fields, *(LINEAGE if order.lineage else ()))
    return frame.select(*(_column(field) for field in fields), *map(named, keys))


def _column(field: Field) -> Column:
    column = named(field.name)
    if not is_scalar(field.type):
        column = column.cast(spark_type(field.type, physical=True))
    return column.alias(field.physical, metadata={FIELD_ID: field.id})


def _leaves(schema: Schema) -> Iterator[tuple[Field, ...]]:
    for field in schema.walk():
        if is_scalar(field.type):
            yield tuple(schema.path_of(field.id))


def _watched(
    frame: DataFrame, floats: list[tuple[Field, ...]]
) -> tuple[DataFrame, Observation | None]:
    """NaNs are counted on the way: footers do not tell of them."""
    if not floats:
        return frame, None
    seen = Observation()
    sums = [F.sum(F.isnan(_at(path)).cast("long")).alias(str(path[-1].id)) for path in floats]
    return frame.observe(seen, *sums), seen


def _at(path: tuple[Field, ...]) -> Column:
    column = named(path[0].name)
    for member in path[1:]:
        column = column.getField(member.name)
    return column


def _nan_counts(
    floats: list[tuple[Field, ...]], seen: Observation | None
) -> dict[FieldId, int | None]:
    """0 where there is none in any file; None where some file has some."""
    found = seen.get if seen is not None else {}
    return {p[-1].id: 0 if found.get(str(p[-1].id)) == 0 else None for p in floats}


@dataclass(frozen=True, slots=True)
class _Footers:
    storage: Storage
    order: Order
    nan_counts: Mapping[FieldId, int | None]

    def files(self, within: str) -> list[DataFile]:
        root = f"{self.order.root}/{within}"
        self._tidy(root)
        # An attempt that came too late may still be at work in a folder below.
        listed = [s.path for s in self.storage.list(root) if s.path.rpartition("/")[0] == root]
        paths = [path for path in listed if path.endswith(".parquet")]
        with ThreadPoolExecutor(_READERS) as pool:
            found = list(pool.map(self.file, paths))
        for folder in (root, root.rpartition("/")[0]):
            sync_folder(self.storage.location(folder))
        return [file for file in found if file is not None]

    def _tidy(self, root: str) -> None:
        """Hadoop's checksums are of no use to anybody here."""
        for extra in Path(self.storage.location(root)).glob(".*.crc"):
            with suppress(OSError):
                extra.unlink()

    def file(self, path: str) -> DataFile | None:
        """None of a file without rows, which is deleted."""
        with self.storage.open_input(path) as source:
            metadata, size_bytes = pq.read_metadata(source), source.size()
        if not metadata.num_rows:
            with suppress(LakebedError):
                self.storage.delete(path)
            return None
        with Path(self.storage.location(path)).open("rb") as written:
            os.fsync(written.fileno())
        order, counts = self.order, self.nan_counts
        known = {field_id: count for field_id, count in counts.items() if count is not None}
        stats = file_stats(metadata, order.schema, known)
        return DataFile(
            path=path.removeprefix(f"{order.root}/"),
            size_bytes=size_bytes,
            record_count=metadata.num_rows,
            spec_id=order.spec.id,
            partition=(),
            stats={i: self._safe(i, s) for i, s in stats.items()},
            sort_order_id=order.sort_order.id if order.sort_order.fields else UNSORTED.id,
            split_offsets=split_offsets(metadata),
        )

    def _safe(self, field_id: FieldId, stats: ColumnStats) -> ColumnStats:
        field = self.order.schema.field(field_id)
        if field_id in self.nan_counts and self.nan_counts[field_id] is None:
            return replace(stats, lower=None, upper=None)
        if str(field.type) in ("date", "timestamp", "timestamp_ntz"):
            _refuse_far(field, stats)
        return stats


def _refuse_far(field: Field, stats: ColumnStats) -> None:
    """Years beyond 9999, which Spark can hold and others cannot."""
    unit = 1 if field.type == Primitive("date") else _DAY_MICROS
    for bound in (stats.lower, stats.upper):
        if isinstance(bound, int) and not FIRST_DAY <= bound // unit <= LAST_DAY:
            raise SchemaMismatch(
                f"column {field.name!r}: a value is outside the years 0001 to 9999",
                hint="correct the value",
                column=field.name,
            )
