"""A change feed: rows that versions inserted, deleted and updated, streamed version by version.

Rows that come back as they were are no change, whatever became of their files. What is left is
paired to updates by row ids, then by the primary key; the rest was deleted or inserted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.engines.arrow.evaluate import matches
from lakebed.engines.arrow.read import read, read_schema
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import InvalidInput
from lakebed.model.expressions import Predicate
from lakebed.model.schema import Schema
from lakebed.rowops.steps import Step, narrowed
from lakebed.rowops.workbench import Workbench
from lakebed.storage.base import Storage

INSERT, DELETE = "insert", "delete"
BEFORE, AFTER = "update_before", "update_after"
ABOUT = [
    pa.field("_op", pa.string(), nullable=False),
    pa.field("_version", pa.int64(), nullable=False),
    pa.field("_time", pa.timestamp("us", "UTC"), nullable=False),
]


@dataclass(frozen=True, slots=True)
class Feed:
    """`columns` and `where` (bound) choose among the changes; they do not change what is one."""

    schema: Schema
    columns: tuple[str, ...]
    where: Predicate | None
    storage: Storage
    bench: Workbench

    def batches(self, step: Step) -> Iterator[pa.RecordBatch]:
        """Every change of a version; an update's two rows follow one another."""
        if step.gone.files and step.came.files:
            for batch in self._paired(step):
                rows = self._chosen(batch)
                if rows.num_rows:
                    yield self._told(rows, batch_ops(rows), step)
        elif step.gone.files or step.came.files:
            plan = step.gone if step.gone.files else step.came
            op = DELETE if step.gone.files else INSERT
            for batch in read(narrowed(plan, self.columns, self.where), self.storage):
                yield self._told(batch, pa.repeat(op, batch.num_rows), step)

    def _told(self, rows: pa.RecordBatch, ops: pa.Array, step: Step) -> pa.RecordBatch:
        time = pa.scalar(step.time_ms * 1000, pa.int64()).cast(ABOUT[2].type)
        about = [
            ops,
            pa.repeat(pa.scalar(step.version, pa.int64()), rows.num_rows),
            pa.repeat(time, rows.num_rows),
        ]
        shown = rows.select(list(self.columns))
        return pa.RecordBatch.from_arrays([*shown.columns, *about], schema=feed_schema(self))

    def _chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch if self.where is None else batch.filter(matches(self.where, batch))

    def _paired(self, step: Step) -> Iterator[pa.RecordBatch]:
        """All columns of the changed rows, then `_op`."""
        names = [f"c{n}" for n in range(len(self.schema.fields))]
        key = [
            name
            for name, field in zip(names, self.schema.fields, strict=True)
            if field.id in self.schema.primary_key
        ]
        pairing = Pairing(self.bench, names)
        pairing.load(self._numbered(step.gone), self._numbered(step.came))
        if step.has_row_ids:
            pairing.by_row_id()
        pairing.same_rows()
        if key:
            pairing.by_key(key)
        schema = to_arrow(self.schema)
        shown = pa.schema([*schema, ABOUT[0]])
        for batch in pairing.changes():
            columns = [c.cast(f.type) for c, f in zip(batch.columns, shown, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=shown)
        pairing.close()

    def _numbered(self, plan: Plan) -> pa.RecordBatchReader:
        """The rows as columns that no name of the table's can clash with."""
        about = ("_row_id",)
        read_as = read_schema(plan, about)
        names = [*(f"c{n}" for n in range(len(read_as) - 1)), "row_id", "n"]
        types = [*read_as.types, pa.int64()]
        schema = pa.schema(list(zip(names, types, strict=True)))
        return pa.RecordBatchReader.from_batches(
            schema, _with_numbers(read(plan, self.storage, metadata=about), schema)
        )


def feed_schema(feed: Feed) -> pa.Schema:
    by_name = {f.name: f for f in to_arrow(feed.schema)}
    return pa.schema([*(by_name[name] for name in feed.columns), *ABOUT])


def refuse_clash(columns: Sequence[str]) -> None:
    ours = {field.name for field in ABOUT} & {name.casefold() for name in columns}
    if ours:
        raise InvalidInput(
            f"the table has a column {min(ours)!r}, which is what the changes tell of themselves",
            hint="choose the other columns: changes(columns=[…])",
            column=min(ours),
        )


def batch_ops(rows: pa.RecordBatch) -> pa.Array:
    return rows.column(rows.num_columns - 1)


def _with_numbers(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in batches:
        numbers = pa.arange(first, first + batch.num_rows)
        first += batch.num_rows
        yield pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)


class Pairing:
    """Rows that went and rows that came, matched by the SQL engine, which spills to disk."""

    def __init__(self, bench: Workbench, columns: Sequence[str]) -> None:
        self._bench = bench
        self._columns = columns
        self._gone, self._came, self._pairs = (bench.name(n) for n in ("gone", "came", "pairs"))

    def load(self, gone: pa.RecordBatchReader, came: pa.RecordBatchReader) -> None:
        run = self._bench.run
        for table, rows in ((self._gone, gone), (self._came, came)):
            run(f"CREATE TEMP TABLE {table} AS SELECT * FROM {self._bench.bind_rows(rows)}")
        run(f"CREATE TEMP TABLE {self._pairs} (gone BIGINT, came BIGINT, changed BOOLEAN)")

    def by_row_id(self) -> None:
        """A row with the same id on both sides is the same row, changed or only copied."""
        changed = " OR ".join(f"g.{c} IS DISTINCT FROM a.{c}" for c in self._columns)
        self._bench.run(
            f"INSERT INTO {self._pairs} SELECT g.n, a.n, {changed}"
            f" FROM {self._gone} g JOIN {self._came} a ON g.row_id = a.row_id"
        )

    def same_rows(self) -> None:
        """Equal rows cancel out, each one of one side with one of the other."""
        self._match(self._columns, "IS NOT DISTINCT FROM", changed=False)

    def by_key(self, key: Sequence[str]) -> None:
        self._match(key, "=", changed=True)

    def _match(self, columns: Sequence[str], equals: str, *, changed: bool) -> None:
        on = " AND ".join(f"g.{c} {equals} a.{c}" for c in columns)
        self._bench.run(
            f"INSERT INTO {self._pairs} SELECT g.n, a.n, {changed}"
            f" FROM {self._ranked(self._gone, 'gone', columns)} g"
            f" JOIN {self._ranked(self._came, 'came', columns)} a ON g.k = a.k AND {on}"
        )

    def _ranked(self, table: str, side: str, columns: Sequence[str]) -> str:
        """Rows that are in no pair yet; `k` counts those with the same values."""
        listed = ", ".join(columns)
        return (
            f"(SELECT n, {listed}, row_number() OVER (PARTITION BY {listed} ORDER BY n) AS k"
            f" FROM {self._unpaired(table, side)})"
        )

    def _unpaired(self, table: str, side: str) -> str:
        return f"(SELECT t.* FROM {table} t ANTI JOIN {self._pairs} p ON t.n = p.{side})"

    def changes(self) -> Iterator[pa.RecordBatch]:
        """Deletes, then updates (before, after), then inserts; `_op` is the last column."""
        listed = ", ".join(self._columns)
        parts = count()
        deleted, updated, inserted = next(parts), next(parts), next(parts)
        both = (
            (self._gone, "gone", BEFORE, 0),
            (self._came, "came", AFTER, 1),
        )
        pairs = [
            f"SELECT {', '.join(f't.{c}' for c in self._columns)}, '{op}' AS op,"
            f" {updated} AS part, p.came AS place, {image} AS image"
            f" FROM {table} t JOIN {self._pairs} p ON t.n = p.{side} WHERE p.changed"
            for table, side, op, image in both
        ]
        alone = [
            f"SELECT {listed}, '{op}' AS op, {part} AS part, n AS place, 0 AS image"
            f" FROM {self._unpaired(table, side)}"
            for table, side, op, part in (
                (self._gone, "gone", DELETE, deleted),
                (self._came, "came", INSERT, inserted),
            )
        ]
        everything = " UNION ALL ".join([*alone, *pairs])
        yield from self._bench.batches(
            f"SELECT {listed}, op FROM ({everything}) ORDER BY part, place, image"
        )

    def close(self) -> None:
        for table in (self._gone, self._came, self._pairs):
            self._bench.run(f"DROP TABLE {table}")
