"""Rows to stdout as a stream: a table for people, or any format that files have."""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from lakebed.cli.output import column_widths, is_numeric, show_rows, text_of
from lakebed.engines.arrow.files_out import records, write_stream

Batches = Iterator[pa.RecordBatch]


def write_rows(reader: pa.RecordBatchReader, form: str, *, limit: int | None) -> None:
    """The reader is closed whatever happens, so that its lease ends."""
    with reader:
        rows = _limited(reader, limit)
        if form == "table":
            _write_table(rows, reader.schema)
        else:
            write_stream(rows, reader.schema, sys.stdout.buffer, form)


def _limited(reader: Iterable[pa.RecordBatch], limit: int | None) -> Batches:
    left = limit
    for batch in reader:
        if left is not None:
            batch = batch.slice(0, left)  # noqa: PLW2901  # the same rows, fewer of them
            left -= batch.num_rows
        if batch.num_rows:
            yield batch
        if left == 0:
            return


def _write_table(batches: Batches, schema: pa.Schema) -> None:
    """Aligned by the first rows; later ones keep those widths, so that nothing is held."""
    chunks = ([[*record.values()] for record in listed] for listed in records(batches))
    first = next(chunks, [])
    cells = [[text_of(name) for name in schema.names], *_cells(first)]
    widths = column_widths(cells)
    right = [is_numeric(row[n] for row in first) for n in range(len(widths))]
    for rows in chain([cells], (_cells(chunk) for chunk in chunks)):
        show_rows(rows, widths, right)


def _cells(rows: list[list[Any]]) -> list[list[str]]:
    return [[text_of(value, "NULL") for value in row] for row in rows]
