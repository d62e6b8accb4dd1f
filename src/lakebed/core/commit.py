"""The commit loop: one SQL transaction decides. The only commit point of managed tables.

Concurrent committers of one process share a transaction (group commit): whoever holds the lock
commits for everybody who waits. Each member is checked against the batch so far, under a savepoint
of its own.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from lakebed.core.apply import apply
from lakebed.core.attach import (
    Places,
    answer_of,
    check_answer,
    keep_answer,
    look_up,
    repeated_app_transaction,
)
from lakebed.core.conflict import Clash, Since, find_clash
from lakebed.core.crash import crash_point
from lakebed.core.effects import find, losing_files, seen, write
from lakebed.core.hold import PAUSE_S, held_error, holding, must_wait
from lakebed.core.ledger import VersionView, typing_of
from lakebed.core.lines import find_commit, find_head
from lakebed.core.naming import place_table
from lakebed.core.runs import keep_run
from lakebed.meta import commits, files, refs, tables
from lakebed.meta.store import Store, Tx
from lakebed.model.changes import (
    AppendFiles,
    CreateTable,
    DeleteRows,
    Proposal,
    RemoveFiles,
    SetSchema,
    SetSpec,
    TableChanges,
)
from lakebed.model.errors import (
    CommitUnknown,
    DatabaseError,
    DatabaseLocked,
    LakebedError,
    RefNotFound,
    TableHeld,
    TableNotFound,
)
from lakebed.model.files import LiveFile
from lakebed.model.history import CommitRecord, TableHead, TableState
from lakebed.model.ids import MAIN_LINE, StateId, TableId, Version

_log = logging.getLogger("lakebed.core")
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Committed:
    """`commits` in the order of the proposal's tables, and `views` of them where they are known."""

    commits: tuple[tuple[TableHead, CommitRecord], ...]
    replayed: bool = False
    views: tuple[VersionView | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    table: str
    base: Version
    with_version: Version
    head: Version
    reason: str


Outcome = Committed | Conflict


@dataclass(slots=True, eq=False)
class _Member:
    proposal: Proposal
    done: bool = False
    outcome: Outcome | None = None
    error: BaseException | None = None


class _Refused(Exception):
    """Unwinds a member's savepoint with its outcome."""

    def __init__(self, conflict: Conflict) -> None:
        self.conflict = conflict


@dataclass(slots=True)
class Committer:
    store: Store
    retries: int
    _queue: list[_Member] = field(default_factory=list)
    _mutex: threading.Lock = field(default_factory=threading.Lock)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def commit(self, proposal: Proposal) -> Outcome:
        """Place a commit. A conflict is an answer; CommitUnknown and refusals are raised."""
        give_up = time.monotonic() + self.store.timeout_s
        while True:
            member = _Member(proposal)
            with self._mutex:
                self._queue.append(member)
            with self._turn:
                if not member.done:
                    self._commit_batch(member)
            if member.error is None:
                assert member.outcome is not None
                return member.outcome
            if not isinstance(member.error, TableHeld) or time.monotonic() >= give_up:
                raise member.error
            time.sleep(PAUSE_S)

    def commit_held(
        self, table_ids: Sequence[TableId], build: Callable[[], Proposal], *, strict: bool
    ) -> Outcome:
        """Build and place a commit while nobody else changes rows of the tables.

        `strict`: appends wait too, because the change depends on them (serializable).
        """
        with holding(self.store, table_ids, strict=strict) as hold:
            return self.commit(replace(build(), hold=hold))

    def answered(self, principal: str, key: str, digest: str) -> Places | None:
        """The commits an idempotency key made before; its refusal is raised again."""
        with self.store.read() as tx:
            return look_up(tx, principal, key, digest)

    def _commit_batch(self, own: _Member) -> None:
        with self._mutex:
            batch = self._queue[:_BATCH]
            if own not in batch:
                batch.append(own)
            self._queue = [m for m in self._queue if m not in batch]
        try:
            self._run(batch)
        except Exception as error:
            # The whole transaction failed: every member shares its fate, known or not.
            for member in batch:
                member.outcome, member.error = None, error
        except BaseException:
            for member in batch:
                member.outcome, member.error = None, _interrupted()
            raise
        finally:
            for member in batch:
                member.done = True

    def _run(self, batch: Sequence[_Member]) -> None:
        give_up = time.monotonic() + self.store.timeout_s
        for attempt in range(self.retries + 1):
            try:
                with self.store.write() as tx:
                    self._fill(tx, batch)
                    crash_point("commit_after_rows")
                crash_point("commit_after_sql")
                return
            except DatabaseLocked:
                if attempt == self.retries or time.monotonic() >= give_up:
                    raise
                time.sleep(random.uniform(0, 0.05 * 2**attempt))

    def _fill(self, tx: Tx, batch: Sequence[_Member]) -> None:
        ids = {t.table_id for m in batch for t in m.proposal.tables if t.table_id is not None}
        ids |= {r.table_id for m in batch for r in m.proposal.requirements}
        tables.lock_tables(tx, sorted(ids))
        crash_point("commit_after_lock")
        alone = _writes_last(batch)
        for member in batch:
            member.outcome = member.error = None
            try:
                with nullcontext() if alone else tx.savepoint():
                    member.outcome = place(tx, member.proposal)
            except _Refused as refusal:
                member.outcome = refusal.conflict
            except TableHeld as held:
                member.error = held
            except LakebedError as error:
                if isinstance(error, DatabaseError if alone else DatabaseLocked):
                    raise
                member.error = error
                answer = answer_of(error)
                if answer is not None:
                    keep_answer(tx, member.proposal, answer)


def _writes_last(batch: Sequence[_Member]) -> bool:
    """Is everything checked before the first row is written? Then nothing is undone in part."""
    if len(batch) > 1 or len(batch[0].proposal.tables) > 1:
        return False
    return all(table.table_id is not None for table in batch[0].proposal.tables)


def _interrupted() -> CommitUnknown:
    """What those learn who waited for a thread that was interrupted while committing for them."""
    return CommitUnknown(
        "the thread that committed for this one was interrupted: the commit may have happened",
        hint="repeat the call with the same idempotency_key, or look at the table's history",
    )


def place(tx: Tx, proposal: Proposal) -> Committed:
    """Check one proposal against the rows as they are now, and write it."""
    replay = check_answer(tx, proposal)
    if replay is not None:
        return _replayed(tx, replay)
    earlier = repeated_app_transaction(tx, proposal.tables)
    if earlier is not None:
        keep_answer(tx, proposal, ("done", earlier))
        return _replayed(tx, earlier)
    for need in proposal.requirements:
        head = find_head(tx, need.table_id, need.line)
        if head is None or head.version != need.version:
            raise _Refused(_conflict_of(head, need.version, "a table that was read has changed"))
    looked = [(ours, *_look(tx, proposal, ours)) for ours in proposal.tables]
    time_ms = max([tx.now_ms(), *(head.time_ms + 1 for _, head, _ in looked)])
    placed, views = [], []
    for ours, head, before in looked:
        found = find(tx, ours, head, before)
        effects = apply(proposal, ours, head, before, found=found, time_ms=time_ms)
        starts = write(tx, effects, before)
        _keep_shapes(tx, effects.head, ours)
        placed.append((effects.head, effects.commit))
        views.append(seen(tx, ours, effects, starts))
    committed = Committed(tuple(placed), views=tuple(views))
    if proposal.run is not None:
        keep_run(tx, proposal.run, {str(h.name): (h.id, c.version) for h, c in placed})
    keep_answer(tx, proposal, answer_of(committed.commits))
    return committed


def _keep_shapes(tx: Tx, head: TableHead, ours: TableChanges) -> None:
    """A commit may go through several schemas and specs, with files of each."""
    schemas = [c.schema for c in ours.changes if isinstance(c, CreateTable | SetSchema)]
    specs = [c.spec for c in ours.changes if isinstance(c, CreateTable | SetSpec)]
    if len(schemas) > 1 or len(specs) > 1:
        tables.keep_shapes(tx, head.id, schemas, specs)


def _look(tx: Tx, proposal: Proposal, ours: TableChanges) -> tuple[TableHead, TableState | None]:
    """The table as it is now; refused when ours cannot follow what happened since its base."""
    if ours.table_id is None:
        create = next(c for c in ours.changes if isinstance(c, CreateTable))
        return place_table(tx, create), None
    head = find_head(tx, ours.table_id, ours.line)
    if head is None:
        raise TableNotFound("the table was dropped", hint="open it again by its name")
    if head.line != MAIN_LINE and not refs.has_branch(tx, head.id, head.line):
        raise RefNotFound(
            f"the branch of {head.name} that this was made for was dropped",
            hint="make the branch again, or write to main",
        )
    if must_wait(proposal, ours, head, tx.now_ms() if head.held_by else 0):
        raise held_error(f"table {head.name}")
    state = tables.get_state(tx, head.id, head.state_id)
    assert ours.base is not None
    if head.version > ours.base or _written_otherwise(ours, state):
        clash = _clash(tx, proposal, ours, head, state)
        if clash is not None:
            raise _Refused(
                Conflict(str(head.name), ours.base, clash.with_version, head.version, clash.reason)
            )
    return head, state


def _written_otherwise(ours: TableChanges, state: TableState) -> bool:
    """Were files written under another schema than the table has now, or gets by this commit?"""
    known = {c.schema.id for c in ours.changes if isinstance(c, SetSchema)} | {state.schema.id}
    return any(c.schema_id not in known for c in ours.changes if isinstance(c, AppendFiles))


def _clash(
    tx: Tx, proposal: Proposal, ours: TableChanges, head: TableHead, state: TableState
) -> Clash | None:
    assert ours.base is not None
    first = find_commit(tx, head.id, ours.base, head.line)
    assert first is not None
    since, state_id = [], first.state_id
    needs_files = ours.sees_all_rows or any(
        isinstance(c, RemoveFiles | DeleteRows) for c in ours.changes
    )
    for commit in commits.commits_after(tx, head.id, ours.base, head.line):
        since.append(_since(tx, commit, state_id, needs_files=needs_files))
        state_id = commit.state_id
    return find_clash(
        ours,
        since,
        state,
        schemas={s.id: s for s in tables.list_schemas(tx, head.id)},
        specs={s.id: s for s in tables.list_specs(tx, head.id)},
        serializable=proposal.isolation == "serializable",
        deleted={i: positions for i, (_, positions) in losing_files(tx, ours, head).items()},
        base=tables.get_state(tx, head.id, first.state_id),
    )


def _since(tx: Tx, commit: CommitRecord, state_id: StateId, *, needs_files: bool) -> Since:
    added: list[LiveFile] = []
    gone: list[LiveFile] = []
    if needs_files:
        typing, place = typing_of(tx, commit.table_id), (commit.table_id, commit.version)
        added = files.files_added(tx, *place, typing, commit.line)
        gone = files.files_removed(tx, *place, typing, commit.line)
    old = frozenset(f.id for f in gone)
    return Since(
        commit.version,
        commit.state_id != state_id,
        commit.blind_append,
        [f.file for f in added if f.id not in old],
        old,
        old & {f.id for f in added},
    )


def _replayed(tx: Tx, places: Places) -> Committed:
    found = []
    for table_id, version, line in places:
        head = tables.get_table(tx, table_id)
        commit = commits.get_commit(tx, table_id, version, line)
        if head is None or commit is None:
            raise TableNotFound(
                "the table of the earlier answer is gone", hint="use a new idempotency key"
            )
        found.append((head, commit))
    return Committed(tuple(found), replayed=True)


def _conflict_of(head: TableHead | None, base: Version, reason: str) -> Conflict:
    name = str(head.name) if head else "a dropped table"
    newest = head.version if head else base
    return Conflict(name, base, newest, newest, reason)
