"""What the rows say about one table, for publishers and checks. Each call is one view."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from lakebed.core.lines import find_commit
from lakebed.meta import (
    attachments,
    commits,
    files,
    lines,
    outbox,
    publications,
    refs,
    tables,
    vectors,
)
from lakebed.meta.store import Store, Tx
from lakebed.model.files import LiveFile
from lakebed.model.history import (
    VECTORS,
    CommitRecord,
    LineRecord,
    ManifestRecord,
    OutboxRow,
    PublicationRecord,
    Ref,
    Snapshot,
    TableHead,
    TableState,
)
from lakebed.model.ids import MAIN_LINE, Line, SnapshotId, StateId, TableId, VectorId, Version
from lakebed.model.partitioning import PartitionSpec, SortOrder
from lakebed.model.schema import Schema
from lakebed.model.types import is_scalar
from lakebed.model.vectors import DeletionVector


@dataclass(frozen=True, slots=True)
class VersionView:
    """One version of a table and what its commit did."""

    head: TableHead
    commit: CommitRecord
    state: TableState
    previous: TableState | None  # the state before this commit; None at the first version
    added: tuple[LiveFile, ...]
    removed: tuple[LiveFile, ...]
    snapshots: tuple[Snapshot, ...]


def typing_of(tx: Tx, table_id: TableId) -> files.Typing:
    """How to read a table's file rows back: types of all leaves it ever had, newest first."""
    return typing_and_specs(tx, table_id)[0]


def typing_and_specs(tx: Tx, table_id: TableId) -> tuple[files.Typing, list[PartitionSpec]]:
    """The same, and the specs, oldest first."""
    schemas, specs = tables.list_schemas(tx, table_id), tables.list_specs(tx, table_id)
    return _kept_typing(tx, table_id, schemas, specs), specs


def _kept_typing(
    tx: Tx, table_id: TableId, schemas: list[Schema], specs: list[PartitionSpec]
) -> files.Typing:
    key = ("typing", table_id, schemas[-1].id, specs[-1].id)
    return tx.keep(key, lambda: _typing(schemas, specs))


def _typing(schemas: list[Schema], specs: list[PartitionSpec]) -> files.Typing:
    newest = {f.id: f for schema in schemas for f in schema.walk()}
    leaves = {int(i): f.type for i, f in newest.items() if is_scalar(f.type)}
    everything = Schema(schemas[-1].id, tuple(newest.values()))
    return files.Typing(leaves, {int(s.id): s.types(everything) for s in specs})


