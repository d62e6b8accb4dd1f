"""Files on this machine as rows of a table: CSV, JSON, JSONL, Parquet, Arrow IPC."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, Unpack

import pyarrow as pa

from lakebed.api.lake import Lake
from lakebed.api.options import CommitOptions
from lakebed.engines.arrow.batches import Batches
from lakebed.engines.arrow.conform import find_name
from lakebed.engines.arrow.files_in import read_files
from lakebed.engines.arrow.types import fields_from_arrow
from lakebed.model.errors import IdempotencyMismatch, InvalidInput, TableExists
from lakebed.model.history import Commit
from lakebed.model.schema import Schema

Progress = Callable[[int], None]


def append_files(
    lake: Lake,
    name: str,
    paths: Sequence[str],
    *,
    format: str | None = None,
    create: bool = False,
    overwrite: bool = False,
    where: str | None = None,
    partitions: bool = False,
    merge_schema: bool = False,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
    **options: Unpack[CommitOptions],
) -> Commit:
    """Add the rows of all files in one commit; `create` makes a missing table of their columns.

    `progress` is told the number of rows so far.
    """
    if create and _may_be_new(lake, name, options):
        batches = read_files(paths, format=format, stdin=stdin)
        try:
            return _create(lake, name, _counted(batches, progress), options)
        except (TableExists, IdempotencyMismatch):
            if "-" in paths:  # its first bytes are gone
                raise
    table = lake.table(name)
    schema = _merged(table.schema, paths, format) if merge_schema else table.schema
    rows = _counted(read_files(paths, format=format, schema=schema, stdin=stdin), progress)
    if overwrite:
        return table.overwrite(rows, where=where, partitions=partitions, **options)
    return table.append(rows, merge_schema=merge_schema, **options)


def _merged(schema: Schema, paths: Sequence[str], format: str | None) -> Schema:
    """The table's columns, and those that only the files have, with types guessed from these.

    Text files have no types: what the table knows is read as the table has it.
    """
    if "-" in paths:
        raise InvalidInput(
            "new columns cannot be found in stdin, which is read once",
            hint="save it to a file, and append that",
        )
    given = fields_from_arrow(read_files(paths, format=format).schema)
    new = tuple(f for f in given if find_name(f.name, schema.fields) is None)
    return replace(schema, fields=(*schema.fields, *new))


def schema_of(path: str, *, format: str | None = None) -> pa.Schema:
    """The columns a table made from this file would have."""
    return read_files([path], format=format).schema


def _may_be_new(lake: Lake, name: str, options: CommitOptions) -> bool:
    """A key may belong to an earlier call that made the table; creating it again answers that."""
    return not lake.has_table(name) or options.get("idempotency_key") is not None


def _create(lake: Lake, name: str, rows: Batches, options: CommitOptions) -> Commit:
    table = lake.create_table(name, rows, **options)
    return next(c for c in reversed(table.history()) if c.version == 0)


def _counted(batches: Batches, progress: Progress | None) -> Batches:
    if progress is None:
        return batches

    def counting() -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in batches:
            yield batch
            rows += batch.num_rows
            progress(rows)

    return Batches(batches.schema, counting())
