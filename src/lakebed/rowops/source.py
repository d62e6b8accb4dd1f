"""Rows to merge, read once and kept in the engine, which spills them when they are many."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakebed.model.errors import InvalidInput
from lakebed.rowops.workbench import Workbench, quoted

ROW = "_lakebed_row"  # the place of a row in the source


@dataclass(frozen=True, slots=True)
class Source:
    relation: str  # quoted; its rows are numbered in the column ROW
    columns: tuple[str, ...]

    def find(self, name: str) -> str | None:
        """The column of this name: as it is written, else without regard to case."""
        if name in self.columns:
            return name
        return next((c for c in self.columns if c.casefold() == name.casefold()), None)


def spool(bench: Workbench, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Source:
    _check_names(schema.names)
    numbered = pa.schema([*schema, pa.field(ROW, pa.int64())])
    stream = _Stream(batches, numbered)
    rows = bench.bind_rows(pa.RecordBatchReader.from_batches(numbered, iter(stream)))
    relation = bench.name("source")
    with stream.errors():
        bench.run(f"CREATE TEMP TABLE {relation} AS SELECT * FROM {rows}")
    return Source(relation, tuple(schema.names))


def repeated_key(bench: Workbench, source: Source, key: Sequence[str]) -> dict[str, Any] | None:
    """The values of a key that several rows have, if there is one."""
    listed = ", ".join(quoted(name) for name in key)
    return bench.row(
        f"SELECT {listed} FROM {source.relation} GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"
    )


def last_of_each(bench: Workbench, source: Source, key: Sequence[str]) -> Source:
    """The source with only the last row of each key."""
    if repeated_key(bench, source, key) is None:
        return source
    relation, listed = bench.name("last"), ", ".join(quoted(name) for name in key)
    bench.run(
        f"CREATE TEMP TABLE {relation} AS SELECT * FROM {source.relation} WHERE {ROW} IN"
        f" (SELECT max({ROW}) FROM {source.relation} GROUP BY {listed})"
    )
    return Source(relation, source.columns)


def _check_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen or name == ROW:
            raise InvalidInput(
                f"the source has two columns {name!r}, or names that differ only in case",
                hint="rename one of them",
                column=name,
            )
        seen.add(name.casefold())


class _Stream:
    """Batches on their way into the engine, which would hide what went wrong with one."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches = batches
        self._schema = schema
        self._error: BaseException | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        first = 0
        try:
            for batch in self._batches:
                numbers = pa.arange(first, first + batch.num_rows)
                first += batch.num_rows
                columns = [*batch.columns, numbers]
                yield pa.RecordBatch.from_arrays(columns, schema=self._schema)
        except BaseException as error:
            self._error = error
            raise

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            if self._error is not None:
                raise self._error from None
            raise
