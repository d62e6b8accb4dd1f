"""The answer to a statement: rows on stdout, what was done on stderr."""

from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.cli.output import say, show_json
from lakebed.cli.rows import write_rows

if TYPE_CHECKING:
    from lakebed.api.sql.result import Result


def show_result(result: "Result", form: str, *, limit: int | None) -> None:
    """Rows of a query go to stdout; what a statement did goes to stderr, or is JSON."""
    with result:
        if result.message is None:
            write_rows(_named_apart(result.to_batches()), form, limit=limit)
        elif form == "json":
            rows = result.to_pylist()
            show_json({"message": result.message, **(rows[0] if len(rows) == 1 else {})})
        else:
            say(result.message)


def _named_apart(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Two columns of one name get numbers, as rows are written by the names of their columns."""
    names: list[str] = []
    for name in rows.schema.names:
        number, free = 1, name
        while free in names or (number > 1 and free in rows.schema.names):
            number += 1
            free = f"{name}_{number}"
        names.append(free)
    if names == rows.schema.names:
        return rows
    schema = pa.schema([f.with_name(n) for f, n in zip(rows.schema, names, strict=True)])
    return pa.RecordBatchReader.from_batches(schema, (b.rename_columns(names) for b in rows))
