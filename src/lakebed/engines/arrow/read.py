"""Reading a plan's data files as batches of its schema, whatever schema they were written by.

Columns are found by their physical names at each level; rows a deletion vector names are left out,
and so are row groups that cannot match.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, groupby

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.core.plan import Plan
from lakebed.core.prune import might_match
from lakebed.engines.arrow.evaluate import matches
from lakebed.engines.arrow.evolve import as_field
from lakebed.engines.arrow.metadata import (
    STORED,
    Place,
    kept,
    metadata_columns,
    metadata_fields,
)
from lakebed.engines.arrow.stats import row_group_stats
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import DataCorrupt, ObjectMissing, StorageError
from lakebed.model.expressions import columns
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.schema import Schema
from lakebed.model.types import Field
from lakebed.storage.base import Storage

BATCH_ROWS = 131_072


_BATCH_BYTES = 32 * 2**20
_SMALL_BYTES = 2**20  # reading ahead and other threads cost more than they bring up to here


def read_schema(plan: Plan, metadata: tuple[str, ...] = ()) -> pa.Schema:
    """What `read` returns: the plan's columns in order, then those about rows."""
    columns = to_arrow(Schema(plan.schema.id, _fields(plan)))
    return pa.schema([*columns, *metadata_fields(metadata)])


def read(
    plan: Plan,
    storage: Storage,
    *,
    batch_rows: int = BATCH_ROWS,
    metadata: tuple[str, ...] = (),
) -> Iterator[pa.RecordBatch]:
    """The matching rows, file by file; a batch without columns still counts its rows.

    `metadata` asks for columns of `METADATA`; `_file` counts the plan's files.
    """
    for index in range(len(plan.files)):
        yield from read_file(plan, storage, index, batch_rows=batch_rows, metadata=metadata)


def read_file(
    plan: Plan,
    storage: Storage,
    index: int,
    *,
    batch_rows: int = BATCH_ROWS,
    metadata: tuple[str, ...] = (),
) -> Iterator[pa.RecordBatch]:
    """The matching rows of one file of the plan."""
    wanted = _fields(plan)
    needed = Schema(plan.schema.id, (*wanted, *_only_compared(plan, wanted)))
    live = plan.files[index]
    deleted = plan.deleted.get(live.id)
    names = [*plan.columns, *metadata]
    physical = [*(f.physical for f in needed.fields), *(n for n in metadata if n in STORED)]
    for first, stored in _stored_batches(plan, storage, live, physical, batch_rows):
        about = metadata_columns(stored, Place(live, index, first), metadata)
        with _failures(live.file):
            batch = _converted(stored, needed)
        there = kept(deleted, first, first + batch.num_rows)
        chosen = _matching(plan, _joined(batch, about, metadata), there)
        if chosen.num_rows:
            yield chosen.select(names)


def _fields(plan: Plan) -> tuple[Field, ...]:
    by_name = {field.name: field for field in plan.schema.fields}
    return tuple(by_name[name] for name in plan.columns)


def _only_compared(plan: Plan, wanted: tuple[Field, ...]) -> tuple[Field, ...]:
    """Columns that the predicate looks at and nobody asked for."""
    if plan.predicate is None:
        return ()
    names = {column.path[0] for column in columns(plan.predicate)}
    return tuple(f for f in plan.schema.fields if f.name in names and f not in wanted)


def _matching(plan: Plan, batch: pa.RecordBatch, there: pa.BooleanArray | None) -> pa.RecordBatch:
    if plan.predicate is None:
        chosen = there
    else:
        found = matches(plan.predicate, batch)
        chosen = found if there is None else pc.and_(found, there)
    if chosen is None:
        return batch
    if not batch.num_columns:
        return batch.slice(0, pc.sum(chosen).as_py() or 0)
    return batch.filter(chosen)


