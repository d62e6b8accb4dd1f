"""A plan as an Arrow dataset, for engines that read one: they hand down columns and filters.

Engines look at a dataset through a few methods only, and those are here. The rest of Arrow's
classes stands on parts that these do not have, so that none of them is given to users.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakebed.core.lease import Hold, leased
from lakebed.core.plan import Plan
from lakebed.core.prune import narrowed
from lakebed.engines.arrow.pushed import holds, told_apart
from lakebed.engines.arrow.read import read, read_schema
from lakebed.engines.arrow.steps import STEPS
from lakebed.engines.arrow.terms import Term, references, term_of
from lakebed.model.expressions import And
from lakebed.model.files import LiveFile
from lakebed.storage.base import Storage


class PlanScanner:
    """Some columns of the rows that a filter keeps; engines do not apply the filter again."""

    def __init__(
        self,
        plan: Plan,
        storage: Storage,
        hold: Hold,
        *,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
    ) -> None:
        self._plan, self._term = _filtered(plan, filter)
        self._columns = plan.columns if columns is None else tuple(columns)
        self._storage = storage
        self._hold = hold

    @property
    def projected_schema(self) -> pa.Schema:
        return read_schema(replace(self._plan, columns=self._columns))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return STEPS.watched(leased(self._hold, self._batches()))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        compared = set() if self._term is None else references(self._term)
        columns = (*self._columns, *sorted(compared.difference(self._columns)))
        for batch in read(replace(self._plan, columns=columns), self._storage):
            if self._term is None:
                yield batch
            else:
                yield batch.filter(holds(self._term, batch)).select(list(self._columns))


class PlanFragment(ds.Fragment):  # type: ignore[misc]  # pyarrow ships no types
    """Some files of a plan; engines read fragments side by side."""

    def __init__(self, plan: Plan, storage: Storage, hold: Hold) -> None:
        self._plan = plan
        self._storage = storage
        self._hold = hold

    @property
    def physical_schema(self) -> pa.Schema:
        return read_schema(self._plan)

    def scanner(
        self,
        schema: pa.Schema | None = None,  # noqa: ARG002 - always that of the dataset
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **_hints: object,
    ) -> PlanScanner:
        return PlanScanner(self._plan, self._storage, self._hold, columns=columns, filter=filter)


class PlanDataset(ds.Dataset):  # type: ignore[misc]  # as above
    def __init__(self, plan: Plan, storage: Storage, hold: Hold) -> None:
        self._plan = plan
        self._storage = storage
        self._hold = hold

    @property
    def schema(self) -> pa.Schema:
        return read_schema(self._plan)

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **_hints: object,
    ) -> PlanScanner:
        return PlanScanner(self._plan, self._storage, self._hold, columns=columns, filter=filter)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[PlanFragment]:
        """As many as there are cores, of about the same size; an empty plan has one."""
        kept, _ = _filtered(self._plan, filter)
        for plan in _pieces(replace(kept, predicate=self._plan.predicate), os.cpu_count() or 1):
            yield PlanFragment(plan, self._storage, self._hold)


def _filtered(plan: Plan, filter: pc.Expression | None) -> tuple[Plan, Term | None]:
    """The plan of the rows that the filter keeps, and the filter if a plan cannot say all of it."""
    if filter is None:
        return plan, None
    predicate, rest = told_apart(term_of(filter), plan.schema)
    if predicate is not None:
        both = predicate if plan.predicate is None else And((plan.predicate, predicate))
        plan = replace(narrowed(plan, predicate), predicate=both)
    return plan, rest


def _pieces(plan: Plan, most: int) -> list[Plan]:
    total = sum(live.file.size_bytes for live in plan.files)
    count = max(1, min(most, len(plan.files)))
    files: list[list[LiveFile]] = [[] for _ in range(count)]
    seen = 0
    for live in plan.files:
        files[seen * count // (total + 1)].append(live)
        seen += live.file.size_bytes
    return [replace(plan, files=tuple(part)) for part in files if part or count == 1]
