"""Reading in other processes: a task holds what a worker needs to know of a plan, and no more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.engines import open_session
from lakebed.engines.arrow.read import read, read_schema
from lakebed.model.expressions import Predicate
from lakebed.model.files import LiveFile
from lakebed.model.schema import Schema
from lakebed.rowops.feed import Feed
from lakebed.rowops.steps import Step
from lakebed.rowops.workbench import Workbench
from lakebed.storage.open import open_storage

_TASK_BYTES = 64 * 2**20  # of files that one task reads, unless a single one is larger


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Files to be read wherever the warehouse can be reached; the database is not asked."""

    warehouse: str
    plan: Plan

    @property
    def arrow_schema(self) -> pa.Schema:
        return read_schema(self.plan)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return read(self.plan, open_storage(self.warehouse))


@dataclass(frozen=True, slots=True)
class ChangeTask:
    """What one version did to rows, or a part of what it added; read like a ReadTask."""

    warehouse: str
    step: Step
    schema: Schema  # all rows are read as
    columns: tuple[str, ...]
    where: Predicate | None
    memory_bytes: int | None

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        storage = open_storage(self.warehouse)
        session = partial(
            open_session,
            storage,
            memory_bytes=self.memory_bytes,
            spill_folder=None,
            threads=1,  # other tasks run beside this one
        )
        with Workbench(session) as bench:
            feed = Feed(self.schema, self.columns, self.where, storage, bench)
            yield from feed.batches(self.step)


def read_tasks(warehouse: str, plan: Plan) -> list[ReadTask]:
    """Several small files make one task, so that there are no more of them than is good."""
    return [ReadTask(warehouse, part) for part in split_plan(plan)]


def split_plan(plan: Plan) -> list[Plan]:
    groups: list[list[LiveFile]] = []
    room = 0
    for live in plan.files:
        if not groups or live.file.size_bytes > room:
            groups.append([])
            room = _TASK_BYTES
        groups[-1].append(live)
        room -= live.file.size_bytes
    return [slim(plan, group) for group in groups]


def slim(plan: Plan, files: Sequence[LiveFile]) -> Plan:
    """The plan for some of its files, without what only the planner needs: it travels pickled."""
    return replace(
        plan,
        files=tuple(replace(live, file=replace(live.file, stats={})) for live in files),
        deleted={live.id: plan.deleted[live.id] for live in files if live.id in plan.deleted},
        specs={},
    )
