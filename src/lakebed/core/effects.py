"""What a commit touches as the rows have it now, and the writing of what it does to them."""

from collections.abc import Mapping
from dataclasses import replace

from lakebed.core.apply import Effects, Found
from lakebed.core.ledger import VersionView, typing_of
from lakebed.core.lines import find_commit
from lakebed.core.state import created, next_state, restored, upgrades
from lakebed.meta import attachments, commits, files, lines, outbox, tables, vectors
from lakebed.meta.store import Tx
from lakebed.model.changes import (
    AppendFiles,
    DeleteRows,
    FastForward,
    RemoveFiles,
    Restore,
    TableChanges,
)
from lakebed.model.errors import BranchDiverged, NoChanges, VersionNotFound
from lakebed.model.files import LiveFile
from lakebed.model.history import LineRecord, TableHead, TableState
from lakebed.model.ids import MAIN_LINE, FileId, Version
from lakebed.model.schema import files_fit
from lakebed.model.vectors import Positions


def find(tx: Tx, ours: TableChanges, head: TableHead, before: TableState | None) -> Found:
    if before is None:
        return Found(created(ours.changes))
    for change in ours.changes:
        if isinstance(change, Restore):
            return _restored(tx, change, head, before)
        if isinstance(change, FastForward):
            return _forwarded(tx, change, head, before)
    state = next_state(before, ours.changes)
    ids = {i for c in ours.changes if isinstance(c, RemoveFiles) for i in c.file_ids}
    removed = []
    if ids:
        removed = files.get_live(tx, head.id, sorted(ids), typing_of(tx, head.id), head.line)
    # Asked only then: it looks at every file.
    unnumbered = files.unnumbered_rows(tx, head.id) if upgrades(before, state) else 0
    return Found(state, removed, losing=losing_files(tx, ours, head), unnumbered=unnumbered)


def losing_files(
    tx: Tx, ours: TableChanges, head: TableHead
) -> dict[FileId, tuple[LiveFile, Positions]]:
    """Live files that lose rows, with the positions that are gone of them already."""
    ids = {i for c in ours.changes if isinstance(c, DeleteRows) for i in c.positions}
    if not ids:
        return {}
    live = files.get_live(tx, head.id, sorted(ids), typing_of(tx, head.id), head.line)
    bitmaps = vectors.get_bitmaps(tx, head.id, [f.vector.id for f in live if f.vector])
    return {
        f.id: (f, Positions.from_bytes(bitmaps[f.vector.id]) if f.vector else Positions())
        for f in live
    }


def _restored(tx: Tx, change: Restore, head: TableHead, before: TableState) -> Found:
    then = find_commit(tx, head.id, change.version, head.line)
    first = 0 if head.line == MAIN_LINE else lines.get_line(tx, head.id, head.line).fork_version
    if then is None or not first <= change.version <= head.version:
        raise VersionNotFound(
            f"{head.name} cannot go back to version {change.version}",
            hint=f"it can go back to versions {first} to {head.version}",
            version=change.version,
        )
    typing = typing_of(tx, head.id)
    removed = files.shown_since(tx, head.id, change.version, typing, head.line)
    returned = files.shown_until(tx, head.id, change.version, typing, head.line)
    # Restored before, a file may be visible in another interval with the same vector.
    same = {(f.id, f.vector) for f in removed} & {(f.id, f.vector) for f in returned}
    # What is no row belongs to the table, not to a branch of it.
    moves = head.line == MAIN_LINE
    return Found(
        restored(before, tables.get_state(tx, head.id, then.state_id)) if moves else before,
        [f for f in removed if (f.id, f.vector) not in same],
        [f for f in returned if (f.id, f.vector) not in same],
    )


def _forwarded(tx: Tx, change: FastForward, head: TableHead, before: TableState) -> Found:
    branch = lines.get_line(tx, head.id, change.line)
    if branch.parent_line != MAIN_LINE:
        raise BranchDiverged(
            f"the branch of {head.name} began on another branch, not on main",
            hint="main can only follow a branch that was made from main",
        )
    taken = commits.get_commit(tx, head.id, branch.main_version)
    if taken is None or taken.snapshot_id != head.snapshot_id:
        raise BranchDiverged(
            f"main of {head.name} has changed since the branch began",
            hint="main can only follow a branch that holds everything main has; write to main, or"
            " make the branch again from main",
        )
    if branch.version == branch.merged_version:
        raise NoChanges("main has everything of the branch already", hint="write to it first")
    _refuse_unchecked(tx, branch, head, before)
    place = (tx, head.id, branch.merged_version, typing_of(tx, head.id), change.line)
    return Found(before, files.shown_until(*place), files.shown_since(*place), branch=branch)