class Ledger:
    """Bound to a table, for one thread. Schemas and specs are those of the version viewed last."""

    def __init__(self, store: Store, table_id: TableId) -> None:
        self._store = store
        self.table_id = table_id
        self._view: VersionView | None = None
        self._shapes: tuple[list[Schema], list[PartitionSpec]] | None = None
        self._tx: Tx | None = None  # that of one view, while there is one
        self._same: AbstractContextManager[Tx] | None = None  # which gives it again and again
        self._typing: files.Typing | None = None  # while there is one view

    @contextmanager
    def one_view(self) -> Iterator[None]:
        """Everything that is asked meanwhile is one view, and one transaction."""
        with self._store.read() as tx:
            self._tx, self._same = tx, nullcontext(tx)
            try:
                yield
            finally:
                self._tx = self._same = self._typing = None

    def _typing_of(self, tx: Tx) -> files.Typing:
        if tx is not self._tx:
            return typing_of(tx, self.table_id)
        if self._typing is None:
            self._typing = typing_of(tx, self.table_id)
        return self._typing

    def _read(self) -> AbstractContextManager[Tx]:
        return self._same or self._store.read()

    def head(self) -> TableHead | None:
        with self._read() as tx:
            return tables.get_table(tx, self.table_id)

    def remember(self, view: VersionView) -> None:
        """What a commit of this process has at hand need not be read again."""
        self._view, self._shapes = view, None

    def view(self, version: Version, line: Line = MAIN_LINE) -> VersionView:
        """The last one is remembered: both formats look at a version one after the other."""
        view = self._view
        if view is None or (view.commit.version, view.commit.line) != (version, line):
            view = self._view = self._load_view(version, line)
        return view

    def _load_view(self, version: Version, line: Line) -> VersionView:
        with self._read() as tx:
            head = tables.get_table(tx, self.table_id)
            commit = commits.get_commit(tx, self.table_id, version, line)
            assert head is not None and commit is not None, (self.table_id, version)
            schemas = tables.list_schemas(tx, self.table_id)
            specs = tables.list_specs(tx, self.table_id)
            self._shapes = schemas, specs
            typing = _kept_typing(tx, self.table_id, schemas, specs)
            if self._tx is not None:
                self._typing = typing
            before = find_commit(tx, self.table_id, Version(version - 1), line)
            return VersionView(
                head,
                commit,
                self._state(tx, commit.state_id),
                self._state(tx, before.state_id) if before else None,
                tuple(files.files_added(tx, self.table_id, version, typing, line)),
                tuple(files.files_removed(tx, self.table_id, version, typing, line)),
                tuple(commits.snapshots_of(tx, self.table_id, version, line)),
            )

    def _state(self, tx: Tx, state_id: StateId) -> TableState:
        return tables.get_state(tx, self.table_id, state_id)

    def state(self, state_id: StateId) -> TableState:
        with self._read() as tx:
            return self._state(tx, state_id)

    def schemas(self) -> list[Schema]:
        """Every schema the table ever had, oldest first."""
        return self._all_shapes()[0]

    def specs(self) -> list[PartitionSpec]:
        return self._all_shapes()[1]

    def _all_shapes(self) -> tuple[list[Schema], list[PartitionSpec]]:
        if self._shapes is not None:
            return self._shapes
        with self._read() as tx:
            shapes = tables.list_schemas(tx, self.table_id), tables.list_specs(tx, self.table_id)
        if self._view is not None:
            self._shapes = shapes  # of the version that is remembered
        return shapes

    def sort_orders(self) -> list[SortOrder]:
        with self._read() as tx:
            return tables.list_orders(tx, self.table_id)

    def refs(self) -> list[Ref]:
        """Branches and tags as they were made; a branch is where its line is."""
        with self._read() as tx:
            return refs.list_refs(tx, self.table_id)

    def line(self, line: Line) -> LineRecord:
        with self._read() as tx:
            return lines.get_line(tx, self.table_id, line)

    def commits(self, limit: int, line: Line = MAIN_LINE) -> list[CommitRecord]:
        """The newest ones of a line, newest first."""
        with self._read() as tx:
            return commits.newest_commits(tx, self.table_id, limit, line)

    def commits_until(self, version: Version, line: Line, limit: int) -> list[CommitRecord]:
        """The newest ones of a line up to a version, newest first; before its fork its parent's."""
        found: list[CommitRecord] = []
        with self._read() as tx:
            while True:
                wanted = limit - len(found)
                found += commits.newest_commits(tx, self.table_id, wanted, line, up_to=version)
                if line == MAIN_LINE or len(found) == limit:
                    return found
                record = lines.get_line(tx, self.table_id, line)
                version, line = min(version, record.fork_version), record.parent_line

    def files_at(self, version: Version, line: Line = MAIN_LINE) -> list[LiveFile]:
        with self._read() as tx:
            typing = self._typing_of(tx)
            return files.files_at(tx, self.table_id, version, typing, line)

    def files_in_run(
        self, version: Version, *, first: int, last: int, line: Line = MAIN_LINE
    ) -> list[LiveFile]:
        """Visible at a version, with ids from `first` to `last`: what a manifest holds."""
        with self._read() as tx:
            typing, place = self._typing_of(tx), (self.table_id, version)
            return files.files_in_run(tx, *place, typing, first=first, last=last, line=line)

    def row_numbers(self, first: int, last: int) -> list[tuple[int | None, int]]:
        """(first row id, number of rows) of each file of a run of ids, visible or not."""
        with self._read() as tx:
            return files.row_numbers(tx, self.table_id, first, last)

    def removed_between(self, *, after: Version, up_to: Version) -> list[LiveFile]:
        with self._read() as tx:
            typing = self._typing_of(tx)
            return files.files_removed_between(tx, self.table_id, typing, after=after, up_to=up_to)

    def bitmaps(self, ids: Sequence[VectorId]) -> dict[VectorId, bytes]:
        """The deleted positions of some deletion vectors, as portable Roaring bitmaps."""
        with self._read() as tx:
            return vectors.get_bitmaps(tx, self.table_id, ids)

    def vectors_in_run(
        self, version: Version, *, first: int, last: int, line: Line = MAIN_LINE
    ) -> list[LiveFile]:
        """Visible at a version, with vectors of these ids: what a delete manifest holds."""
        with self._read() as tx:
            typing, place = self._typing_of(tx), (self.table_id, version)
            return files.vectors_in_run(tx, *place, typing, first=first, last=last, line=line)

    def vector_files(self, format_: str, numbers: Sequence[int]) -> dict[int, PublicationRecord]:
        """Published files of deletion vectors, by the sequence numbers of their snapshots."""
        with self._read() as tx:
            return publications.get_numbered(tx, self.table_id, format_, VECTORS, numbers)

    def vectors_of(self, snapshot_id: SnapshotId) -> list[tuple[DeletionVector, str]]:
        """Those a snapshot made, in the order of their ids, each with its data file's path."""
        with self._read() as tx:
            return vectors.vectors_of(tx, self.table_id, snapshot_id)

    def commit_times(self, first: int, last: int) -> dict[int, int]:
        """The time in ms of each commit from one version to another."""
        with self._read() as tx:
            return commits.commit_times(tx, self.table_id, first, last)

    def commit_before(self, time_ms: int) -> CommitRecord | None:
        """The newest commit made at or before a time."""
        with self._read() as tx:
            return commits.commit_at(tx, self.table_id, time_ms)

    def app_transactions(self, version: Version) -> list[tuple[str, int, int]]:
        """(application, number, time in ms) in force at a version."""
        with self._read() as tx:
            return attachments.app_transactions_at(tx, self.table_id, version)

    def snapshots(self) -> list[Snapshot]:
        """All there are, of every line, oldest first."""
        with self._read() as tx:
            return commits.list_snapshots(tx, self.table_id)

    def published_snapshots(self, limit: int) -> list[Snapshot]:
        """The newest snapshots of all lines that have a manifest list, newest first."""
        with self._read() as tx:
            return commits.published_snapshots(tx, self.table_id, limit)

    def newest_published(self, line: Line) -> Snapshot | None:
        """The newest snapshot of a line that has a manifest list."""
        with self._read() as tx:
            return commits.newest_published(tx, self.table_id, line)

    def snapshot(self, snapshot_id: SnapshotId) -> Snapshot | None:
        with self._read() as tx:
            return commits.get_snapshot(tx, self.table_id, snapshot_id)

    def live_manifests(self, line: Line = MAIN_LINE) -> list[ManifestRecord]:
        """Those of a line's newest publication, in the order of their ids."""
        with self._read() as tx:
            return publications.live_manifests(tx, self.table_id, line)

    def manifests_at(self, line: Line, number: int) -> list[ManifestRecord]:
        """Those of a line as a publication left them."""
        with self._read() as tx:
            return publications.manifests_at(tx, self.table_id, line, number)

    def publication_at(
        self, format_: str, kind: str, line: Line, version: Version
    ) -> PublicationRecord | None:
        """The newest one that shows a line at a version or before."""
        with self._read() as tx:
            key = (self.table_id, format_, kind, line)
            return publications.newest_of_line(tx, *key, up_to=version)

    def publications(self, format_: str, kind: str, limit: int) -> list[PublicationRecord]:
        """The newest ones, newest first."""
        with self._read() as tx:
            return publications.newest_publications(tx, self.table_id, format_, kind, limit)

    def all_publications(self) -> list[PublicationRecord]:
        with self._read() as tx:
            return publications.list_publications(tx, self.table_id)

    def publication_times(self) -> dict[tuple[str, str, int], tuple[int, int | None]]:
        """By format, kind and number: when it was written, and when its version was committed."""
        with self._read() as tx:
            return publications.publication_times(tx, self.table_id)

    def known_paths(self) -> set[str]:
        """Every file below the table's root that the rows know of."""
        with self._read() as tx:
            paths = files.all_paths(tx, self.table_id)
            paths |= publications.manifest_paths(tx, self.table_id)
            published = publications.list_publications(tx, self.table_id)
        return paths | {p.path for p in published}

    def pending(self) -> list[OutboxRow]:
        with self._read() as tx:
            return outbox.pending(tx, self.table_id)
