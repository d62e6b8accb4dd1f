"""COPY: files into tables and rows into files, inside folders that the caller allowed."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.dml import committed, told
from lakebed.api.sql.files import file_to_write, files_to_read, whole_file
from lakebed.api.sql.result import Result, need_distinct_names
from lakebed.api.sql.select import rows_of
from lakebed.engines.arrow.files_in import read_files
from lakebed.engines.arrow.files_out import write_stream
from lakebed.model.errors import SqlUnsupported
from lakebed.sql.copying import format_of
from lakebed.sql.statements import CopyFrom, CopyTo


def run_copy_from(context: Context, statement: CopyFrom, values: Values) -> Result:
    paths = files_to_read(context, statement.path, values)
    if statement.options or statement.columns:
        raise SqlUnsupported(
            "COPY FROM takes no options and no list of columns",
            hint="the first line of a CSV file names its columns, which are matched by name",
        )
    if context.transaction is not None:
        table = context.staged(statement.target)
        table.append(read_files(paths, format=statement.format, schema=table.schema))
        return told("copy", None)
    stored, options = context.table(statement.target)
    rows = read_files(paths, format=statement.format, schema=stored.schema)
    return committed(stored.append(rows, **options))


def run_copy_to(context: Context, statement: CopyTo, values: Values) -> Result:
    path = file_to_write(context, statement.path, values)
    kind = (statement.format or format_of(path.name) or "").lower()
    if path.suffix.lower() in (".gz", ".zst"):
        raise SqlUnsupported(
            f"COPY writes nothing compressed: {path.name}", hint="leave .gz out, or write parquet"
        )
    if kind not in ("csv", "parquet", "json", "jsonl", "arrow"):
        raise SqlUnsupported(
            f"COPY cannot write {path.name}: its format is not known",
            hint="add (FORMAT csv), parquet, jsonl or arrow",
        )
    if statement.options:
        raise SqlUnsupported("COPY TO takes no options but FORMAT", hint="leave them out")
    rows, stack = rows_of(context, statement.source, values)
    with stack, whole_file(path) as part:
        need_distinct_names(rows.schema)
        count = _write(rows, part, kind)
    return Result(pa.table({"rows": pa.array([count], pa.int64())}), message=f"{count} rows copied")


def _write(rows: pa.RecordBatchReader, path: Path, form: str) -> int:
    count = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in rows:
            count += batch.num_rows
            yield batch

    with path.open("xb") as sink:
        write_stream(counted(), rows.schema, sink, form)
    return count
