"""What workers wrote, committed or taken back: the side of tasks that asks the database."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from lakebed.api.creating import NewTable, stage_table, staged_new
from lakebed.api.engine_rows import EngineRows
from lakebed.api.options import Options
from lakebed.api.parts import Parts
from lakebed.api.rowops import to_condition
from lakebed.api.transaction import Transaction
from lakebed.api.write_task import WriteTask, Written, files_of, made_for
from lakebed.api.writing import write_options
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.changes import CreateTable
from lakebed.model.errors import LakebedError
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile
from lakebed.model.history import Commit, TableHead, TableState
from lakebed.model.names import TableName
from lakebed.model.schema import Schema
from lakebed.storage.claim import MARKER


@dataclass(frozen=True, slots=True)
class WrittenRows(EngineRows):
    """Rows that are in files already, taken wherever rows are."""

    written: Sequence[Written]
    schema: Schema

    @property
    def arrow_schema(self) -> pa.Schema:
        return to_arrow(self.schema)

    def write(
        self,
        parts: Parts,  # noqa: ARG002 - the files are there already
        head: TableHead,
        state: TableState,
        must_match: Predicate | None = None,
    ) -> list[DataFile]:
        return files_of(self.written, head, made_for(head, state, must_match))


def task_for(parts: Parts, head: TableHead, where: str | None = None) -> WriteTask:
    """`where` is the condition of the overwrite that the rows are for."""
    state = parts.catalog.state(head, head.state_id)
    condition = None if where is None else to_condition(where)
    exact = condition is not None and condition.is_exact
    bound = condition.bound(state.schema) if condition is not None and exact else None
    return _task(parts, head, state, must_match=bound)


def new_task(parts: Parts, name: TableName, schema: object, new: NewTable) -> WriteTask:
    staged, _ = stage_table(parts, name, schema, new)
    return _task(parts, staged.head, staged.state, create=staged.create)


def _task(
    parts: Parts,
    head: TableHead,
    state: TableState,
    *,
    create: CreateTable | None = None,
    must_match: Predicate | None = None,
) -> WriteTask:
    return WriteTask(
        parts.storage.root_uri,
        head,
        state,
        create,
        write_options(parts.settings, state),
        must_match,
        int(parts.settings.value("query.memory-limit")) or None,
    )


def commit_new(
    parts: Parts, task: WriteTask, written: Sequence[Written], options: Options
) -> Commit:
    """Create the table of a task together with its rows."""
    assert task.create is not None
    name = str(task.create.name)
    with Transaction(parts, options) as transaction:
        table = transaction.stage_new(name, staged_new(task.create))
        table.append(WrittenRows(written, task.schema))
    return transaction.commits[name]


def discard(parts: Parts, task: WriteTask, written: Iterable[Written]) -> None:
    """Delete what was written, unless it is in a commit: that one may have failed to say so."""
    paths = {file.path for each in written for file in each.files}
    head = task.head
    if task.create is not None:
        found = [h for h in parts.catalog.list_tables(None) if h.uuid == task.create.uuid]
        if found:
            head = found[0]
        else:
            paths.add(MARKER)
    if head.id >= 0:
        paths -= parts.outbox.ledger(head.id).known_paths()
    for path in paths:
        with suppress(LakebedError):  # an orphan, which maintenance finds
            parts.storage.delete(f"{head.location}/{path}")
