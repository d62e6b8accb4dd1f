"""Pure: what a commit's changes do to a table's rows."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakebed.core.state import first_state, next_state
from lakebed.model.changes import (
    AppendFiles,
    CreateTable,
    Proposal,
    RemoveFiles,
    Republish,
    TableChanges,
)
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.history import ICEBERG, CommitRecord, Snapshot, TableHead, TableState
from lakebed.model.ids import FileId, SnapshotId, Version

# Entries of a commit's summary that are counted here; a user's value would contradict them.
SUMMARY_NAMES = frozenset(
    {"operation"}
    | {f"{verb}_{what}" for verb in ("added", "removed") for what in ("files", "rows", "bytes")}
    | {f"{verb}-data-files" for verb in ("added", "deleted", "total")}
    | {f"{verb}-records" for verb in ("added", "deleted", "total")}
    | {f"{verb}-files-size" for verb in ("added", "removed", "total")}
    | {f"total-{what}" for what in ("delete-files", "position-deletes", "equality-deletes")}
)


@dataclass(frozen=True, slots=True)
class Effects:
    """Rows to write, and the table's row afterwards."""

    head: TableHead
    state: TableState
    state_is_new: bool
    commit: CommitRecord
    snapshot: Snapshot | None
    added: tuple[LiveFile, ...]
    removed: tuple[LiveFile, ...]
    outbox: tuple[tuple[str, str], ...]  # (format, kind)
    turned_off: tuple[str, ...]  # formats whose waiting publications are forgotten
    numbers_rows: bool  # the live files get their first row ids: the upgrade to Iceberg v3


def apply(
    proposal: Proposal,
    ours: TableChanges,
    head: TableHead,
    before: TableState | None,
    *,
    removed: Sequence[LiveFile],
    time_ms: int,
) -> Effects:
    """`before` is None when the table is being created; `removed` are the files it removes."""
    version = Version(head.version + 1)
    state = next_state(before, ours.changes) if before else _created(ours)
    new_files = [f for c in ours.changes if isinstance(c, AppendFiles) for f in c.files]
    starts = _starts(ours, before, state)
    upgraded = before is not None and before.iceberg_version < 3 <= state.iceberg_version
    numbered = head.live_rows - _rows(removed) if upgraded else 0
    snapshot = None
    if new_files or removed or ((ICEBERG in starts or upgraded) and _has_shown(head)):
        snapshot = _snapshot(
            proposal,
            head,
            state,
            added=new_files,
            removed=removed,
            numbered=numbered,
            time_ms=time_ms,
        )
    added = _place(new_files, head, version, snapshot, numbered=numbered)
    commit = CommitRecord(
        table_id=head.id,
        version=version,
        time_ms=time_ms,
        operation=ours.operation,
        state_id=state.id,
        author=proposal.author,
        message=proposal.message,
        transaction_id=proposal.transaction_id,
        blind_append=not any(isinstance(c, RemoveFiles) for c in ours.changes),
        summary={**_totals(new_files, removed), **(proposal.summary or {})},
        app_transaction=ours.app_transaction,
    )
    return Effects(
        head=_advance(head, commit, snapshot, added, removed),
        state=state,
        state_is_new=before is None or state is not before,
        commit=commit,
        snapshot=snapshot,
        added=added,
        removed=tuple(removed),
        outbox=tuple((f, "start" if f in starts else "commit") for f in state.formats),
        turned_off=tuple(f for f in before.formats if f not in state.formats) if before else (),
        numbers_rows=numbered > 0,
    )


def _created(ours: TableChanges) -> TableState:
    create = next(c for c in ours.changes if isinstance(c, CreateTable))
    first = first_state(create)
    # A table created with data has one state: the one its first files leave behind.
    return replace(next_state(first, ours.changes), id=first.id)


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
    *,
    added: Sequence[DataFile],
    removed: Sequence[LiveFile],
    numbered: int,
    time_ms: int,
) -> Snapshot:
    operation = "append" if not removed else "overwrite" if added else "delete"
    if not added and not removed:
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
        summary={**_iceberg_summary(head, added, removed), **(proposal.summary or {})},
        schema_id=state.schema.id,
        first_row_id=head.next_row_id if lineage else None,
        added_rows=numbered + sum(f.record_count for f in added) if lineage else None,
    )


def snapshot_id(transaction_id: str, table_uuid: str) -> SnapshotId:
    """A positive 63-bit number that needs no dice."""
    digest = hashlib.sha256(f"{transaction_id}/{table_uuid}".encode()).digest()
    return SnapshotId(int.from_bytes(digest[:8], "big") >> 1 or 1)


def _place(
    files: Sequence[DataFile],
    head: TableHead,
    version: Version,
    snapshot: Snapshot | None,
    *,
    numbered: int,
) -> tuple[LiveFile, ...]:
    """Ids, sequence number and first row ids, in the order of the manifest.

    `numbered` rows of files that were there before take the first row ids of the snapshot.
    """
    if snapshot is None:
        return ()
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
    return tuple(placed)


def _advance(
    head: TableHead,
    commit: CommitRecord,
    snapshot: Snapshot | None,
    added: Sequence[LiveFile],
    removed: Sequence[LiveFile],
) -> TableHead:
    return replace(
        head,
        version=commit.version,
        time_ms=commit.time_ms,
        state_id=commit.state_id,
        snapshot_id=snapshot.id if snapshot else head.snapshot_id,
        last_sequence_number=head.last_sequence_number + (1 if snapshot else 0),
        next_file_id=head.next_file_id + len(added),
        next_row_id=head.next_row_id + (snapshot.added_rows or 0 if snapshot else 0),
        live_files=head.live_files + len(added) - len(removed),
        live_rows=head.live_rows + _rows(added) - _rows(removed),
        live_bytes=head.live_bytes + _bytes(added) - _bytes(removed),
    )


def _rows(files: Sequence[LiveFile]) -> int:
    return sum(f.file.record_count for f in files)


def _bytes(files: Sequence[LiveFile]) -> int:
    return sum(f.file.size_bytes for f in files)


def _totals(added: Sequence[DataFile], removed: Sequence[LiveFile]) -> dict[str, int]:
    return {
        "added_files": len(added),
        "added_rows": sum(f.record_count for f in added),
        "added_bytes": sum(f.size_bytes for f in added),
        "removed_files": len(removed),
        "removed_rows": _rows(removed),
        "removed_bytes": _bytes(removed),
    }


def _iceberg_summary(
    head: TableHead, added: Sequence[DataFile], removed: Sequence[LiveFile]
) -> dict[str, str]:
    totals = _totals(added, removed)
    summary = {}
    if added:
        summary["added-data-files"] = totals["added_files"]
        summary["added-records"] = totals["added_rows"]
        summary["added-files-size"] = totals["added_bytes"]
    if removed:
        summary["deleted-data-files"] = totals["removed_files"]
        summary["deleted-records"] = totals["removed_rows"]
        summary["removed-files-size"] = totals["removed_bytes"]
    summary["total-data-files"] = head.live_files + len(added) - len(removed)
    summary["total-records"] = head.live_rows + totals["added_rows"] - totals["removed_rows"]
    summary["total-files-size"] = head.live_bytes + totals["added_bytes"] - totals["removed_bytes"]
    summary["total-delete-files"] = summary["total-position-deletes"] = 0
    summary["total-equality-deletes"] = 0
    return {name: str(value) for name, value in summary.items()}
