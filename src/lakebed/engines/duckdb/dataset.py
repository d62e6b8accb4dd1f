"""The files of a plan as DuckDB reads them when it cannot do so itself: a dataset of Arrow.

DuckDB takes a pushed filter as done, so that it is applied here exactly.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakebed.core.lease import Hold, leased
from lakebed.core.plan import Plan
from lakebed.engines.arrow.pushed import as_predicate, weaker_predicate
from lakebed.engines.arrow.read import read_file, read_schema
from lakebed.engines.arrow.terms import Term, references, term_of
from lakebed.model.errors import LakebedError
from lakebed.model.expressions import And
from lakebed.storage.base import Storage

Failed = Callable[[LakebedError], None]


@dataclass(frozen=True, slots=True)
class PlanRows:
    """Rows of some files of a plan; `failed` hears of errors, which DuckDB shows as text only."""

    plan: Plan
    files: Sequence[int]
    storage: Storage
    metadata: tuple[str, ...] = ()
    failed: Failed | None = None
    hold: Hold = nullcontext  # keeps the version while it is read

    @property
    def schema(self) -> pa.Schema:
        return read_schema(self.plan, self.metadata)

    def batches(
        self, names: Sequence[str], filter: pc.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        term = None if filter is None else term_of(filter)
        needed = {*names, *(() if term is None else references(term))}
        plan, exact = self._filtered(term)
        plan = replace(plan, columns=tuple(name for name in plan.columns if name in needed))
        try:
            for batch in self._read(plan, tuple(n for n in self.metadata if n in needed)):
                kept = batch if exact else batch.filter(filter)
                yield kept.select(list(names))
        except LakebedError as error:
            if self.failed is not None:
                self.failed(error)
            raise

    def _read(self, plan: Plan, metadata: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        def batches() -> Iterator[pa.RecordBatch]:
            for number in self.files:
                yield from read_file(plan, self.storage, number, metadata=metadata)

        return leased(self.hold, batches())

    def _filtered(self, term: Term | None) -> tuple[Plan, bool]:
        """Row groups are left out by what a predicate can say of the filter; is that all of it?"""
        if term is None:
            return self.plan, True
        exact = as_predicate(term, self.plan.schema)
        predicate = weaker_predicate(term, self.plan.schema) if exact is None else exact
        if predicate is None:
            return self.plan, False
        given = self.plan.predicate
        both = predicate if given is None else And((given, predicate))
        return replace(self.plan, predicate=both), exact is not None


class PlanSource(ds.Dataset):  # type: ignore[misc]  # pyarrow ships no types
    """DuckDB asks a dataset for its schema and for scanners, and scanners for a reader."""

    def __init__(self, rows: PlanRows) -> None:
        self._rows = rows

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> "PlanScan":
        names = self.schema.names if columns is None else list(columns)
        return PlanScan(self._rows, names, filter)


class PlanScan:
    def __init__(self, rows: PlanRows, names: Sequence[str], filter: pc.Expression | None) -> None:
        self._rows = rows
        self._names = names
        self._filter = filter

    def to_reader(self) -> pa.RecordBatchReader:
        schema = pa.schema([self._rows.schema.field(name) for name in self._names])
        return pa.RecordBatchReader.from_batches(
            schema, self._rows.batches(self._names, self._filter)
        )
