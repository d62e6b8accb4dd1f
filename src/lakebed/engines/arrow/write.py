"""Writing conformed batches as Parquet data files, rolling by size, one at a time per partition.

Memory is bounded whatever the number of partitions. A write that fails leaves no file behind.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.engines.arrow.nested import as_list, retype
from lakebed.engines.arrow.partition import Values, partition_folder, split
from lakebed.engines.arrow.sort import sort_batch
from lakebed.engines.arrow.stats import file_stats, leaf_paths
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import InvalidSetting, LakebedError
from lakebed.model.files import DataFile
from lakebed.model.ids import FieldId
from lakebed.model.partitioning import UNPARTITIONED, UNSORTED, PartitionSpec, SortOrder
from lakebed.model.schema import Schema
from lakebed.model.types import Field, FixedType, Primitive, children, is_scalar, walk
from lakebed.storage.base import Output, Storage

MOST_OPEN_FILES = 64
_GROUP_BYTES = 128 * 2**20  # of one row group, before encoding
_BUFFER_BYTES = 256 * 2**20  # of all rows that wait for their row group
_PIECE_BYTES = 4096  # what a small piece costs beside its values
_TINY_ROWS = 1000  # below this a dictionary costs more than it saves
_TEXTS = (Primitive("string"), Primitive("binary"), Primitive("uuid"))
_HAS_LEVELS = ("zstd", "gzip")
# Which row this is, and when it last changed; ids and names are Iceberg's.
LINEAGE = (
    Field(FieldId(2147483540), "_row_id", Primitive("long"), physical="_row_id"),
    Field(
        FieldId(2147483539),
        "_last_updated_sequence_number",
        Primitive("long"),
        physical="_last_updated_sequence_number",
    ),
)
# What a change feed tells of a row; again an id of Iceberg's.
_CHANGE_TYPE = Field(
    FieldId(2147483543), "_change_type", Primitive("string"), physical="_change_type"
)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    codec: str = "zstd"
    level: int = 3
    target_file_size_bytes: int = 128 * 2**20
    row_group_rows: int = 2**20


def write(
    batches: Iterable[pa.RecordBatch],
    *,
    storage: Storage,
    root: str,
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    options: WriteOptions | None = None,
    name_prefix: str,
    lineage: bool = False,
) -> list[DataFile]:
    """Write conformed batches below `root`; no rows, no file.

    Rows are sorted within each row group, so only a file of one row group claims the sort order.
    With `lineage` the batches end with the columns of LINEAGE, and so do the files.
    """
    target = _Target(
        storage,
        root,
        schema,
        spec,
        sort_order,
        options or WriteOptions(),
        name_prefix,
        LINEAGE if lineage else (),
    )
    return _write(target, batches)


def write_changes(
    batches: Iterable[pa.RecordBatch],
    *,
    storage: Storage,
    root: str,
    schema: Schema,
    spec: PartitionSpec,
    options: WriteOptions,
    folder: str,
) -> list[DataFile]:
    """Write changed rows as they come, what happened to each in the last column.

    Files of all partitions lie in one folder. Without rows there is one file that has none.
    """
    target = _Target(
        storage,
        root,
        schema,
        spec,
        UNSORTED,
        options,
        "cdc",
        (_CHANGE_TYPE,),
        folder,
        even_empty=True,
    )
    return _write(target, batches)


def _write(target: "_Target", batches: Iterable[pa.RecordBatch]) -> list[DataFile]:
    writing = _Writing(target)
    with ExitStack() as on_failure:
        on_failure.callback(writing.undo)
        for batch in batches:
            writing.add(batch)
        writing.finish()
        on_failure.pop_all()
    return writing.files


@dataclass(frozen=True, slots=True)
class _Target:
    storage: Storage
    root: str
    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    options: WriteOptions
    name_prefix: str
    beside: tuple[Field, ...] = ()
    folder: str | None = None  # of all files alike
    even_empty: bool = False

    @property
    def written(self) -> pa.Schema:
        """The columns of a file; those beside the table's have no statistics of ours."""
        fields = (*self.schema.fields, *self.beside)
        return to_arrow(Schema(self.schema.id, fields), physical=True)

    def path(self, partition: Values, number: int) -> str:
        name = f"{self.name_prefix}-{number:05d}.parquet"
        if self.folder is not None:
            return f"{self.folder}/{name}"
        folder = partition_folder(self.spec, partition, self.schema)
        return f"data/{folder}/{name}" if folder else f"data/{name}"


@dataclass(slots=True)
class _Partition:
    """Rows of one partition that wait, and the file they go to once there is one."""

    values: Values
    pieces: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0
    file: "_File | None" = None


