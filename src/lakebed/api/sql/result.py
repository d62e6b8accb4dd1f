"""The answer to a statement: rows as Arrow, batches or frames, and the commit it made, if any."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from lakebed.engines import frame_of
from lakebed.model.errors import InvalidInput, MissingExtra
from lakebed.model.history import Commit

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_SHOWN_ROWS = 40


class Result:
    """Rows come once as a stream, or as often as asked for once they are in memory.

    Use it as a context manager, or read it to its end: until then it holds an engine.
    """

    def __init__(
        self,
        rows: pa.Table | pa.RecordBatchReader,
        *,
        commit: Commit | None = None,
        message: str | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        self._table = rows if isinstance(rows, pa.Table) else None
        self._reader = rows if isinstance(rows, pa.RecordBatchReader) else None
        self._close = close
        self.schema: pa.Schema = rows.schema
        self.commit = commit
        self.message = message  # what a statement without rows of its own did, for people

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    def to_batches(self) -> pa.RecordBatchReader:
        """A stream: memory is bounded by a batch."""
        if self._table is not None:
            return self._table.to_reader()
        return pa.RecordBatchReader.from_batches(self.schema, self._stream())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For everything that takes Arrow streams: `table.append(lake.sql("SELECT …"))`."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        if self._table is None:
            self._table = pa.Table.from_batches(list(self._stream()), self.schema)
        return self._table

    def to_pylist(self) -> list[dict[str, Any]]:
        need_distinct_names(self.schema)
        return self.to_arrow().to_pylist()  # type: ignore[no-any-return]  # Arrow has no types

    def to_pandas(self) -> "pd.DataFrame":
        try:
            frame: pd.DataFrame = self.to_arrow().to_pandas()
        except ImportError as error:
            raise MissingExtra(
                "pandas is not installed", hint="pip install 'lakebed[pandas]'"
            ) from error
        return frame

    def to_polars(self) -> "pl.DataFrame":
        need_distinct_names(self.schema)
        return frame_of(self.to_arrow())

    def show(self, limit: int = _SHOWN_ROWS) -> None:
        """Print the first rows, for people; no more rows are read than that takes."""
        rows = self._first(limit + 1)
        lines = list(table_lines(rows.slice(0, limit)))
        if rows.num_rows > limit:
            lines.append("… and more rows")
        sys.stdout.write("\n".join([*lines, ""]))

    def close(self) -> None:
        """Give the engine back; rows not read yet are gone."""
        self._reader = None
        close, self._close = self._close, None
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _first(self, count: int) -> pa.Table:
        """The first rows and perhaps some behind them; all rows can still be asked for."""
        if self._table is not None:
            return self._table
        taken = list[pa.RecordBatch]()
        stream = self._stream()
        for batch in stream:
            taken.append(batch)
            if sum(b.num_rows for b in taken) >= count:
                again = chain(taken, stream)
                self._reader = pa.RecordBatchReader.from_batches(self.schema, again)
                return pa.Table.from_batches(taken, self.schema)
        self._table = pa.Table.from_batches(taken, self.schema)
        return self._table

    def _stream(self) -> Iterator[pa.RecordBatch]:
        reader, self._reader = self._reader, None
        if reader is None:
            raise InvalidInput(
                "the rows of this result were read already",
                hint="call to_arrow() first to read them more than once",
            )
        try:
            yield from reader
        finally:
            self.close()


def need_distinct_names(schema: pa.Schema) -> None:
    """For forms in which a row is known by the names of its columns."""
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise InvalidInput(
            f"two columns of the answer are called {twice[0]!r}",
            hint="name them apart: SELECT a AS x, b AS y",
        )


def table_lines(rows: pa.Table) -> Iterator[str]:
    """Aligned columns under their names."""
    columns = [
        [_cell(name), *(_cell(value) for value in column.to_pylist())]
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    ]
    widths = [max(map(len, column)) for column in columns]
    for number, row in enumerate(zip(*columns, strict=True)):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)


def _cell(value: object) -> str:
    """In one line: a value cannot command a terminal."""
    text = "NULL" if value is None else str(value)
    return text if text.isprintable() else repr(text)[1:-1]
