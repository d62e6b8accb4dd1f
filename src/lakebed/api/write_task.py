"""Writing in other processes: workers write data files, one process commits what they hand in."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lakebed.api.creating import NewTable, stage_table, staged_new
from lakebed.api.enforcing import enforced
from lakebed.api.engine_rows import EngineRows
from lakebed.api.options import Options, digest_of
from lakebed.api.parts import Parts
from lakebed.api.read_task import ReadTask
from lakebed.api.rowops import to_condition
from lakebed.api.transaction import Transaction
from lakebed.api.writing import checked, write_options
from lakebed.core.plan import Plan
from lakebed.engines import open_session
from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.types import to_arrow
from lakebed.engines.arrow.write import WriteOptions, write
from lakebed.model.changes import CreateTable
from lakebed.model.errors import CommitConflict, LakebedError
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.history import Commit, TableHead, TableState
from lakebed.model.ids import FileId, SnapshotId
from lakebed.model.names import TableName
from lakebed.model.partitioning import UNPARTITIONED, UNSORTED
from lakebed.model.schema import Schema
from lakebed.rowops.workbench import Workbench
from lakebed.storage.claim import MARKER
from lakebed.storage.open import open_storage


@dataclass(frozen=True, slots=True)
class Written:
    """What one call of a task wrote; nothing of it is visible before it is committed."""

    files: tuple[DataFile, ...]
    made_for: str  # the table as it was


@dataclass(frozen=True, slots=True)
class WriteTask:
    """How rows become data files of a table; it pickles small, and asks no database."""

    warehouse: str
    head: TableHead
    state: TableState
    create: CreateTable | None  # of a table that the commit will create
    options: WriteOptions
    must_match: Predicate | None  # bound; of an overwrite with a condition
    memory_bytes: int | None

    @property
    def schema(self) -> Schema:
        return self.state.schema

    def check(self, schema: pa.Schema) -> None:
        """Refuse rows of a wrong shape before there are any."""
        list(conform([pa.RecordBatch.from_pylist([], schema=schema)], self.schema))

    def write(self, batches: Iterable[pa.RecordBatch]) -> Written:
        """Check every row and write it; a call that fails leaves no file of its own."""
        return self._write(self._passed(batches))

    def spool(self, batches: Iterable[pa.RecordBatch]) -> Written:
        """Write rows for a later step that reads them back and decides what becomes of them."""
        plain = replace(self.state, spec=UNPARTITIONED, sort_order=UNSORTED)
        loose = replace(self, state=plain)
        written = loose._write(conform(batches, self.schema))  # noqa: SLF001 - of this class
        return replace(written, made_for=self.made_for)

    def spooled(self, written: Iterable[Written]) -> ReadTask:
        """The rows that were spooled; files are in no version, so that they have no real ids."""
        files = files_of(written, self.head, self.made_for)
        live = tuple(
            LiveFile(FileId(-1 - n), file, self.head.version, None, 0, SnapshotId(0), None)
            for n, file in enumerate(files)
        )
        names = tuple(field.name for field in self.schema.fields)
        plan = Plan(self.head.location, self.head.version, self.schema, names, None, live, 0)
        return ReadTask(self.warehouse, plan)

    @property
    def made_for(self) -> str:
        return made_for(self.head, self.state, self.must_match)

    def _passed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: Iterator[pa.RecordBatch] = conform(batches, self.schema)
        if self.state.constraints:
            session = partial(
                open_session,
                open_storage(self.warehouse),
                memory_bytes=self.memory_bytes,
                spill_folder=None,
                threads=1,  # other tasks run beside this one
            )
            rows = enforced(rows, self.state.constraints, self.schema, Workbench(session))
        return rows if self.must_match is None else checked(rows, self.must_match)

    def _write(self, rows: Iterable[pa.RecordBatch]) -> Written:
        files = write(
            rows,
            storage=open_storage(self.warehouse),
            root=self.head.location,
            schema=self.schema,
            spec=self.state.spec,
            sort_order=self.state.sort_order,
            options=self.options,
            name_prefix=uuid.uuid4().hex,  # attempts of one task must not meet
        )
        return Written(tuple(files), self.made_for)


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


def files_of(written: Iterable[Written], head: TableHead, now: str) -> list[DataFile]:
    """All files, if the table is still as they were written for."""
    files: list[DataFile] = []
    for each in written:
        if each.made_for != now:
            raise CommitConflict(
                f"table {head.name} was altered while its rows were written",
                hint="write the rows again",
                table=str(head.name),
            )
        files += each.files
    return files


def made_for(head: TableHead, state: TableState, must_match: Predicate | None) -> str:
    """Equal as long as rows written for one belong into the other."""
    constraints = sorted((name, each.sql) for name, each in state.constraints.items())
    return digest_of("write", head.uuid, state.schema.fields, state.spec, constraints, must_match)


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