class _Writing:
    def __init__(self, target: _Target) -> None:
        self.files: list[DataFile] = []
        self._target = target
        self._partitions: dict[Values, _Partition] = {}
        self._open: OrderedDict[Values, _Partition] = OrderedDict()  # least recently used first
        self._waiting_bytes = 0
        self._count = 0
        self._group_bytes = min(_GROUP_BYTES, target.options.target_file_size_bytes)

    def add(self, batch: pa.RecordBatch) -> None:
        for values, piece in split(batch, self._target.spec, self._target.schema):
            partition = self._partitions.setdefault(_key(values), _Partition(values))
            self._take(partition, piece)
            while partition.rows >= self._target.options.row_group_rows:
                self._flush(partition)
            if partition.size_bytes >= self._group_bytes:
                self._flush(partition)
        if self._waiting_bytes > _BUFFER_BYTES:
            self._make_room()

    def finish(self) -> None:
        for partition in list(self._partitions.values()):
            while partition.rows:
                self._flush(partition)
            self._close(partition)
        if self._target.even_empty and not self.files:
            nowhere = _Partition((None,) * len(self._target.spec.fields))
            self._file(nowhere, 0, frozenset())
            self._close(nowhere)

    def undo(self) -> None:
        for partition in self._open.values():
            if partition.file is not None:
                partition.file.abort()
        for file in self.files:
            # Best effort: what stays is an orphan, and the first error is the one to report.
            with suppress(LakebedError):
                self._target.storage.delete(f"{self._target.root}/{file.path}")

    def _make_room(self) -> None:
        """Write the largest waiting parts first, until half of the room is free again."""
        largest = sorted(self._partitions.values(), key=lambda p: p.size_bytes, reverse=True)
        for partition in largest:
            if self._waiting_bytes * 2 <= _BUFFER_BYTES:
                break
            self._flush(partition)

    def _take(self, partition: _Partition, piece: pa.RecordBatch) -> None:
        size_bytes = piece.nbytes + _PIECE_BYTES
        partition.pieces.append(piece)
        partition.rows += piece.num_rows
        partition.size_bytes += size_bytes
        self._waiting_bytes += size_bytes

    def _flush(self, partition: _Partition) -> None:
        """Write the next row group of a partition."""
        pieces, most = partition.pieces, self._target.options.row_group_rows
        self._waiting_bytes -= partition.size_bytes
        partition.pieces, partition.rows, partition.size_bytes = [], 0, 0
        table = pa.Table.from_batches(pieces)
        for rest in table.slice(most).to_batches():
            self._take(partition, rest)
        group = table.slice(0, most)
        counts = _count_floats(group, self._target.schema)
        with_nan = frozenset(i for i, (nans, _) in counts.items() if nans)
        if partition.file is not None and not with_nan <= partition.file.without_statistics:
            self._close(partition)
            self._partitions[_key(partition.values)] = partition
        file = self._file(partition, table.num_rows, with_nan)
        file.write(group, counts)
        if file.size_bytes >= self._target.options.target_file_size_bytes:
            self._close(partition)

    def _file(self, partition: _Partition, rows: int, with_nan: frozenset[FieldId]) -> "_File":
        key = _key(partition.values)
        if partition.file is None:
            if len(self._open) >= MOST_OPEN_FILES:
                self._close(next(iter(self._open.values())))
            path = self._target.path(partition.values, self._count)
            self._count += 1
            partition.file = _File(
                self._target,
                path,
                partition.values,
                dictionary=_dictionary(self._target.schema, rows),
                without_statistics=with_nan,
            )
            self._open[key] = partition
        self._open.move_to_end(key)
        return partition.file

    def _close(self, partition: _Partition) -> None:
        if partition.file is not None:
            self.files.append(partition.file.finish())
            partition.file = None
            del self._open[_key(partition.values)]
        if not partition.rows:
            self._partitions.pop(_key(partition.values), None)


