"""Pure: what a commit's changes do to a table's rows."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakebed.core.state import upgrades
from lakebed.core.tally import commit_summary, iceberg_summary, tally
from lakebed.model.changes import (
    AppendFiles,
    DeleteRows,
    FastForward,
    Proposal,
    RemoveFiles,
    Republish,
    Restore,
    TableChanges,
)
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.history import (
    ICEBERG,
    CommitRecord,
    LineRecord,
    Snapshot,
    TableHead,
    TableState,
)
from lakebed.model.ids import MAIN_LINE, FileId, SnapshotId, VectorId, Version
from lakebed.model.vectors import DeletionVector, Positions, place_vectors


@dataclass(frozen=True, slots=True)
class Found:
    """The state a commit leaves behind, and the files it touches as the rows have them now."""

    state: TableState
    removed: Sequence[LiveFile] = ()  # to be no longer visible
    returned: Sequence[LiveFile] = ()  # to be visible again, with the vectors they had
    losing: Mapping[FileId, tuple[LiveFile, Positions]] = field(default_factory=dict)
    unnumbered: int = 0  # rows that get their ids by this commit, which upgrades to Iceberg v3
    branch: LineRecord | None = None  # what main becomes


@dataclass(frozen=True, slots=True)
class Effects:
    """Rows to write, and the table's row afterwards."""

    head: TableHead
    state: TableState
    state_is_new: bool
    commit: CommitRecord
    snapshot: Snapshot | None
    closed: tuple[LiveFile, ...]  # intervals that end
    opened: tuple[LiveFile, ...]  # intervals that begin; a file in both has another vector
    files: tuple[LiveFile, ...]  # those of `opened` that are new
    vectors: tuple[tuple[DeletionVector, FileId, bytes], ...]
    outbox: tuple[tuple[str, str], ...]  # (format, kind)
    turned_off: tuple[str, ...]  # formats whose waiting publications are forgotten
    numbers_rows: bool  # files get their first row ids: the upgrade to Iceberg v3
    merged: LineRecord | None  # the branch that main has taken


def apply(
    proposal: Proposal,
    ours: TableChanges,
    head: TableHead,
    before: TableState | None,
    *,
    found: Found,
    time_ms: int,
) -> Effects:
    """`before` is None when the table is being created."""
    state = found.state
    starts = _starts(ours, before, state)
    upgraded = upgrades(before, state)
    numbered = found.unnumbered
    draft = _draft(ours, found)
    shows = draft.changes or ((ICEBERG in starts or upgraded) and _has_shown(head))
    snapshot = None
    if shows and found.branch is None:
        snapshot = _snapshot(proposal, head, state, draft, numbered=numbered, time_ms=time_ms)
    placed = _place(draft, head, snapshot, numbered=numbered)
    sums = tally(placed.opened, placed.closed)
    current = found.branch.snapshot_id if found.branch else head.snapshot_id
    commit = CommitRecord(
        table_id=head.id,
        version=Version(head.version + 1),
        time_ms=time_ms,
        operation=ours.operation,
        state_id=state.id,
        author=proposal.author,
        message=proposal.message,
        transaction_id=proposal.transaction_id,
        blind_append=not any(isinstance(c, _LOOKING) for c in ours.changes),
        summary={
            **commit_summary(sums),
            **ours.metrics,
            **({"branch_version": found.branch.version} if found.branch else {}),
            **(proposal.summary or {}),
        },
        app_transaction=ours.app_transaction,
        line=head.line,
        snapshot_id=snapshot.id if snapshot else current,
    )
    if snapshot is not None:
        summary = {**iceberg_summary(head, sums), **(proposal.summary or {})}
        snapshot = replace(snapshot, summary=summary)
    return Effects(
        head=_advance(head, commit, snapshot, placed),
        state=state,
        state_is_new=before is None or state is not before,
        commit=commit,
        snapshot=snapshot,
        closed=placed.closed,
        opened=placed.opened,
        files=placed.files,
        vectors=placed.vectors,
        outbox=_outbox(head, state, starts),
        turned_off=tuple(f for f in before.formats if f not in state.formats) if before else (),
        numbers_rows=numbered > 0,
        merged=found.branch,
    )


