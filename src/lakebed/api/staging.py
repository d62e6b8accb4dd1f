"""What a transaction has staged for one table: its base, and the files it adds and removes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakebed.core.state import next_state
from lakebed.model.changes import AppendFiles, Change, CreateTable, RemoveFiles, TableChanges
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.history import TableHead, TableState
from lakebed.model.ids import FileId, SnapshotId


@dataclass(slots=True)
class Staged:
    """`live` are the base's files; the transaction reads them less `removed` plus `appended`."""

    head: TableHead
    base: TableState | None  # None: the table is created here
    state: TableState
    create: CreateTable | None = None
    live: list[LiveFile] | None = None
    operations: list[str] = field(default_factory=list)
    appends: list[AppendFiles] = field(default_factory=list)
    forgotten: list[DataFile] = field(default_factory=list)  # appended here, then replaced here
    removed: dict[FileId, LiveFile] = field(default_factory=dict)
    reads: list[Predicate] = field(default_factory=list)
    metadata: list[Change] = field(default_factory=list)
    scanned: bool = False  # the transaction has read it

    @property
    def appended(self) -> list[DataFile]:
        return [f for append in self.appends for f in append.files]

    def append(self, append: AppendFiles, operation: str) -> None:
        self.appends.append(append)
        self.operations.append(operation)

    def remove(self, files: Sequence[LiveFile], reads: Predicate) -> None:
        """Files of this transaction are forgotten; files of the base are removed."""
        own = {f.file.path for f in files if f.id < 0}
        self.forgotten += [f for f in self.appended if f.path in own]
        self.appends = [
            AppendFiles(tuple(f for f in a.files if f.path not in own), a.schema_id)
            for a in self.appends
        ]
        self.removed.update({f.id: f for f in files if f.id >= 0})
        self.reads.append(reads)

    def change(self, change: Change, operation: str) -> None:
        self.state = next_state(self.state, [change])
        self.metadata.append(change)
        self.operations.append(operation)

    def visible(self) -> list[LiveFile]:
        """Read-your-writes: what this transaction sees. Its own files have negative ids."""
        assert self.live is not None
        version = self.head.version
        staged = [
            LiveFile(FileId(-1 - n), f, version, None, 0, SnapshotId(0), None)
            for n, f in enumerate(self.appended)
        ]
        return [f for f in self.live if f.id not in self.removed] + staged

    def changes(self, app_transaction: tuple[str, int] | None) -> TableChanges:
        listed: list[Change] = [self.create] if self.create else []
        listed += self.metadata
        listed += [RemoveFiles(tuple(self.removed), r) for r in self.reads]
        listed += self.appends
        return TableChanges(
            table_id=None if self.create else self.head.id,
            base=None if self.create else self.head.version,
            operation=_operation(self.operations),
            changes=tuple(listed),
            app_transaction=app_transaction,
        )


def _operation(operations: Sequence[str]) -> str:
    """One word for what several did together."""
    kinds = set(operations)
    if "create" in kinds:
        return "create"
    return operations[0] if len(kinds) == 1 else "transaction"