def _stored_batches(
    plan: Plan, storage: Storage, live: LiveFile, names: list[str], batch_rows: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches as the file holds them, each with the position of its first row."""
    file = live.file
    with _opened(plan, storage, file) as parquet:
        stored = set(parquet.schema_arrow.names)
        found = [name for name in names if name in stored]
        rows = _rows_at_once(parquet.metadata, batch_rows)
        for first, groups in _runs(parquet.metadata, _groups(plan, parquet.metadata, live)):
            threads = file.size_bytes > _SMALL_BYTES
            batches = parquet.iter_batches(
                rows, row_groups=groups, columns=found, use_threads=threads
            )
            position = first
            while True:
                with _failures(file):
                    batch = next(batches, None)
                if batch is None:
                    break
                yield position, batch
                position += batch.num_rows


def _runs(metadata: pq.FileMetaData, groups: list[int]) -> Iterator[tuple[int, list[int]]]:
    """Row groups that follow each other, with the position of the first row of each run."""
    starts = _starts(metadata)
    for _, numbered in groupby(enumerate(groups), key=lambda pair: pair[1] - pair[0]):
        run = [group for _, group in numbered]
        yield starts[run[0]], run


def _starts(metadata: pq.FileMetaData) -> list[int]:
    """The position of each row group's first row, and the number of rows."""
    counts = (metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    return list(accumulate(counts, initial=0))


def _rows_at_once(metadata: pq.FileMetaData, most: int) -> int:
    """Fewer rows of wide ones: a batch is bounded in bytes too."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    size_bytes = int(sum(group.total_byte_size for group in groups))
    fitting = _BATCH_BYTES * int(metadata.num_rows) // max(1, size_bytes)
    return max(1, min(most, fitting))


def _groups(plan: Plan, metadata: pq.FileMetaData, live: LiveFile) -> list[int]:
    """Those that can hold a row to show."""
    groups = list(range(metadata.num_row_groups))
    deleted = plan.deleted.get(live.id)
    if deleted is not None:
        starts = _starts(metadata)
        groups = [i for i in groups if not deleted.covers(starts[i], starts[i + 1])]
    if plan.predicate is None or metadata.num_row_groups == 1:
        return groups  # of a file's only group the plan knows what it is about to say
    file, predicate, schema = live.file, plan.predicate, plan.schema
    return [
        index
        for index in groups
        if might_match(predicate, _as_file(metadata, index, file, schema), None, schema)
    ]


def _as_file(metadata: pq.FileMetaData, index: int, file: DataFile, schema: Schema) -> DataFile:
    return DataFile(
        path=file.path,
        size_bytes=metadata.row_group(index).total_byte_size,
        record_count=metadata.row_group(index).num_rows,
        spec_id=file.spec_id,
        partition=(),
        stats=row_group_stats(metadata, index, schema),
    )


def _converted(batch: pa.RecordBatch, needed: Schema) -> pa.RecordBatch:
    if not needed.fields:
        return batch.select([])
    arrays = [as_field(batch, field) for field in needed.fields]
    return pa.RecordBatch.from_arrays(arrays, schema=to_arrow(needed))


def _joined(
    batch: pa.RecordBatch, about: list[pa.Array], metadata: tuple[str, ...]
) -> pa.RecordBatch:
    if not about:
        return batch
    schema = pa.schema([*batch.schema, *metadata_fields(metadata)])
    return pa.RecordBatch.from_arrays([*batch.columns, *about], schema=schema)


@contextmanager
def _opened(plan: Plan, storage: Storage, file: DataFile) -> Iterator[pq.ParquetFile]:
    try:
        source = storage.open_input(f"{plan.root}/{file.path}", size_bytes=file.size_bytes)
    except ObjectMissing as error:
        raise ObjectMissing(
            f"data file {file.path!r} is missing",
            hint="`lakebed check` names every file a table has lost; an older version may be whole",
            path=file.path,
        ) from error
    with source:
        with _failures(file):
            parquet = pq.ParquetFile(
                source,
                pre_buffer=file.size_bytes > _SMALL_BYTES,
                coerce_int96_timestamp_unit="us",
                page_checksum_verification=True,
                arrow_extensions_enabled=False,  # Arrow cannot build a map of them
            )
        yield parquet


@contextmanager
def _failures(file: DataFile) -> Iterator[None]:
    try:
        yield
    except pa.ArrowMemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise StorageError(
                f"cannot read data file {file.path!r}: {error.strerror}",
                hint="check the disk or mount that holds the warehouse, then try again",
                path=file.path,
            ) from error
        raise DataCorrupt(
            f"data file {file.path!r} is damaged: {str(error).strip()}",
            hint="`lakebed check` names every damaged file; restore it from a backup",
            path=file.path,
        ) from error
