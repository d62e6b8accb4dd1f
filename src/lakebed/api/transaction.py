"""A transaction: changes to several tables, seen together or not at all."""

import logging
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self, Unpack

from lakebed.api.creating import NewTable, TableOptions, stage_table
from lakebed.api.options import Options, digest_of
from lakebed.api.parts import Parts
from lakebed.api.staging import Staged
from lakebed.api.txtable import TransactionTable
from lakebed.core.attach import Places
from lakebed.core.commit import Committed, Conflict, Outcome
from lakebed.core.ledger import VersionView
from lakebed.core.upkeep import is_due
from lakebed.model.changes import Proposal, UnchangedSince
from lakebed.model.errors import (
    CommitConflict,
    CommitUnknown,
    InvalidInput,
    LakebedError,
    NoChanges,
    TableExists,
    TableNotFound,
    TransactionClosed,
    UnsupportedFeature,
)
from lakebed.model.history import MAIN, Commit, CommitRecord, TableHead
from lakebed.model.ids import MAIN_LINE, Line, TableId
from lakebed.model.names import parse_table_name, parse_table_ref
from lakebed.model.runs import RunAttachment
from lakebed.model.settings import Value
from lakebed.security.policy import require
from lakebed.storage.claim import MARKER

_log = logging.getLogger("lakebed")
BACKGROUND = "publication follows in the background"


class PublishWarning(UserWarning):
    """A commit stands, but other engines do not see it yet."""


