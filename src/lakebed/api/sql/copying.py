"""COPY: files into tables and rows into files, inside folders that the caller allowed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from lakebed.api.sql.assigning import known_field
from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.copy_options import csv_form, out_form
from lakebed.api.sql.dml import committed, told
from lakebed.api.sql.files import file_to_write, files_to_read, whole_file
from lakebed.api.sql.result import Result, need_distinct_names
from lakebed.api.sql.select import rows_of
from lakebed.engines.arrow.batches import Batches
from lakebed.engines.arrow.files_in import read_files
from lakebed.engines.arrow.files_out import OutForm, write_stream
from lakebed.model.errors import SchemaMismatch, SqlUnsupported
from lakebed.model.schema import Schema
from lakebed.sql.copying import format_of
from lakebed.sql.statements import CopyFrom, CopyTo


def run_copy_from(context: Context, statement: CopyFrom, values: Values) -> Result:
    paths = files_to_read(context, statement.path, values)
    if context.transaction is not None:
        table = context.staged(statement.target)
        table.append(_rows(paths, statement, table.schema, values))
        return told("copy", None)
    stored, options = context.table(statement.target)
    return committed(stored.append(_rows(paths, statement, stored.schema, values), **options))


def _rows(paths: list[str], statement: CopyFrom, schema: Schema, values: Values) -> Batches:
    """Fields of CSV are taken in the order of the list; other files name their columns."""
    kind = statement.format or format_of(paths[0])
    columns = _columns(statement, schema)
    form = csv_form(kind, statement.options, values, columns)
    if form.columns is None and not form.has_header:
        form = replace(form, columns=tuple(f.name for f in schema.fields))
    rows = read_files(paths, format=statement.format, schema=schema, csv=form)
    return rows if columns is None or kind == "csv" else _chosen(rows, columns)


def _columns(statement: CopyFrom, schema: Schema) -> tuple[str, ...] | None:
    if statement.columns is None:
        return None
    names = tuple(known_field(schema, path).name for path in statement.columns)
    nested = [path for path in statement.columns if len(path) > 1]
    if nested or len(set(names)) < len(names):
        raise SqlUnsupported(
            "COPY takes whole columns, each once", hint="name columns of the table: COPY t (a, b)"
        )
    return names


def _chosen(rows: Batches, columns: tuple[str, ...]) -> Batches:
    """Only these columns, by name; files may have others."""
    known = {name.casefold(): name for name in rows.schema.names}
    missing = [name for name in columns if name.casefold() not in known]
    if missing:
        raise SchemaMismatch(
            f"the file has no column {missing[0]!r}",
            hint=f"its columns are: {', '.join(rows.schema.names)}",
            column=missing[0],
        )
    names = [known[name.casefold()] for name in columns]
    shape = pa.schema([rows.schema.field(name) for name in names])
    return Batches(shape, (batch.select(names) for batch in rows))


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
    how = out_form(kind, statement.options, values)
    rows, stack = rows_of(context, statement.source, values)
    with stack, whole_file(path) as part:
        need_distinct_names(rows.schema)
        count = _write(rows, part, kind, how)
    return Result(pa.table({"rows": pa.array([count], pa.int64())}), message=f"{count} rows copied")


def _write(rows: pa.RecordBatchReader, path: Path, form: str, how: OutForm) -> int:
    count = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in rows:
            count += batch.num_rows
            yield batch

    with path.open("xb") as sink:
        write_stream(counted(), rows.schema, sink, form, how)
    return count
