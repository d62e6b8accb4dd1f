"""From rows in any shape to data files under a table's root; nothing is visible until a commit."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from lakebed.api.enforcing import enforced
from lakebed.api.engine import open_engine
from lakebed.api.engine_rows import EngineRows
from lakebed.api.parts import Parts
from lakebed.api.settings import Settings
from lakebed.core.crash import crash_point
from lakebed.engines.arrow.checked import checked
from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.ingest import open_batches
from lakebed.engines.arrow.write import WriteOptions, write
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile
from lakebed.model.history import TableHead, TableState
from lakebed.rowops.workbench import Workbench


def write_files(
    parts: Parts,
    head: TableHead,
    state: TableState,
    rows: object,
    *,
    must_match: Predicate | None = None,
) -> list[DataFile]:
    """Check every row, write Parquet, return the records. `must_match` is bound."""
    if isinstance(rows, EngineRows):
        files = rows.write(parts, head, state, must_match)
        crash_point("write_after_files")
        return files
    prefix = uuid.uuid4().hex
    batches = fitting(parts, state, rows)
    if must_match is not None:
        batches = checked(batches, must_match)
    if head.id < 0:
        files = _write(parts, head, state, batches, prefix)
    else:
        with parts.leases.writing(head.id, prefix) as lease:
            files = _write(parts, head, state, _touching(batches, lease.touch), prefix)
    crash_point("write_after_files")
    return files


def fitting(parts: Parts, state: TableState, rows: object) -> Iterable[pa.RecordBatch]:
    """The rows as the table takes them; the first that it does not take stops them."""
    batches = conform(open_batches(rows, schema=state.schema), state.schema)
    if not state.constraints:
        return batches
    bench = Workbench(partial(open_engine, parts))
    return enforced(batches, state.constraints, state.schema, bench)


def write_rows(
    parts: Parts,
    head: TableHead,
    state: TableState,
    batches: Iterable[pa.RecordBatch],
    *,
    lineage: bool,
) -> list[DataFile]:
    """Write conformed rows that an operation made; `lineage` says that they carry theirs."""
    if state.constraints:
        bench = Workbench(partial(open_engine, parts))
        batches = enforced(batches, state.constraints, state.schema, bench)
    prefix = uuid.uuid4().hex
    if head.id < 0:
        files = _write(parts, head, state, batches, prefix, lineage=lineage)
    else:
        with parts.leases.writing(head.id, prefix) as lease:
            touching = _touching(batches, lease.touch)
            files = _write(parts, head, state, touching, prefix, lineage=lineage)
    crash_point("rowops_after_files")
    return files


def _write(
    parts: Parts,
    head: TableHead,
    state: TableState,
    batches: Iterable[pa.RecordBatch],
    prefix: str,
    *,
    lineage: bool = False,
) -> list[DataFile]:
    return write(
        batches,
        storage=parts.storage,
        root=head.location,
        schema=state.schema,
        spec=state.spec,
        sort_order=state.sort_order,
        options=write_options(parts.settings, state),
        name_prefix=prefix,
        lineage=lineage,
    )


def write_options(settings: Settings, state: TableState) -> WriteOptions:
    """How a table wants its Parquet files."""

    def value(name: str) -> str | int | float:
        return settings.value(name, state.properties)

    codec = str(value("write.parquet.compression-codec"))
    return WriteOptions(
        codec=codec,
        level=int(value("write.parquet.compression-level")),
        target_file_size_bytes=int(value("write.target-file-size-bytes")),
        row_group_rows=int(value("write.parquet.row-group-rows")),
    )


def _touching(
    batches: Iterable[pa.RecordBatch], touch: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        touch()
        yield batch
