"""COPY: files into tables and rows into files, inside folders that the caller allowed."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.dml import committed, told
from lakebed.api.sql.result import Result
from lakebed.api.sql.select import rows_of
from lakebed.engines.arrow.files_in import read_files
from lakebed.engines.arrow.files_out import write_stream
from lakebed.model.errors import Forbidden, InvalidInput, SqlUnsupported
from lakebed.sql.query import Parameter
from lakebed.sql.statements import CopyFrom, CopyTo

_BY_NAME = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
}


def run_copy_from(context: Context, statement: CopyFrom, values: Values) -> Result:
    path = _allowed(context, statement.path, values)
    if statement.options or statement.columns:
        raise SqlUnsupported(
            "COPY FROM takes no options and no list of columns",
            hint="the first line of a CSV file names its columns, which are matched by name",
        )
    if context.transaction is not None:
        table = context.staged(statement.target)
        table.append(read_files([str(path)], format=statement.format, schema=table.schema))
        return told("copy", None)
    stored, options = context.table(statement.target)
    rows = read_files([str(path)], format=statement.format, schema=stored.schema)
    return committed(stored.append(rows, **options))


def run_copy_to(context: Context, statement: CopyTo, values: Values) -> Result:
    path = _allowed(context, statement.path, values)
    kind = (statement.format or _BY_NAME.get(path.suffix.lower(), "")).lower()
    if kind not in ("csv", "parquet", "json", "jsonl", "arrow"):
        raise SqlUnsupported(
            f"COPY cannot write {path.name}: its format is not known",
            hint="add (FORMAT csv), parquet, jsonl or arrow",
        )
    if statement.options:
        raise SqlUnsupported("COPY TO takes no options but FORMAT", hint="leave them out")
    rows, stack = rows_of(context, statement.source, values)
    part = path.with_name(f".{path.name}.part")
    with stack:
        try:
            count = _write(rows, part, kind)
            part.replace(path)  # a file that is there is whole
        finally:
            part.unlink(missing_ok=True)
    return Result(pa.table({"rows": pa.array([count], pa.int64())}), message=f"{count} rows copied")


def _allowed(context: Context, given: str | Parameter, values: Values) -> Path:
    text = values[given.name] if isinstance(given, Parameter) else given
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidInput(f"{text!r} is no path", hint="write COPY … 'folder/file.csv'")
    path = Path(text).expanduser().resolve()
    folders = [folder.resolve() for folder in context.allow_files]
    if not any(path.is_relative_to(folder) for folder in folders):
        shown = ", ".join(str(f) for f in folders)
        raise Forbidden(
            f"COPY may not touch {path}",
            hint=f"it may touch files in: {shown}" if shown else "pass allow_files=[folder]",
            path=str(path),
        )
    return path


def _write(rows: pa.RecordBatchReader, path: Path, form: str) -> int:
    count = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in rows:
            count += batch.num_rows
            yield batch

    with path.open("wb") as sink:
        write_stream(counted(), rows.schema, sink, form)
    return count
