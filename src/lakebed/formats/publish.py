"""Drains the outbox: writes the files of every format in version order. Never undoes a commit."""

import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import groupby

from lakebed.core.crash import crash_point
from lakebed.core.ledger import Ledger, VersionView
from lakebed.core.outbox import Outbox, Published
from lakebed.formats.base import Publisher
from lakebed.model.errors import DatabaseError, ForeignCommit, LakebedError, PublishError
from lakebed.model.history import OutboxRow
from lakebed.model.ids import TableId
from lakebed.model.settings import Value
from lakebed.storage.base import Storage
from lakebed.storage.claim import empty_folder, refuse_foreign

_log = logging.getLogger("lakebed.publish")
PURGE = "purge"
CHECKPOINT = "checkpoint"
COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class Drained:
    """How far a table's publication came; `error` is the first thing that stopped a format."""

    done: int
    left: int
    error: LakebedError | None = None
    checkpoint_due: bool = False


class Drainer:
    def __init__(
        self,
        outbox: Outbox,
        storage: Storage,
        publishers: Mapping[str, Publisher],
        setting: Callable[[str], Value],
    ) -> None:
        self._outbox = outbox
        self._storage = storage
        self._publishers = publishers
        self._setting = setting

    def drain(
        self,
        table_id: TableId,
        *,
        up_to: int | None = None,
        most: int | None = None,
        force: bool = False,
        known: VersionView | None = None,
    ) -> Drained:
        """Publish what is due, in order; `up_to` leaves later versions and checkpoints to others.

        `most` rows of the outbox; `force` tries again at once what failed before; `known` is a
        version just committed.
        """
        ledger = self._outbox.ledger(table_id)
        if known is not None:
            ledger.remember(known)
        with self._outbox.publishing(table_id):
            rows, now_ms = self._outbox.pending(table_id)
            chains = [r for r in rows if up_to is None or (r.version <= up_to and r.kind != PURGE)]
            chains = [r for r in chains if r.kind != CHECKPOINT][:most]
            drained = self._drain(ledger, chains, now_ms, force=force)
        due = drained.checkpoint_due or any(r.kind == CHECKPOINT for r in rows)
        if up_to is None and due:
            self._drain_checkpoints(table_id, force=force)
        return replace(drained, checkpoint_due=due and up_to is not None)

    def _drain(self, ledger: Ledger, rows: list[OutboxRow], now_ms: int, *, force: bool) -> Drained:
        stopped: dict[str, LakebedError] = {}
        done, left, due = 0, 0, False
        for together in _by_version(rows):
            free = []
            for row in together:
                error = stopped.get(row.format) or (None if force else _waiting(row, now_ms))
                if error is None:
                    free.append(row)
                else:
                    stopped[row.format] = error
            written, failed = self._attempt(free, ledger) if free else ([], {})
            stopped |= failed
            done += len(written)
            left += len(together) - len(written)
            due = due or any(each.follow_up for each in written)
            if written and together[0].kind == PURGE:
                break
        return Drained(done, left, next(iter(stopped.values()), None), due)

    def _drain_checkpoints(self, table_id: TableId, *, force: bool) -> None:
        """Under a lock of their own: no commit waits for a checkpoint. The newest one is enough."""
        with self._outbox.checkpointing(table_id):
            rows, now_ms = self._outbox.pending(table_id)
            due = [r for r in rows if r.kind == CHECKPOINT]
            if due[:-1]:
                self._outbox.finish([(row, Published(())) for row in due[:-1]])
            self._drain(self._outbox.ledger(table_id), due[-1:], now_ms, force=force)

    def _attempt(
        self, rows: Sequence[OutboxRow], ledger: Ledger
    ) -> tuple[list[Published], dict[str, LakebedError]]:
        """What was written of some rows of one version, and what stopped the other formats."""
        done: list[tuple[OutboxRow, Published]] = []
        failed: list[tuple[OutboxRow, LakebedError]] = []
        # What takes long to write must not hold a transaction.
        with ledger.one_view() if rows[0].kind == COMMIT else nullcontext():
            for row in rows:
                try:
                    done.append((row, self._publish(row, ledger)))
                except DatabaseError:
                    raise
                except LakebedError as error:
                    failed.append((row, error))
                except Exception as error:  # the commit stands: by nothing may the write fail
                    _log.exception("publishing %s version %s", row.format, row.version)
                    failed.append((row, _defect(error)))
        if done and rows[0].kind != PURGE:
            crash_point("publish_before_mark")
            self._outbox.finish(done)
        for row, failure in failed:
            self._record_failure(row, failure)
        return [written for _, written in done], {row.format: failure for row, failure in failed}

    def _publish(self, row: OutboxRow, ledger: Ledger) -> Published:
        if row.kind == PURGE:
            self._purge(row, ledger)
            return Published(())
        view = ledger.view(row.version, row.line)
        return self._publishers[row.format].publish(ledger, view, row.kind)

    def _record_failure(self, row: OutboxRow, failure: LakebedError) -> None:
        _log.warning("publishing %s version %s: %s", row.format, row.version, failure.message)
        message = f"{failure.message} ({failure.hint})" if failure.hint else failure.message
        self._outbox.fail(row, code=failure.code, message=message, wait_ms=self._wait_ms(row))

    def _purge(self, row: OutboxRow, ledger: Ledger) -> None:
        with self._outbox.checkpointing(row.table_id):  # none may be written after this
            head = ledger.head()
            if head is not None:
                refuse_foreign(self._storage, head.location, head.uuid)
                empty_folder(self._storage, head.location)
                crash_point("purge_before_marker")
                self._storage.delete_folder(head.location)
            crash_point("purge_after_files")
            self._outbox.forget(row.table_id)

    def _wait_ms(self, row: OutboxRow) -> int:
        first_s = float(self._setting("publish.retry.base-s"))
        most_s = float(self._setting("publish.retry.max-s"))
        wait = min(most_s, first_s * 2 ** min(row.attempts, 30))
        return int(1000 * random.uniform(wait / 2, wait))


def _by_version(rows: Sequence[OutboxRow]) -> Iterator[list[OutboxRow]]:
    """Commits that all formats show from one view, and are recorded together; others alone."""
    for (kind, _, _), some in groupby(rows, key=lambda r: (r.kind, r.line, r.version)):
        if kind == COMMIT:
            yield list(some)
        else:
            yield from ([row] for row in some)


def _defect(error: Exception) -> PublishError:
    return PublishError(
        f"{type(error).__name__}: {error}", hint="this is a defect; please report it"
    )


def _waiting(row: OutboxRow, now_ms: int) -> LakebedError | None:
    """Why a row is left alone for now: it failed, and its next attempt is not due."""
    if row.error_code is None or row.next_ms <= now_ms:
        return None
    kind = ForeignCommit if row.error_code == ForeignCommit.code else PublishError
    return kind(row.error or row.error_code, hint="`lakebed publish` tries again at once")
