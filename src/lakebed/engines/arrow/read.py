"""Reading a plan's data files as batches of its schema, whatever schema they were written by.

Columns are found by their physical names at each level; row groups that cannot match are left out.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.core.plan import Plan
from lakebed.core.prune import might_match
from lakebed.engines.arrow.evaluate import matches
from lakebed.engines.arrow.evolve import as_field
from lakebed.engines.arrow.stats import row_group_stats
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import DataCorrupt, ObjectMissing, StorageError
from lakebed.model.expressions import columns
from lakebed.model.files import DataFile
from lakebed.model.schema import Schema
from lakebed.model.types import Field
from lakebed.storage.base import Storage

BATCH_ROWS = 131_072


_BATCH_BYTES = 32 * 2**20


def read_schema(plan: Plan) -> pa.Schema:
    """What `read` returns: the plan's columns in order."""
    return to_arrow(Schema(plan.schema.id, _fields(plan)))


def read(plan: Plan, storage: Storage, *, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The matching rows, file by file; a batch without columns still counts its rows."""
    wanted = _fields(plan)
    needed = Schema(plan.schema.id, (*wanted, *_only_compared(plan, wanted)))
    names = [field.name for field in wanted]
    for live in plan.files:
        for batch in _file_batches(plan, storage, live.file, needed, batch_rows):
            kept = _matching(plan, batch)
            if kept.num_rows:
                yield kept.select(names)


def _fields(plan: Plan) -> tuple[Field, ...]:
    by_name = {field.name: field for field in plan.schema.fields}
    return tuple(by_name[name] for name in plan.columns)


def _only_compared(plan: Plan, wanted: tuple[Field, ...]) -> tuple[Field, ...]:
    """Columns that the predicate looks at and nobody asked for."""
    if plan.predicate is None:
        return ()
    names = {column.path[0] for column in columns(plan.predicate)}
    return tuple(f for f in plan.schema.fields if f.name in names and f not in wanted)


def _matching(plan: Plan, batch: pa.RecordBatch) -> pa.RecordBatch:
    if plan.predicate is None:
        return batch
    chosen = matches(plan.predicate, batch)
    if not batch.num_columns:
        return batch.slice(0, pc.sum(chosen).as_py() or 0)
    return batch.filter(chosen)


def _file_batches(
    plan: Plan, storage: Storage, file: DataFile, needed: Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    with _opened(plan, storage, file) as parquet:
        groups = _groups(plan, parquet.metadata, file)
        stored = set(parquet.schema_arrow.names)
        found = [field.physical for field in needed.fields if field.physical in stored]
        rows = _rows_at_once(parquet.metadata, batch_rows)
        batches = parquet.iter_batches(rows, row_groups=groups, columns=found)
        while groups:
            with _failures(file):
                batch = next(batches, None)
                if batch is None:
                    return
                result = _converted(batch, needed)
            yield result


def _rows_at_once(metadata: pq.FileMetaData, most: int) -> int:
    """Fewer rows of wide ones: a batch is bounded in bytes too."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    size_bytes = int(sum(group.total_byte_size for group in groups))
    fitting = _BATCH_BYTES * int(metadata.num_rows) // max(1, size_bytes)
    return max(1, min(most, fitting))


def _groups(plan: Plan, metadata: pq.FileMetaData, file: DataFile) -> list[int]:
    groups = range(metadata.num_row_groups)
    if plan.predicate is None:
        return list(groups)
    predicate, schema = plan.predicate, plan.schema
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


@contextmanager
def _opened(plan: Plan, storage: Storage, file: DataFile) -> Iterator[pq.ParquetFile]:
    try:
        source = storage.open_input(f"{plan.root}/{file.path}")
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
