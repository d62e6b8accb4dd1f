"""Branches and tags: names for lines and versions. A change of a ref is no version of its own."""

import re
from dataclasses import dataclass, replace

from lakebed.core.crash import crash_point
from lakebed.core.ledger import typing_of
from lakebed.core.lines import find_commit, on_line
from lakebed.core.tally import tally
from lakebed.meta import commits, files, lines, outbox, refs, tables
from lakebed.meta.store import Store, Tx
from lakebed.model.errors import InvalidName, RefExists, RefNotFound
from lakebed.model.history import BRANCH, ICEBERG, MAIN, TAG, Ref, TableHead
from lakebed.model.ids import MAIN_LINE, Line, SnapshotId, Version

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,254}")


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a ref and the snapshots it reaches are kept; None: as the table's settings say."""

    max_age_ms: int | None = None
    min_snapshots: int | None = None
    max_snapshot_age_ms: int | None = None


class Refs:
    def __init__(self, store: Store) -> None:
        self._store = store

    def list(self, head: TableHead) -> list[Ref]:
        """Main first, then the others by name; branches as they are now."""
        with self._store.read() as tx:
            current = tables.get_table(tx, head.id) or head
            main = Ref(
                MAIN, BRANCH, MAIN_LINE, current.version, current.snapshot_id, current.created_ms
            )
            return [main, *(_as_now(tx, head, ref) for ref in refs.list_refs(tx, head.id))]

    def find(self, head: TableHead, name: str) -> Ref:
        if name == MAIN:
            return self.list(head)[0]
        with self._store.read() as tx:
            return _as_now(tx, head, _find(tx, head, name))

    def at(self, head: TableHead, name: str) -> tuple[TableHead, Version]:
        """The line and version that a name stands for."""
        ref = self.find(head, name)
        with self._store.read() as tx:
            line = head if ref.line == MAIN_LINE else on_line(tx, head, ref.line)
        return line, ref.version

    def at_snapshot(self, head: TableHead, snapshot_id: int) -> tuple[TableHead, Version] | None:
        """The line and version of a snapshot, if the table has it."""
        with self._store.read() as tx:
            snapshot = commits.get_snapshot(tx, head.id, SnapshotId(snapshot_id))
            if snapshot is None:
                return None
            line = head if snapshot.line == MAIN_LINE else on_line(tx, head, snapshot.line)
        return line, snapshot.version

    def on_branch(self, head: TableHead, name: str) -> TableHead:
        """The table as a branch has it: what a write to the branch is based on."""
        with self._store.read() as tx:
            return branch_of(tx, head, name)

    def on_ref(self, head: TableHead, name: str) -> TableHead:
        """The table as a branch or a tag has it: what a read of it shows."""
        if name == MAIN:
            return head
        with self._store.read() as tx:
            ref = _find(tx, head, name)
            line = head if ref.line == MAIN_LINE else on_line(tx, head, ref.line)
            if ref.kind == BRANCH:
                return line
            commit = find_commit(tx, head.id, ref.version, ref.line)
            assert commit is not None, (head.name, name)
            return replace(_at(tx, line, ref.version), line=ref.line, state_id=commit.state_id)

    def names(self, head: TableHead) -> dict[Line, str]:
        """The branches that lines are of; a line whose branch was dropped has no name."""
        with self._store.read() as tx:
            found = refs.list_refs(tx, head.id)
        return {MAIN_LINE: MAIN} | {ref.line: ref.name for ref in found if ref.kind == BRANCH}

    def create(
        self, head: TableHead, name: str, kind: str, version: Version, retention: Retention
    ) -> Ref:
        """`head` says which line the version is of."""
        _check_name(name)
        with self._store.write() as tx:
            tables.lock_tables(tx, [head.id])
            if refs.get_ref(tx, head.id, name) is not None or name == MAIN:
                raise RefExists(
                    f"table {head.name} has a branch or tag {name} already",
                    hint="choose another name, or drop it first",
                    ref=name,
                )
            fork = _at(tx, head, version)
            line = lines.insert_line(tx, fork) if kind == BRANCH else fork.line
            ref = Ref(
                name,
                kind,
                line,
                version,
                fork.snapshot_id,
                tx.now_ms(),
                retention.max_age_ms,
                retention.min_snapshots if kind == BRANCH else None,
                retention.max_snapshot_age_ms if kind == BRANCH else None,
            )
            refs.put_ref(tx, head.id, ref)
            _announce(tx, head)
        crash_point("ref_after_sql")
        return ref

    def drop(self, head: TableHead, name: str, kind: str) -> None:
        """The name goes; versions it named stay until they expire."""
        with self._store.write() as tx:
            tables.lock_tables(tx, [head.id])
            if _find(tx, head, name).kind != kind:
                other = TAG if kind == BRANCH else BRANCH
                raise RefNotFound(f"{name} of {head.name} is a {other}", hint=f"drop the {other}")
            refs.delete_ref(tx, head.id, name)
            _announce(tx, head)
        crash_point("ref_after_sql")

    def keep(self, head: TableHead, name: str, retention: Retention) -> Ref:
        """Give a ref another retention."""
        with self._store.write() as tx:
            tables.lock_tables(tx, [head.id])
            ref = replace(
                _find(tx, head, name),
                max_age_ms=retention.max_age_ms,
                min_snapshots=retention.min_snapshots,
                max_snapshot_age_ms=retention.max_snapshot_age_ms,
            )
            refs.put_ref(tx, head.id, ref)
            _announce(tx, head)
        return ref