# Changes that look at rows there are: no append that is blind.
_LOOKING = RemoveFiles | DeleteRows | Restore | FastForward


def _outbox(
    head: TableHead, state: TableState, starts: frozenset[str]
) -> tuple[tuple[str, str], ...]:
    """Branches are Iceberg's alone: Delta shows main."""
    shown = state.formats if head.line == MAIN_LINE else tuple(set(state.formats) & {ICEBERG})
    return tuple((f, "start" if f in starts else "commit") for f in shown)


@dataclass(frozen=True, slots=True)
class _Draft:
    """The files of a commit before they have ids."""

    added: Sequence[tuple[DataFile, Positions | None]]
    removed: Sequence[LiveFile]
    returned: Sequence[LiveFile]
    vectored: Sequence[tuple[LiveFile, Positions]]  # with everything that is gone of them

    @property
    def changes(self) -> bool:
        return bool(self.added or self.removed or self.returned or self.vectored)


def _draft(ours: TableChanges, found: Found) -> _Draft:
    added: list[tuple[DataFile, Positions | None]] = []
    for change in ours.changes:
        if isinstance(change, AppendFiles):
            added += [(f, change.deleted.get(at)) for at, f in enumerate(change.files)]
    gone = {file_id: positions for file_id, (_, positions) in found.losing.items()}
    for change in ours.changes:
        if isinstance(change, DeleteRows):
            gone |= {i: gone[i] | positions for i, positions in change.positions.items()}
    losing = [(found.losing[i][0], positions) for i, positions in sorted(gone.items())]
    empty = [f for f, positions in losing if len(positions) == f.file.record_count]
    return _Draft(
        added=[(f, p) for f, p in added if p is None or len(p) < f.record_count],
        removed=[*found.removed, *empty],
        returned=found.returned,
        vectored=[(f, p) for f, p in losing if len(p) < f.file.record_count],
    )


def _has_shown(head: TableHead) -> bool:
    """Files to show, or an earlier snapshot that must not be taken for the newest."""
    return head.live_files > 0 or head.snapshot_id is not None


def _starts(ours: TableChanges, before: TableState | None, state: TableState) -> frozenset[str]:
    """Formats published whole at this version: turned on by it, or published anew.

    For Iceberg that takes a snapshot that shows the files there are.
    """
    anew = {f for c in ours.changes if isinstance(c, Republish) for f in c.formats}
    turned_on = set(state.formats) - set(before.formats) if before else set()
    return frozenset((anew | turned_on) & set(state.formats))


def _snapshot(
    proposal: Proposal,
    head: TableHead,
    state: TableState,
    draft: _Draft,
    *,
    numbered: int,
    time_ms: int,
) -> Snapshot:
    adds = bool(draft.added or draft.returned)
    # Readers of appends look at data files alone: rows that are gone from the first would show.
    takes = bool(draft.removed or draft.vectored) or any(gone for _, gone in draft.added)
    operation = "append" if not takes else "overwrite" if adds else "delete"
    if not draft.changes:
        operation = "replace"
    lineage = state.iceberg_version >= 3
    return Snapshot(
        id=snapshot_id(proposal.transaction_id, head.uuid),
        version=Version(head.version + 1),
        ordinal=0,
        sequence_number=head.last_sequence_number + 1,
        parent_id=head.snapshot_id,
        time_ms=time_ms,
        operation=operation,
        summary={},
        schema_id=state.schema.id,
        first_row_id=head.next_row_id if lineage else None,
        added_rows=numbered + sum(f.record_count for f, _ in draft.added) if lineage else None,
        line=head.line,
    )


def snapshot_id(transaction_id: str, table_uuid: str) -> SnapshotId:
    """A positive 63-bit number that needs no dice."""
    digest = hashlib.sha256(f"{transaction_id}/{table_uuid}".encode()).digest()
    return SnapshotId(int.from_bytes(digest[:8], "big") >> 1 or 1)


