"""Which snapshots and refs a metadata file shows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from lakebed.core.ledger import Ledger
from lakebed.model.history import BRANCH, CommitRecord, Ref, Snapshot
from lakebed.model.ids import MAIN_LINE, SnapshotId


@dataclass(frozen=True, slots=True)
class Shown:
    """Every snapshot here has a manifest list."""

    current: Snapshot | None  # main's
    listed: tuple[Snapshot, ...]  # oldest first
    published: frozenset[SnapshotId]  # which parents may be named
    refs: tuple[tuple[Ref, SnapshotId], ...]  # beside main
    log: tuple[tuple[int, SnapshotId], ...]  # when main got another snapshot, oldest first
    newest: Snapshot | None  # of all lines


def show(ledger: Ledger, main: CommitRecord, new: Sequence[Snapshot], keep: int) -> Shown:
    """As of main's commit; `new` are snapshots that are published now, `keep` limits the past."""
    recent = [*new, *ledger.published_snapshots(keep + 1)]
    recent.sort(key=attrgetter("sequence_number"), reverse=True)
    known = {s.id: s for s in recent}
    marked = ledger.refs()
    if not marked and recent and recent[0].id == main.snapshot_id and _are_of_main(recent):
        return _main_alone(recent, known, keep)
    refs = [(ref, found) for ref in marked if (found := _of_ref(ledger, ref, known))]
    current = _find(ledger, main.snapshot_id, known)
    history = list(_history(current, known)) if current else []
    wanted = {s.id for s in history} | {found.id for _, found in refs}
    for ref, found in refs:
        if ref.kind == BRANCH:
            wanted |= {s.id for s in _history(found, known)}
    # Main's own are listed though a link between them may be missing: Iceberg was off for a while.
    past = [s for s in recent if s.line == MAIN_LINE or s.id in wanted][:keep]
    roots = [found for _, found in refs] + ([current] if current else [])
    unique = {s.id: s for s in [*past, *roots]}
    listed = sorted(unique.values(), key=lambda s: s.sequence_number)
    return Shown(
        current=current,
        listed=tuple(listed),
        published=frozenset(known),
        refs=tuple((ref, found.id) for ref, found in refs),
        log=tuple(_log(ledger, main, history, listed)),
        newest=recent[0] if recent else None,
    )


def _are_of_main(snapshots: Sequence[Snapshot]) -> bool:
    return all(s.line == MAIN_LINE for s in snapshots)


def _main_alone(
    recent: Sequence[Snapshot], known: Mapping[SnapshotId, Snapshot], keep: int
) -> Shown:
    """Most tables have no refs: nothing must be looked for."""
    listed = recent[:keep][::-1]
    log = tuple((s.time_ms, s.id) for s in listed)
    return Shown(recent[0], tuple(listed), frozenset(known), (), log, recent[0])


def _of_ref(ledger: Ledger, ref: Ref, known: dict[SnapshotId, Snapshot]) -> Snapshot | None:
    """Where a ref stands as far as it is published: a branch's newest snapshot, or its fork."""
    if ref.kind == BRANCH:
        own = max(
            (s for s in known.values() if s.line == ref.line),
            key=lambda s: s.sequence_number,
            default=None,
        ) or ledger.newest_published(ref.line)
        if own is not None:
            return known.setdefault(own.id, own)
    return _find(ledger, ref.snapshot_id, known)


def _find(
    ledger: Ledger, snapshot_id: SnapshotId | None, known: dict[SnapshotId, Snapshot]
) -> Snapshot | None:
    if snapshot_id is None or snapshot_id in known:
        return known.get(snapshot_id) if snapshot_id is not None else None
    found = ledger.snapshot(snapshot_id)
    if found is None or found.manifest_list is None:
        return None
    return known.setdefault(found.id, found)


def _history(snapshot: Snapshot, known: Mapping[SnapshotId, Snapshot]) -> Iterator[Snapshot]:
    """A snapshot and those it comes from, as far as they are known."""
    found: Snapshot | None = snapshot
    while found is not None:
        yield found
        found = known.get(found.parent_id) if found.parent_id is not None else None


def _log(
    ledger: Ledger, main: CommitRecord, history: Sequence[Snapshot], listed: Sequence[Snapshot]
) -> list[tuple[int, SnapshotId]]:
    """When main got each of the listed snapshots; `history` is what its current one comes from."""
    if _are_of_main(history):
        return [(s.time_ms, s.id) for s in listed if s.line == MAIN_LINE] if history else []
    # Main took a branch: its snapshots became main's later than they were made.
    shown = {s.id for s in listed}
    log: list[tuple[int, SnapshotId]] = []
    for commit in reversed(ledger.commits_until(main.version, MAIN_LINE, len(listed) + 1)):
        found = commit.snapshot_id
        if found is not None and found in shown and (not log or log[-1][1] != found):
            log.append((commit.time_ms, found))
    return log