def branch_of(tx: Tx, head: TableHead, name: str) -> TableHead:
    """`head` is main's."""
    if name == MAIN:
        return head
    ref = _find(tx, head, name)
    if ref.kind != BRANCH:
        raise InvalidName(
            f"{name} of {head.name} is a tag", hint="write to a branch; tags never move"
        )
    return on_line(tx, head, ref.line)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidName(
            f"{name!r} is no name for a branch or tag",
            hint="use letters, digits, and - _ . / inside, at most 255 characters",
        )


def _find(tx: Tx, head: TableHead, name: str) -> Ref:
    ref = refs.get_ref(tx, head.id, name)
    if ref is None:
        known = ", ".join([MAIN, *(r.name for r in refs.list_refs(tx, head.id))])
        raise RefNotFound(
            f"table {head.name} has no branch or tag {name!r}",
            hint=f"it has: {known}",
            ref=name,
        )
    return ref


def _as_now(tx: Tx, head: TableHead, ref: Ref) -> Ref:
    """A tag is what it was; a branch is where its line is."""
    if ref.kind == TAG:
        return ref
    record = lines.get_line(tx, head.id, ref.line)
    return replace(ref, version=record.version, snapshot_id=record.snapshot_id)


def _at(tx: Tx, head: TableHead, version: Version) -> TableHead:
    """A line as it was at a version, with what was live then."""
    current = tables.get_table(tx, head.id) or head
    if head.line != MAIN_LINE:
        current = on_line(tx, current, head.line)
    if version == current.version:
        return current
    commit = find_commit(tx, head.id, version, head.line)
    assert commit is not None, (head.name, version)
    live = files.files_at(tx, head.id, version, typing_of(tx, head.id), head.line)
    sums = tally(live, ())
    return replace(
        current,
        line=commit.line,
        version=version,
        time_ms=commit.time_ms,
        snapshot_id=commit.snapshot_id,
        live_files=sums.added_files,
        live_rows=sums.added_rows,
        live_bytes=sums.added_bytes,
        live_vectors=sums.added_vectors,
        live_deletes=sums.added_deletes,
    )


def _announce(tx: Tx, head: TableHead) -> None:
    """Iceberg shows refs; Delta shows main alone."""
    current = tables.get_table(tx, head.id) or head
    if ICEBERG in tables.get_state(tx, head.id, current.state_id).formats:
        entry = (ICEBERG, "refs")
        outbox.insert_outbox(tx, head.id, current.version, [entry], tx.now_ms())