class Transaction:
    """Commits when its block ends, rolls back when the block raises."""

    def __init__(self, parts: Parts, options: Options, digest: str | None = None) -> None:
        self._parts = _with_settings(parts, options.settings)
        self._options = options
        self._digest = digest
        self._staged: dict[str, Staged] = {}
        self._open = True
        self._run: RunAttachment | None = None
        self._unmoved: frozenset[str] = frozenset()
        self.commits: dict[str, Commit] = {}

    def table(self, name: str) -> TransactionTable:
        """A table as this transaction sees it: all of them at the moment of the first look.

        `ns.table@branch` is the table on a branch.
        """
        self._check_open()
        wanted, ref = parse_table_ref(name)
        branch = ref or self._options.branch or MAIN
        key = str(wanted) if branch == MAIN else f"{wanted}@{branch}"
        require(self._parts.principal, "read", str(wanted))
        if key not in self._staged:
            seen = [s.head for s in self._staged.values() if s.base]
            self.pin(self._parts.catalog.find_beside(wanted, seen, branch), key)
        return TransactionTable(self._parts, str(wanted), self._staged[key], self._check_open)

    def has(self, name: str) -> bool:
        """Is the table in this transaction already?"""
        return name in self._staged

    def pin(self, head: TableHead, key: str | None = None) -> TransactionTable:
        """A table by its head, whatever its name means by now."""
        state = self._parts.catalog.state(head, head.state_id)
        staged = self._staged[key or str(head.name)] = Staged(head, state, state)
        return TransactionTable(self._parts, str(head.name), staged, self._check_open)

    def create_table(
        self, name: str, schema: object, **options: Unpack[TableOptions]
    ) -> TransactionTable:
        """A table that the commit creates: from a schema text, an Arrow schema, or data."""
        self._check_open()
        key = parse_table_name(name)
        require(self._parts.principal, "create", str(key))
        refuse_branch(self._options)
        if str(key) in self._staged:
            raise TableExists(f"table {key} is in this transaction already", hint="use table()")
        staged, rows = stage_table(self._parts, key, schema, NewTable(**options))
        table = self.stage_new(str(key), staged)
        if rows is not None:
            table.append(rows)
        return table

    def stage_new(self, name: str, staged: Staged) -> TransactionTable:
        """Put a table into the transaction that the commit will create."""
        self._check_open()
        self._staged[name] = staged
        return TransactionTable(self._parts, name, staged, self._check_open)

    def end_run(self, attachment: RunAttachment, unmoved: Iterable[str]) -> None:
        """The commit also ends the run of a pipeline; nobody may have changed these tables."""
        self._run = attachment
        self._unmoved = frozenset(unmoved)

    def commit(self) -> dict[str, Commit]:
        """Commit what was staged: {table: commit}."""
        outcome = self.attempt()
        if isinstance(outcome, Conflict):
            self.discard()
            raise conflict_error(outcome)
        return self.commits

    def attempt(self) -> Outcome:
        """Place the commit; on a conflict the written files are kept for another attempt."""
        self._check_open()
        proposal = self._proposal()
        return self._place(lambda: self._parts.committer.commit(proposal))

    def attempt_held(self, table_id: TableId, stage: Callable[[], None]) -> Outcome:
        """Stage and commit while nobody else changes rows of the table: nothing can come first."""

        def build() -> Proposal:
            stage()
            return self._proposal()

        strict = self._options.isolation == "serializable"
        return self._place(
            lambda: self._parts.committer.commit_held([table_id], build, strict=strict)
        )

    def answer_nothing(self) -> None:
        """Keep the answer of a request that changed nothing under its idempotency key."""
        self._open = False
        if self._options.idempotency_key is not None:
            self._parts.committer.commit(self._propose([], ()))

    def _place(self, commit: Callable[[], Outcome]) -> Outcome:
        try:
            outcome = commit()
        except CommitUnknown:
            self._open = False  # the files may be in use
            raise
        except LakebedError:
            self.discard()
            raise
        self._open = False
        if isinstance(outcome, Committed):
            self._delete_files(appended=outcome.replayed)
            self.commits = finish(self._parts, outcome, self._options.publish)
        return outcome

    def rollback(self) -> None:
        """Forget everything staged; the files written for it are deleted."""
        self._check_open()
        self.discard()

    def discard(self) -> None:
        self._open = False
        self._delete_files(appended=True)

    def discard_copies(self) -> None:
        """Delete what changes of rows wrote, when the rows given by the caller are kept."""
        for staged in self._staged.values():
            _delete_files(self._parts, staged.head, [f.path for f in staged.copied])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._open:
            return
        if kind is None and self._changes_nothing():
            self.discard()
        elif kind is None:
            self.commit()
        else:
            self.discard()

    def _changes_nothing(self) -> bool:
        """A block that only looked ends quietly; one that touched no table is a mistake."""
        return bool(self._staged) and not any(s.operations for s in self._staged.values())

    def _proposal(self) -> Proposal:
        changed = [s for s in self._staged.values() if s.operations]
        if not changed:
            self._open = False
            raise NoChanges(
                "the transaction changes nothing", hint="append to a table before committing"
            )
        serializable = self._isolation(changed) == "serializable"
        read = [
            s
            for key, s in self._staged.items()
            if s.create is None and (key in self._unmoved or (serializable and s.scanned))
        ]
        needs = [UnchangedSince(s.head.id, s.head.version, s.head.line) for s in read]
        return self._propose(changed, needs)

    def _propose(self, changed: Iterable[Staged], needs: Iterable[UnchangedSince]) -> Proposal:
        listed = list(changed)
        self._check_lines(listed)
        took = {"duration_ms": self._options.duration_ms}
        proposed = [s.changes(self._options.txn) for s in listed]
        return Proposal(
            transaction_id=str(uuid.uuid4()),
            author=self._options.author,
            message=self._options.message,
            isolation=self._isolation(listed),
            tables=tuple(replace(t, metrics={**t.metrics, **took}) for t in proposed),
            requirements=tuple(needs),
            principal=self._parts.principal.name,
            idempotency_key=self._options.idempotency_key,
            request_digest=self._digest or _digest(self._staged),
            summary=self._options.summary,
            run=self._run,
        )

    def _check_lines(self, changed: Sequence[Staged]) -> None:
        """A table has one set of counters: a commit can move one of its lines."""
        ids = [s.head.id for s in changed if s.create is None]
        if len(set(ids)) < len(ids):
            raise UnsupportedFeature(
                "a transaction cannot write to two branches of one table",
                hint="write to one of them, and to the other in a second transaction",
            )
        if self._options.txn is not None and any(s.head.line != MAIN_LINE for s in changed):
            raise UnsupportedFeature(
                "the numbers of applications (txn) count what main has, not a branch",
                hint="use idempotency_key on a branch, and txn when main follows it",
            )

    def _isolation(self, changed: Iterable[Staged]) -> str:
        """The strictest of what the call and the tables ask for."""
        if self._options.isolation is not None:
            return self._options.isolation
        wanted = {
            self._parts.settings.value("commit.isolation", s.state.properties) for s in changed
        }
        return "serializable" if "serializable" in wanted else "write_serializable"

    def _delete_files(self, *, appended: bool) -> None:
        for staged in self._staged.values():
            files = [*staged.forgotten, *(staged.appended if appended else ())]
            paths = [file.path for file in files]
            if staged.create is not None and appended:
                paths.append(MARKER)
            _delete_files(self._parts, staged.head, paths)

    def _check_open(self) -> None:
        if not self._open:
            raise TransactionClosed(
                "the transaction is over", hint="begin another with lake.transaction()"
            )


