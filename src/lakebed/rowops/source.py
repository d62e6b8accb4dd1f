"""Rows to merge, read once and kept in the engine, which spills them when they are many."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lakebed.model.errors import InvalidInput
from lakebed.model.quoting import quoted
from lakebed.rowops.workbench import Workbench, unused


@dataclass(frozen=True, slots=True)
class Source:
    relation: str  # quoted
    columns: tuple[str, ...]
    row: str  # quoted; the column, beside those, in which the rows are numbered

    def find(self, name: str) -> str | None:
        """The column of this name: as it is written, else without regard to case."""
        if name in self.columns:
            return name
        return next((c for c in self.columns if c.casefold() == name.casefold()), None)


def spool(
    bench: Workbench, schema: pa.Schema, batches: Iterable[pa.RecordBatch], beside: Iterable[str]
) -> Source:
    """`beside` are the columns of the table that the rows are joined with."""
    check_names(schema.names)
    row = unused("_lakebed_row", (*schema.names, *beside))
    numbered = pa.schema([*schema, pa.field(row, pa.int64())])
    stream = _Stream(batches, numbered)
    rows = bench.bind_rows(pa.RecordBatchReader.from_batches(numbered, iter(stream)))
    relation = bench.name("source")
    with stream.errors():
        bench.run(f"CREATE TEMP TABLE {relation} AS SELECT * FROM {rows}")
    return Source(relation, tuple(schema.names), quoted(row))


def repeated_key(bench: Workbench, source: Source, key: Sequence[str]) -> dict[str, Any] | None:
    """The values of a key that several rows have, if there is one."""
    listed = ", ".join(quoted(name) for name in key)
    return bench.row(
        f"SELECT {listed} FROM {source.relation} GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"
    )


def last_of_each(bench: Workbench, source: Source, key: Sequence[str], op: str) -> Source:
    """The source with only the last row of each key; `op` is the column of operations.

    An update behind another operation gives the whole row: nothing is left of the one before.
    """
    if repeated_key(bench, source, key) is None:
        return source
    relation, listed = bench.name("last"), ", ".join(quoted(name) for name in key)
    said, row = quoted(op), source.row
    whole = f"CASE WHEN s.{said} = 'U' AND g.anew THEN 'I' ELSE s.{said} END AS {said}"
    bench.run(
        f"CREATE TEMP TABLE {relation} AS SELECT s.* REPLACE ({whole}) FROM {source.relation} s"
        f" JOIN (SELECT max({row}) AS last, bool_or({said} <> 'U') AS anew"
        f" FROM {source.relation} GROUP BY {listed}) g ON s.{row} = g.last"
    )
    return replace(source, relation=relation)


def check_names(names: Iterable[str]) -> None:
    """Columns of a source are told apart by their names, whatever their case."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
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
        except Exception:  # whatever the engine makes of it, the first cause is what to tell
            if self._error is not None:
                raise self._error from None
            raise