class _File:
    """One Parquet file being written.

    Columns that hold NaN go without Parquet's statistics: those leave NaN out, and readers to whom
    it is the greatest number would leave its rows out too.
    """

    def __init__(
        self,
        target: _Target,
        path: str,
        partition: Values,
        *,
        dictionary: bool | list[str],
        without_statistics: frozenset[FieldId],
    ) -> None:
        self.without_statistics = without_statistics
        self._target = target
        self._path = path
        self._partition = partition
        self._groups = 0
        self._nan_counts = {f.id: 0 for f in target.schema.walk() if _is_float(f)}
        self._null_counts = dict(self._nan_counts)
        self._schema = target.written
        self._collected: list[pq.FileMetaData] = []
        codec, level = _compression(target.options)
        self._output: Output = target.storage.open_output(f"{target.root}/{path}")
        with ExitStack() as on_failure:
            on_failure.callback(self._output.abort)
            self._writer = pq.ParquetWriter(
                self._output,
                self._schema,
                version="2.6",
                compression=codec,
                compression_level=level,
                use_dictionary=dictionary,
                write_statistics=self._described(),
                write_page_checksum=True,
                store_schema=False,  # other readers would trust it over the file's own types
                store_decimal_as_integer=True,
                metadata_collector=self._collected,
            )
            on_failure.pop_all()

    @property
    def size_bytes(self) -> int:
        return self._output.tell()

    def _described(self) -> bool | list[str]:
        """The columns with statistics."""
        if not self.without_statistics:
            return True
        leaves = leaf_paths(self._target.schema).items()
        return [path for path, field_id in leaves if field_id not in self.without_statistics]

    def write(self, table: pa.Table, counts: Mapping[FieldId, tuple[int, int]]) -> None:
        """Append one row group; `counts` are the NaNs and NULLs of its float columns."""
        self._groups += 1
        for field_id, (nans, nulls) in counts.items():
            self._nan_counts[field_id] += nans
            self._null_counts[field_id] += nulls
        if self._target.sort_order.fields:
            (batch,) = table.combine_chunks().to_batches()
            ordered = sort_batch(batch, self._target.sort_order, self._target.schema)
            table = pa.Table.from_batches([ordered])
        batches = table.to_batches()
        physical = pa.Table.from_batches([self._renamed(batch) for batch in batches], self._schema)
        self._writer.write_table(physical, row_group_size=table.num_rows)

    def finish(self) -> DataFile:
        self._writer.close()
        size_bytes = self.size_bytes
        self._output.close()
        (metadata,) = self._collected
        is_sorted = self._groups == 1
        return DataFile(
            path=self._path,
            size_bytes=size_bytes,
            record_count=metadata.num_rows,
            spec_id=self._target.spec.id,
            partition=self._partition,
            stats=file_stats(
                metadata,
                self._target.schema,
                self._nan_counts,
                null_counts=self._null_counts,
            ),
            sort_order_id=self._target.sort_order.id if is_sorted else UNSORTED.id,
            split_offsets=split_offsets(metadata),
        )

    def abort(self) -> None:
        # Closed first, or the Parquet writer would finish the file when it is collected.
        with suppress(LakebedError, OSError, RuntimeError, ValueError, pa.ArrowException):
            self._writer.close()
        self._output.abort()

    def _renamed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            retype(column, field.type)
            for column, field in zip(batch.columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _key(values: Values) -> Values:
    # NaN is not equal to itself: it would open a new partition for every batch.
    return tuple("NaN" if value != value else value for value in values)  # noqa: PLR0124


def _compression(options: WriteOptions) -> tuple[str, int | None]:
    if options.codec not in _HAS_LEVELS:
        return options.codec, None
    most = pa.Codec.maximum_compression_level(options.codec)
    if options.level > most:
        raise InvalidSetting(
            f"compression level {options.level} is too high for {options.codec}",
            hint=f"set write.parquet.compression-level to at most {most}",
            name="write.parquet.compression-level",
        )
    return options.codec, options.level


def _count_floats(table: pa.Table, schema: Schema) -> dict[FieldId, tuple[int, int]]:
    """(NaNs, NULLs) of every float column, nested ones too."""
    counts: dict[FieldId, tuple[int, int]] = {}
    for number, top in enumerate(schema.fields):
        has_floats = any(_is_float(f) for f in walk((top,)))
        for chunk in table.column(number).chunks if has_floats else ():
            for field_id, leaf in _float_leaves(chunk, top):
                nans, nulls = counts.get(field_id, (0, 0))
                more = pc.sum(pc.is_nan(leaf)).as_py() or 0
                counts[field_id] = (nans + more, nulls + leaf.null_count)
    return counts


def _is_float(field: Field) -> bool:
    return field.type in (Primitive("float"), Primitive("double"))


def _float_leaves(array: pa.Array, field: Field) -> Iterator[tuple[FieldId, pa.Array]]:
    if _is_float(field):
        yield field.id, array
        return
    inner = children(field.type)
    if not inner:
        return
    if pa.types.is_list(array.type):
        yield from _float_leaves(array.flatten(), inner[0])
        return
    parts = as_list(array).flatten().flatten() if pa.types.is_map(array.type) else array.flatten()
    for part, member in zip(parts, inner, strict=True):
        yield from _float_leaves(part, member)


def _dictionary(schema: Schema, rows: int) -> bool | list[str]:
    """Which columns get one. Text always, unless there is one row: DuckDB 2.0 takes the one text
    of a plain column for all of its rows when it is asked for the NULLs beside it."""
    if rows >= _TINY_ROWS or rows == 1:
        return rows != 1
    if any(not is_scalar(f.type) for f in schema.fields):
        return True
    return [f.physical for f in schema.fields if f.type in _TEXTS or isinstance(f.type, FixedType)]


def split_offsets(metadata: pq.FileMetaData) -> tuple[int, ...]:
    """Where the row groups of a file begin."""
    return tuple(_offsets(metadata))


def _offsets(metadata: pq.FileMetaData) -> Iterator[int]:
    for index in range(metadata.num_row_groups):
        first = metadata.row_group(index).column(0)
        dictionary = first.dictionary_page_offset
        yield dictionary if dictionary is not None else first.data_page_offset
