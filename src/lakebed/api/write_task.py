"""Writing in other processes: what a worker needs to know of a table to write files of it."""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lakebed.api.enforcing import enforced
from lakebed.api.options import digest_of
from lakebed.api.read_task import ReadTask
from lakebed.core.plan import Plan
from lakebed.engines import open_session
from lakebed.engines.arrow.checked import checked
from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.write import WriteOptions, write
from lakebed.model.changes import CreateTable
from lakebed.model.errors import CommitConflict
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile, staged
from lakebed.model.history import TableHead, TableState
from lakebed.model.partitioning import UNPARTITIONED, UNSORTED
from lakebed.model.schema import Schema
from lakebed.rowops.workbench import Workbench
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
        live = tuple(staged(files, self.head.version))
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