def _with_settings(parts: Parts, settings: Mapping[str, Value]) -> Parts:
    return replace(parts, settings=parts.settings.for_call(settings)) if settings else parts


def _digest(staged: dict[str, Staged]) -> str:
    """What makes two transactions with one idempotency key the same request."""
    return digest_of("transaction", *((n, s.operations) for n, s in sorted(staged.items())))


def _delete_files(parts: Parts, head: TableHead, paths: Iterable[str]) -> None:
    """Best effort: what stays behind is an orphan, which maintenance finds."""
    for path in paths:
        with suppress(LakebedError):
            parts.storage.delete(f"{head.location}/{path}")


def conflict_error(conflict: Conflict) -> CommitConflict:
    return CommitConflict(
        f"table {conflict.table}: this change was made on version {conflict.base}, and version"
        f" {conflict.with_version} stands against it: {conflict.reason}",
        hint="read the table again and repeat the change",
        table=conflict.table,
        base=conflict.base,
        with_version=conflict.with_version,
        head=conflict.head,
    )


def finish(parts: Parts, committed: Committed, mode: str | None) -> dict[str, Commit]:
    """Publish what was committed, as asked. A failure is told, never raised: the commit stands."""
    commits = {}
    views = committed.views or (None,) * len(committed.commits)
    for (head, commit), view in zip(committed.commits, views, strict=True):
        reason = publish_now(parts, head, commit, mode, view)
        if reason is not None and reason != BACKGROUND:
            warn(f"{head.name} version {commit.version} is committed but not published: {reason}")
        names = None if commit.line == MAIN_LINE else parts.refs.names(head)
        entry = to_commit(head, commit, reason=reason, replayed=committed.replayed, names=names)
        commits[str(head.name)] = entry
        if is_due(head, commit):
            parts.upkeep.notify(head.id)
    return commits


def warn(message: str) -> None:
    try:
        warnings.warn(message, PublishWarning, stacklevel=4)
    except PublishWarning:
        # Warnings may be errors; but a write that stands must not look as if it had failed.
        _log.error("%s", message)


def replay(parts: Parts, places: Places, mode: str | None) -> dict[str, Commit]:
    """The answer given before to the same idempotency key."""
    found = []
    for table_id, version, line in places:
        ledger = parts.outbox.ledger(TableId(table_id))
        head = ledger.head()
        if head is None:
            raise TableNotFound(
                "the table of the earlier answer is gone", hint="use a new idempotency key"
            )
        found.append((head, ledger.view(version, line).commit))
    return finish(parts, Committed(tuple(found), replayed=True), mode)


def to_commit(
    head: TableHead,
    commit: CommitRecord,
    *,
    reason: str | None = None,
    replayed: bool = False,
    names: Mapping[Line, str] | None = None,
) -> Commit:
    """`names` are those of lines; a commit on main needs none."""
    return Commit(
        table=str(head.name),
        version=commit.version,
        time_ms=commit.time_ms,
        operation=commit.operation,
        author=commit.author,
        message=commit.message,
        transaction_id=commit.transaction_id,
        summary=commit.summary,
        published=reason is None,
        reason=reason,
        replayed=replayed,
        branch=names.get(commit.line) if names is not None else MAIN,
    )


def refuse_branch(options: Options) -> None:
    """A table begins on main."""
    if options.branch is not None:
        raise InvalidInput(
            "a new table has no branches yet", hint="create it, then create_branch()"
        )


def publish_now(
    parts: Parts,
    head: TableHead,
    commit: CommitRecord | None,
    mode: str | None,
    view: VersionView | None = None,
) -> str | None:
    """What was committed, or what refs are now; why not, if it is not published.

    `view` is the commit's, where it is at hand.
    """
    try:
        if view is not None:
            state = view.state
        else:
            state = parts.catalog.state(head, commit.state_id if commit else head.state_id)
        mode = mode or str(parts.settings.value("publish.mode", state.properties))
        if mode == "background":
            parts.worker.notify(head.id)
        if mode != "commit":
            return BACKGROUND
        up_to = commit.version if commit else head.version
        if commit is not None and commit.line != MAIN_LINE:
            # Each line counts for itself, and all of them are published in one order.
            up_to = max(up_to, parts.catalog.get(head.id, str(head.name)).version)
        drained = parts.drainer.drain(head.id, up_to=up_to, known=view)
    except LakebedError as error:
        return f"{error.code}: {error.message}"
    if drained.checkpoint_due:
        parts.worker.notify(head.id)
    return None if drained.error is None else f"{drained.error.code}: {drained.error.message}"