@dataclass(frozen=True, slots=True)
class _Placed:
    opened: tuple[LiveFile, ...]
    closed: tuple[LiveFile, ...]
    files: tuple[LiveFile, ...]
    vectors: tuple[tuple[DeletionVector, FileId, bytes], ...]


def _place(draft: _Draft, head: TableHead, snapshot: Snapshot | None, *, numbered: int) -> _Placed:
    """Ids, sequence numbers and vectors; a fast-forward brings files that have them."""
    version = Version(head.version + 1)
    returned = [replace(f, added_version=version, removed_version=None) for f in draft.returned]
    closed = (*draft.removed, *(f for f, _ in draft.vectored))
    if snapshot is None:
        return _Placed(tuple(returned), closed, (), ())
    files = _numbered([f for f, _ in draft.added], head, version, snapshot, numbered=numbered)
    again = [replace(f, added_version=version) for f, _ in draft.vectored]
    losing = [(f, p) for f, (_, p) in zip(files, draft.added, strict=True) if p]
    losing += [(f, p) for f, (_, p) in zip(again, draft.vectored, strict=True)]
    small_first = sorted(((f, p, p.to_bytes()) for f, p in losing), key=lambda each: len(each[2]))
    losing = [(f, p) for f, p, _ in small_first]
    bitmaps = [(data, len(p)) for _, p, data in small_first]
    made = place_vectors(
        bitmaps,
        VectorId(head.next_vector_id),
        sequence_number=snapshot.sequence_number,
        snapshot_id=snapshot.id,
    )
    vector_of = {f.id: vector for (f, _), vector in zip(losing, made, strict=True)}
    files = [replace(f, vector=vector_of.get(f.id)) for f in files]
    again = [replace(f, vector=vector_of[f.id]) for f in again]
    rows = [
        (vector, f.id, bitmap)
        for vector, (f, _), (bitmap, _) in zip(made, losing, bitmaps, strict=True)
    ]
    return _Placed((*files, *again, *returned), closed, tuple(files), tuple(rows))


def _numbered(
    files: Sequence[DataFile],
    head: TableHead,
    version: Version,
    snapshot: Snapshot,
    *,
    numbered: int,
) -> list[LiveFile]:
    """Ids, sequence number and first row ids, in the order of the manifest.

    `numbered` rows of files that were there before take the first row ids of the snapshot.
    """
    placed = []
    row_id = None if snapshot.first_row_id is None else snapshot.first_row_id + numbered
    for number, file in enumerate(files):
        placed.append(
            LiveFile(
                FileId(head.next_file_id + number),
                file,
                version,
                None,
                snapshot.sequence_number,
                snapshot.id,
                row_id,
            )
        )
        row_id = row_id + file.record_count if row_id is not None else None
    return placed


def _advance(
    head: TableHead, commit: CommitRecord, snapshot: Snapshot | None, placed: _Placed
) -> TableHead:
    sums = tally(placed.opened, placed.closed)
    return replace(
        head,
        version=commit.version,
        time_ms=commit.time_ms,
        state_id=commit.state_id,
        snapshot_id=commit.snapshot_id,
        last_sequence_number=head.last_sequence_number + (1 if snapshot else 0),
        next_file_id=head.next_file_id + len(placed.files),
        next_row_id=head.next_row_id + (snapshot.added_rows or 0 if snapshot else 0),
        next_vector_id=head.next_vector_id + len(placed.vectors),
        live_files=head.live_files + sums.added_files - sums.removed_files,
        live_rows=head.live_rows + sums.added_rows - sums.removed_rows,
        live_bytes=head.live_bytes + sums.added_bytes - sums.removed_bytes,
        live_vectors=head.live_vectors + sums.added_vectors - sums.removed_vectors,
        live_deletes=head.live_deletes + sums.added_deletes - sums.removed_deletes,
    )
