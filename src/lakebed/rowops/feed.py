"""A change feed: rows that versions inserted, deleted and updated, streamed version by version.

Rows that come back as they were are no change, whatever became of their files. What is left is
paired to updates by row ids, then by the primary key; the rest was deleted or inserted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.engines.arrow.evaluate import matches
from lakebed.engines.arrow.read import read, read_schema
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.binding import bind
from lakebed.model.errors import InvalidInput
from lakebed.model.expressions import And, Predicate
from lakebed.model.expressions import columns as columns_in
from lakebed.model.ids import FieldId
from lakebed.model.schema import Schema
from lakebed.model.types import Field, Primitive
from lakebed.rowops.pairing import DELETE, INSERT, Pairing
from lakebed.rowops.steps import Step, narrowed
from lakebed.rowops.workbench import Workbench
from lakebed.storage.base import Storage

ABOUT = [
    pa.field("_op", pa.string(), nullable=False),
    pa.field("_version", pa.int64(), nullable=False),
    pa.field("_time", pa.timestamp("us", "UTC"), nullable=False),
]


_FIELDS = (
    Field(FieldId(-1), "_op", Primitive("string"), True),
    Field(FieldId(-2), "_version", Primitive("long"), True),
    Field(FieldId(-3), "_time", Primitive("timestamp"), True),
)


@dataclass(frozen=True, slots=True)
class Feed:
    """`columns`, `where` and `about` (bound) choose among the changes; they do not change what is
    one. `about` looks at what the feed tells of a change, and perhaps at columns beside it."""

    schema: Schema
    columns: tuple[str, ...]
    where: Predicate | None
    storage: Storage
    bench: Workbench
    about: Predicate | None = None

    def batches(self, step: Step) -> Iterator[pa.RecordBatch]:
        """Every change of a version; an update's two rows follow one another."""
        if step.gone.files and step.came.files:
            for rows, ops in map(self._chosen, self._paired(step)):
                told = self._told(rows, ops, step)
                if told.num_rows:
                    yield told
        elif step.gone.files or step.came.files:
            plan = step.gone if step.gone.files else step.came
            op = DELETE if step.gone.files else INSERT
            for batch in read(narrowed(plan, self._needed(), self.where), self.storage):
                told = self._told(batch, pa.repeat(op, batch.num_rows), step)
                if told.num_rows:
                    yield told

    def _needed(self) -> tuple[str, ...]:
        """The columns that are shown, and those that decide whether a change is."""
        looked_at = {c.path[0] for c in columns_in(self.about)} if self.about is not None else set()
        own = [f.name for f in self.schema.fields if f.name in looked_at - set(self.columns)]
        return (*self.columns, *own)

    def _told(self, rows: pa.RecordBatch, ops: pa.Array, step: Step) -> pa.RecordBatch:
        time = pa.scalar(step.time_ms * 1000, pa.int64()).cast(ABOUT[2].type)
        about = [
            ops,
            pa.repeat(pa.scalar(step.version, pa.int64()), rows.num_rows),
            pa.repeat(time, rows.num_rows),
        ]
        shown = rows.select(list(self.columns))
        told = pa.RecordBatch.from_arrays([*shown.columns, *about], schema=feed_schema(self))
        if self.about is None:
            return told
        own = rows.select(list(self._needed()))
        named = dict(zip((f.name for f in ABOUT), about, strict=True))
        asked = named | dict(zip(own.schema.names, own.columns, strict=True))
        return told.filter(matches(self.about, pa.RecordBatch.from_pydict(asked)))

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


def split_where(
    where: Predicate | None, schema: Schema
) -> tuple[Predicate | None, Predicate | None]:
    """A condition bound: the part on the table's columns alone, and the part on changes."""
    if where is None:
        return None, None
    taken = {f.name.casefold() for f in schema.fields}
    about = tuple(f for f in _FIELDS if f.name not in taken)
    names = {f.name for f in about}
    parts = where.operands if isinstance(where, And) else (where,)
    told = [p for p in parts if {c.path[0].casefold() for c in columns_in(p)} & names]
    plain = [p for p in parts if p not in told]
    whole = replace(schema, fields=(*schema.fields, *about))
    return (
        bind(And(tuple(plain)), schema) if plain else None,
        bind(And(tuple(told)), whole) if told else None,
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
