"""What a transaction has staged for one table: its base, and the files it adds and removes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakebed.core.state import next_state
from lakebed.model.changes import (
    AppendFiles,
    Change,
    CreateTable,
    DeleteRows,
    FastForward,
    RemoveFiles,
    Restore,
    TableChanges,
)
from lakebed.model.counts import NO_ROWS, RowCounts
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile, LiveFile, staged
from lakebed.model.history import TableHead, TableState
from lakebed.model.ids import MAIN_LINE, FileId, SnapshotId, VectorId
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.vectors import DeletionVector, Positions
from lakebed.rowops.change import RowChange

PositionsById = Mapping[FileId, Positions]
_NONE = Positions()


@dataclass(slots=True)
class Staged:
    """`live` are the base's files; the transaction reads them less `removed` plus `appended`."""

    head: TableHead
    base: TableState | None  # None: the table is created here
    state: TableState
    create: CreateTable | None = None
    live: list[LiveFile] | None = None
    known: dict[FileId, LiveFile] = field(default_factory=dict)  # of `live`, until that is read
    specs: dict[int, PartitionSpec] | None = None  # those the base has, once looked at
    operations: list[str] = field(default_factory=list)
    appends: list[AppendFiles] = field(default_factory=list)
    forgotten: list[DataFile] = field(default_factory=list)  # appended here, then replaced here
    removed: dict[FileId, LiveFile] = field(default_factory=dict)
    reads: list[Predicate] = field(default_factory=list)
    metadata: list[Change] = field(default_factory=list)
    scanned: bool = False  # the transaction has read it
    deleted: dict[FileId, Positions] = field(default_factory=dict)  # rows of the base's files
    own_deleted: dict[str, Positions] = field(default_factory=dict)  # of appended files, by path
    copied: list[DataFile] = field(default_factory=list)  # appended by changes of rows
    counts: RowCounts | None = None  # of all changes of rows
    inserted: int = 0  # rows of plain appends
    sees_all_rows: bool = False  # what it changes holds only if no row came in between
    moved: Restore | FastForward | None = None  # the whole table becomes what it was, or a branch

    @property
    def appended(self) -> list[DataFile]:
        return [f for append in self.appends for f in append.files]

    def append(self, append: AppendFiles, operation: str) -> None:
        self.appends.append(append)
        self.operations.append(operation)
        if operation == "append":
            self.inserted += sum(f.record_count for f in append.files)

    def remove(self, files: Sequence[LiveFile], reads: Predicate) -> None:
        """Files of this transaction are forgotten; files of the base are removed."""
        own = {f.file.path for f in files if f.id < 0}
        self.forgotten += [f for f in self.appended if f.path in own]
        self.appends = [
            replace(a, files=tuple(f for f in a.files if f.path not in own)) for a in self.appends
        ]
        self.removed.update({f.id: f for f in files if f.id >= 0})
        for file in files:
            self.deleted.pop(file.id, None)
            self.own_deleted.pop(file.file.path, None)
        self.reads.append(reads)

    def change_rows(self, change: RowChange, operation: str) -> None:
        """A change that is none leaves everything as it is, but the transaction has looked."""
        if change.is_empty:
            self.scanned = True
        else:
            self.take_rows(change)
            self.operations.append(operation)

    def take_rows(self, change: RowChange) -> None:
        """Rows go, files go, files come in their place."""
        self.counts = change.counts + (self.counts or NO_ROWS)
        own = [f.path for f in self.appended]
        for file_id, gone in change.deleted.items():
            if file_id < 0:
                path = own[-1 - file_id]
                self.own_deleted[path] = self.own_deleted.get(path, _NONE) | gone
            else:
                self.deleted[file_id] = self.deleted.get(file_id, _NONE) | gone
        self.remove(change.removed, change.reads)
        self.copied += change.written
        written = AppendFiles(change.written, self.state.schema.id, has_row_ids=change.has_row_ids)
        self.appends.append(written)

    def move(
        self, change: Restore | FastForward, operation: str, state: TableState, live: list[LiveFile]
    ) -> None:
        """The table as a whole; nothing else can be done to it in the same commit."""
        if self.operations or self.create is not None:
            raise _not_alone(operation)
        self.moved, self.state, self.live = change, state, live
        self.operations.append(operation)

    def change(self, change: Change, operation: str) -> None:
        if self.head.line != MAIN_LINE:
            raise UnsupportedFeature(
                f"columns and properties of {self.head.name} are the table's, not a branch's",
                hint="change the table itself: its branches follow",
            )
        self.state = next_state(self.state, [change])
        self.metadata.append(change)
        self.operations.append(operation)

    def visible(self, live: Sequence[LiveFile]) -> list[LiveFile]:
        """Read-your-writes: what this transaction sees, of the base's files only these. Its own
        files have negative ids."""
        version = self.head.version
        base = [_less(f, self.deleted.get(f.id, _NONE)) for f in live if f.id not in self.removed]
        own = [
            _less(live, self.own_deleted.get(live.file.path, _NONE))
            for live in staged(self.appended, version)
        ]
        return base + own

    def positions(
        self, files: Sequence[LiveFile], kept: Callable[[Sequence[LiveFile]], PositionsById]
    ) -> PositionsById:
        """The rows of some visible files that are gone; `kept` knows those of the base."""
        wanted = {f.id for f in files}
        known = self.known.values() if self.live is None else self.live
        base = [f for f in known if f.id in wanted and f.vector is not None]
        gone = dict(kept(base)) if base else {}
        for file in files:
            ours = self.deleted.get(file.id) or self.own_deleted.get(file.file.path)
            if ours:
                gone[file.id] = gone.get(file.id, _NONE) | ours
        return gone

    def changes(self, app_transaction: tuple[str, int] | None) -> TableChanges:
        if self.moved is not None:
            return self._moved(self.moved, app_transaction)
        listed: list[Change] = [self.create] if self.create else []
        listed += self.metadata
        listed += [RemoveFiles(tuple(self.removed), r) for r in self.reads]
        if self.deleted:
            listed.append(DeleteRows(dict(self.deleted), self.reads[0]))
        listed += [self._with_deleted(append) for append in self.appends if append.files]
        return TableChanges(
            table_id=None if self.create else self.head.id,
            base=None if self.create else self.head.version,
            operation=_operation(self.operations),
            changes=tuple(listed),
            app_transaction=app_transaction,
            metrics=self._metrics(),
            sees_all_rows=self.sees_all_rows,
            line=self.head.line,
        )

    def _metrics(self) -> dict[str, int]:
        """Of changes of rows, with the rows that were appended beside them."""
        if self.counts is None:
            return {}
        return (self.counts + RowCounts(inserted_rows=self.inserted)).to_summary()

    def _moved(
        self, change: Restore | FastForward, app_transaction: tuple[str, int] | None
    ) -> TableChanges:
        if len(self.operations) > 1:
            raise _not_alone(self.operations[0])
        return TableChanges(
            table_id=self.head.id,
            base=self.head.version,
            operation=self.operations[0],
            changes=(change,),
            app_transaction=app_transaction,
            line=self.head.line,
            metrics={"restored_version": change.version} if isinstance(change, Restore) else {},
        )

    def _with_deleted(self, append: AppendFiles) -> AppendFiles:
        gone = {n: self.own_deleted.get(f.path) for n, f in enumerate(append.files)}
        return replace(append, deleted={n: p for n, p in gone.items() if p})


def _less(live: LiveFile, gone: Positions) -> LiveFile:
    """The file without rows that this transaction takes away: it counts as if it had a vector."""
    if not gone:
        return live
    before = live.vector.cardinality if live.vector else 0
    vector = DeletionVector(VectorId(-1), before + len(gone), 0, 0, SnapshotId(0), None, 0)
    return replace(live, vector=vector)


def _not_alone(operation: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"a {operation} is the only change a transaction can make to a table",
        hint="make the other changes in a transaction of their own",
    )


def _operation(operations: Sequence[str]) -> str:
    """One word for what several did together."""
    kinds = set(operations)
    if "create" in kinds:
        return "create"
    return operations[0] if len(kinds) == 1 else "transaction"
