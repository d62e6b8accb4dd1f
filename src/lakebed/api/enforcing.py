"""CHECK constraints at work: rows are tested when they are written, or a constraint is new."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.api.constraints import columns_of, simple_predicate
from lakebed.core.plan import Plan
from lakebed.engines.arrow.evaluate import matches
from lakebed.engines.arrow.read import read
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.binding import bind
from lakebed.model.constraints import Constraint
from lakebed.model.errors import ConstraintViolated, QueryError
from lakebed.model.expressions import Not, Predicate
from lakebed.model.schema import Schema
from lakebed.rowops.workbench import Expression, Workbench
from lakebed.storage.base import Storage


def enforced(
    batches: Iterable[pa.RecordBatch],
    constraints: Mapping[str, Constraint],
    schema: Schema,
    bench: Workbench,
) -> Iterator[pa.RecordBatch]:
    """The batches, each checked as it passes; the first row against a constraint stops them."""
    with bench:
        tests = {name: _Test(name, each, schema, bench) for name, each in constraints.items()}
        first_row = 0
        for batch in batches:
            for test in tests.values():
                test.refuse_violations(batch, first_row)
            first_row += batch.num_rows
            yield batch


def refuse_unfit(constraints: Mapping[str, Constraint], schema: Schema, bench: Workbench) -> None:
    """A constraint whose types do not fit, or that is no condition, before any row is looked at."""
    with bench:
        for name, each in constraints.items():
            _Test(name, each, schema, bench)


def refuse_violated(
    constraints: Mapping[str, Constraint],
    schema: Schema,
    plan: Callable[[Predicate | None], Plan],
    bench: Workbench,
    storage: Storage,
) -> None:
    """No row there is may violate one; `plan` takes what the rows to look at must match."""
    with bench:
        for name, each in constraints.items():
            test = _Test(name, each, schema, bench)
            rows = plan(None if test.predicate is None else Not(test.predicate))
            for batch in read(replace(rows, columns=test.columns), storage):
                test.refuse_violations(batch, None)


class _Test:
    """One constraint: by Arrow where a predicate says it all, else by the SQL engine."""

    def __init__(self, name: str, constraint: Constraint, schema: Schema, bench: Workbench) -> None:
        self._name, self._schema, self._bench = name, schema, bench
        looked_at = columns_of(constraint, schema)
        self.columns = tuple(f.name for f in schema.fields if int(f.id) in looked_at)
        self.predicate = simple_predicate(constraint.sql)
        self._bound_predicate = None if self.predicate is None else bind(self.predicate, schema)
        if self.predicate is None:
            self._engine_test = self._checked(constraint)

    def _checked(self, constraint: Constraint) -> Expression:
        test = self._bench.expression(constraint.sql, f"constraint {self._name!r}")
        shape = pa.schema([to_arrow(self._schema).field(name) for name in self.columns])
        empty = pa.RecordBatch.from_pylist([], schema=shape)
        self._bench.refuse_no_condition([test], self._relation(empty))
        return test

    def refuse_violations(self, batch: pa.RecordBatch, first_row: int | None) -> None:
        """`first_row` counts among the rows written; None: the rows are in the table already."""
        index = pc.index(self._answers(batch), False).as_py()
        if index < 0:
            return
        row = None if first_row is None else first_row + index
        values = {name: batch.column(name)[index].as_py() for name in sorted(self.columns)}
        whose = "a row of the table" if row is None else f"row {row + 1}"
        raise ConstraintViolated(
            f"{whose} violates constraint {self._name!r}: {_shown(values)}",
            hint="correct the row, or leave the constraint out",
            constraint=self._name,
            row=row,
        )

    def _answers(self, batch: pa.RecordBatch) -> pa.Array:
        """TRUE, FALSE or NULL for every row, in their order."""
        if self._bound_predicate is not None:
            return matches(self._bound_predicate, batch)
        relation = self._relation(batch.select(self.columns))
        try:
            return self._bench.answers(self._engine_test, relation)
        except QueryError as error:
            raise ConstraintViolated(
                f"constraint {self._name!r} has no answer for a row: {error.message}",
                hint=error.hint,
                constraint=self._name,
            ) from error

    def _relation(self, batch: pa.RecordBatch) -> str:
        return self._bench.bind_batch("_lakebed_checked", batch, self._schema)


def _shown(values: Mapping[str, object]) -> str:
    text = ", ".join(f"{name} = {value!r}" for name, value in values.items())
    return text if len(text) <= 200 else text[:200] + "…"
