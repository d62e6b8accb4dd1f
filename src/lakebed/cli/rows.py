"""Rows to stdout as a stream: a table, CSV, JSON, JSONL, Parquet or Arrow IPC."""

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from lakebed.cli.output import column_widths, is_numeric, show_rows, text_of, write_bytes
from lakebed.cli.values import as_text, to_values

_BATCH_ROWS = 1000
Batches = Iterator[pa.RecordBatch]


def write_rows(reader: pa.RecordBatchReader, form: str, *, limit: int | None) -> None:
    """The reader is closed whatever happens, so that its lease ends."""
    with reader:
        _WRITERS[form](_limited(reader, limit), reader.schema)


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


def _small(batches: Batches) -> Batches:
    """Batches small enough to be held as Python values."""
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield batch.slice(start, _BATCH_ROWS)


def _records(batches: Batches) -> Iterator[list[dict[str, Any]]]:
    for batch in _small(batches):
        columns = [to_values(column) for column in batch.columns]
        names = batch.schema.names
        yield [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _write_table(batches: Batches, schema: pa.Schema) -> None:
    """Aligned by the first rows; later ones keep those widths, so that nothing is held."""
    chunks = ([[*record.values()] for record in records] for records in _records(batches))
    first = next(chunks, [])
    cells = [[text_of(name) for name in schema.names], *_cells(first)]
    widths = column_widths(cells)
    right = [is_numeric(row[n] for row in first) for n in range(len(widths))]
    for rows in chain([cells], (_cells(chunk) for chunk in chunks)):
        show_rows(rows, widths, right)


def _cells(rows: list[list[Any]]) -> list[list[str]]:
    return [[text_of(value, "NULL") for value in row] for row in rows]


def _write_json(batches: Batches, _: pa.Schema) -> None:
    before = b"[\n"
    for records in _records(batches):
        for record in records:
            write_bytes(before + orjson.dumps(record), flush=False)
            before = b",\n"
    write_bytes(b"[]\n" if before == b"[\n" else b"\n]\n")


def _write_jsonl(batches: Batches, _: pa.Schema) -> None:
    for records in _records(batches):
        write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))


def _write_csv(batches: Batches, schema: pa.Schema) -> None:
    """Null is an empty field, empty text is quoted; nested values are JSON."""
    flat = pa.schema([pa.field(f.name, _csv_type(f.type)) for f in schema])
    with pa.csv.CSVWriter(_stdout(), flat) as writer:
        for batch in batches:
            columns = [_csv_column(column) for column in batch.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=flat))


def _csv_type(kind: pa.DataType) -> pa.DataType:
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return kind if plain else pa.string()


def _csv_column(column: pa.Array) -> pa.Array:
    if _csv_type(column.type) == column.type:
        return column
    if not pa.types.is_nested(column.type):
        return as_text(column)
    values = to_values(column)
    return pa.array([None if v is None else orjson.dumps(v).decode() for v in values], pa.string())


def _write_parquet(batches: Batches, schema: pa.Schema) -> None:
    with pa.parquet.ParquetWriter(_stdout(), schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_arrow(batches: Batches, schema: pa.Schema) -> None:
    with pa.ipc.new_stream(_stdout(), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _stdout() -> pa.PythonFile:
    return pa.PythonFile(sys.stdout.buffer, mode="w")


_WRITERS: dict[str, Callable[[Batches, pa.Schema], None]] = {
    "table": _write_table,
    "csv": _write_csv,
    "json": _write_json,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
    "arrow": _write_arrow,
}