def _refuse_unchecked(tx: Tx, branch: LineRecord, head: TableHead, now: TableState) -> None:
    """Rows of a branch passed the constraints that the table had when they were written."""
    own = commits.commits_after(tx, head.id, branch.merged_version, branch.line)
    for state_id in sorted({commit.state_id for commit in own}):
        then = tables.get_state(tx, head.id, state_id)
        passed = now.constraints.items() <= then.constraints.items()
        if not passed or not files_fit(then.schema, now.schema):
            raise BranchDiverged(
                f"{head.name} got a constraint or a default after rows were written to the branch",
                hint="make a new branch from main, and write the rows to it again",
            )


def write(tx: Tx, effects: Effects, before: TableState | None) -> Mapping[FileId, int]:
    """The first row ids that files got by it; `before` is the state that the rows have, if any."""
    head, commit = effects.head, effects.commit
    starts: Mapping[FileId, int] = {}
    if effects.state_is_new:
        tables.insert_state(tx, head.id, effects.state, before)
    commits.insert_commit(tx, commit)
    if effects.snapshot is not None:
        commits.insert_snapshot(tx, head.id, effects.snapshot)
    if effects.numbers_rows and effects.snapshot and effects.snapshot.first_row_id is not None:
        starts = files.number_rows(tx, head.id, effects.snapshot.first_row_id)
    _write_files(tx, effects)
    if commit.app_transaction is not None:
        attachments.put_app_transaction(
            tx, head.id, commit.app_transaction, commit.version, commit.time_ms
        )
    for format_ in effects.turned_off:
        outbox.forget_format(tx, head.id, format_)
    outbox.insert_outbox(
        tx, head.id, commit.version, effects.outbox, commit.time_ms, line=head.line
    )
    if head.line == MAIN_LINE:
        tables.advance_table(tx, head)
    else:
        lines.advance_line(tx, head)
        tables.advance_counters(tx, head)
    return starts


# Changes after which files are as the commit has them at hand.
_PLAIN = AppendFiles | DeleteRows | RemoveFiles


def seen(
    tx: Tx, ours: TableChanges, effects: Effects, starts: Mapping[FileId, int]
) -> VersionView | None:
    """What a ledger would read of the version again; None where only the rows can tell."""
    head, commit = effects.head, effects.commit
    plain = all(isinstance(change, _PLAIN) for change in ours.changes)
    if head.line != MAIN_LINE or not plain:
        return None
    # Not the state that the table had: a branch may have moved that since main's last commit.
    last = find_commit(tx, head.id, Version(commit.version - 1), MAIN_LINE)
    assert last is not None, (head.name, commit.version)
    added = [replace(f, first_row_id=starts.get(f.id, f.first_row_id)) for f in effects.opened]
    removed = [
        replace(
            f,
            first_row_id=starts.get(f.id, f.first_row_id),
            removed_version=commit.version,
        )
        for f in effects.closed
    ]
    return VersionView(
        head,
        commit,
        effects.state,
        tables.get_state(tx, head.id, last.state_id),
        tuple(sorted(added, key=_by_id)),
        tuple(sorted(removed, key=_by_id)),
        (effects.snapshot,) if effects.snapshot else (),
    )


def _by_id(live: LiveFile) -> FileId:
    return live.id


def _write_files(tx: Tx, effects: Effects) -> None:
    head, version = effects.head, effects.commit.version
    if effects.closed:
        files.close_intervals(tx, head.id, effects.closed, version, head.line)
    if effects.vectors:
        vectors.insert_vectors(tx, head.id, effects.vectors)
    if effects.files:
        files.insert_files(tx, head.id, effects.files)
    if effects.opened:
        files.open_intervals(tx, head.id, effects.opened, head.line)
    if effects.merged is not None:
        merged = effects.merged
        lines.record_merge(tx, head.id, merged.line, merged=merged.version, main=version)
