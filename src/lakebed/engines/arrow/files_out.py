"""Rows out as a stream of bytes: CSV, JSON, JSONL, Parquet or Arrow IPC."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from lakebed.engines.arrow.plain import as_text, to_values
from lakebed.model.errors import UnsupportedFeature

_BATCH_ROWS = 1000
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class OutForm:
    """How CSV and Parquet are written, where that can be chosen."""

    has_header: bool = True
    delimiter: str = ","
    compression: str = "zstd"


PLAIN = OutForm()


def write_stream(
    batches: Batches, schema: pa.Schema, sink: BinaryIO, form: str, how: OutForm = PLAIN
) -> None:
    try:
        _WRITERS[form](batches, schema, sink, how)
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedFeature(
            f"{form} cannot hold these rows: {error}",
            hint="cast the columns of unusual types to text, or choose another format",
        ) from error


def records(batches: Batches) -> Iterator[list[dict[str, Any]]]:
    """Rows as Python values, a few at a time."""
    for batch in _small(batches):
        columns = [to_values(column) for column in batch.columns]
        names = batch.schema.names
        yield [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _small(batches: Batches) -> Batches:
    """Batches small enough to be held as Python values."""
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield batch.slice(start, _BATCH_ROWS)


def _write_json(batches: Batches, _: pa.Schema, sink: BinaryIO, _how: OutForm) -> None:
    before = b"[\n"
    for listed in records(batches):
        for record in listed:
            sink.write(before + orjson.dumps(record))
            before = b",\n"
    sink.write(b"[]\n" if before == b"[\n" else b"\n]\n")
    sink.flush()


def _write_jsonl(batches: Batches, _: pa.Schema, sink: BinaryIO, _how: OutForm) -> None:
    for listed in records(batches):
        sink.write(b"".join(orjson.dumps(record) + b"\n" for record in listed))
        sink.flush()


def _write_csv(batches: Batches, schema: pa.Schema, sink: BinaryIO, how: OutForm) -> None:
    """Null is an empty field, empty text is quoted; nested values are JSON."""
    flat = pa.schema([pa.field(f.name, _csv_type(f.type)) for f in schema])
    written = pa.csv.WriteOptions(include_header=how.has_header, delimiter=how.delimiter)
    with pa.csv.CSVWriter(_file(sink), flat, write_options=written) as writer:
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


def _write_parquet(batches: Batches, schema: pa.Schema, sink: BinaryIO, how: OutForm) -> None:
    with pa.parquet.ParquetWriter(_file(sink), schema, compression=how.compression) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_arrow(batches: Batches, schema: pa.Schema, sink: BinaryIO, _how: OutForm) -> None:
    with pa.ipc.new_stream(_file(sink), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _file(sink: BinaryIO) -> pa.PythonFile:
    return pa.PythonFile(sink, mode="w")


_WRITERS: dict[str, Callable[[Batches, pa.Schema, BinaryIO, OutForm], None]] = {
    "csv": _write_csv,
    "json": _write_json,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
    "arrow": _write_arrow,
}
