"""A change feed: rows that versions inserted, deleted and updated, streamed version by version.

Rows that come back as they were are no change, whatever became of their files. What is left is
paired to updates by row ids, then by the primary key; the rest was deleted or inserted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.engines.arrow.evaluate import matches
from lakebed.engines.arrow.read import read, read_schema
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import InvalidInput
from lakebed.model.expressions import Predicate
from lakebed.model.schema import Schema
from lakebed.rowops.pairing import DELETE, INSERT, Pairing
from lakebed.rowops.steps import Step, narrowed
from lakebed.rowops.workbench import Workbench
from lakebed.storage.base import Storage

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
            for rows, ops in map(self._chosen, self._paired(step)):
                if rows.num_rows:
                    yield self._told(rows, ops, step)
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

    def _chosen(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        """The table's columns and what happened to each row, of rows that are asked for."""
        rows, ops = batch.select(range(batch.num_columns - 1)), batch.columns[-1]
        if self.where is None:
            return rows, ops
        chosen = matches(self.where, rows)
        return rows.filter(chosen), ops.filter(chosen)

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


def _with_numbers(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in batches:
        numbers = pa.arange(first, first + batch.num_rows)
        first += batch.num_rows
        yield pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)
