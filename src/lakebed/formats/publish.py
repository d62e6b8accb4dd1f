"""Drains the outbox: writes the files of every format in version order. Never undoes a commit."""

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakebed.core.outbox import Outbox
from lakebed.formats.base import Publisher
from lakebed.model.errors import DatabaseError, LakebedError
from lakebed.model.history import OutboxRow
from lakebed.model.ids import TableId
from lakebed.model.settings import Value
from lakebed.storage.base import Storage

_log = logging.getLogger("lakebed.publish")
PURGE = "purge"
CHECKPOINT = "checkpoint"


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

    def drain(self, table_id: TableId, *, up_to: int | None = None, force: bool = False) -> Drained:
        """Publish what is due, in order; `up_to` leaves later versions and checkpoints to others.

        `force` tries again at once what failed before.
        """
        with self._outbox.publishing(table_id):
            rows, now_ms = self._outbox.pending(table_id)
            return self._drain(rows, now_ms, up_to=up_to, force=force)

    def _drain(
        self, rows: list[OutboxRow], now_ms: int, *, up_to: int | None, force: bool
    ) -> Drained:
        stopped: dict[str, LakebedError] = {}
        done, left, due = 0, 0, False
        for row in rows:
            if up_to is not None and (row.version > up_to or row.kind in (CHECKPOINT, PURGE)):
                due = due or row.kind == CHECKPOINT
                continue
            chain = f"{row.format} {row.kind}" if row.kind == CHECKPOINT else row.format
            error = stopped.get(chain) or (None if force else _waiting(row, now_ms))
            if error is None:
                error, follows = self._attempt(row)
                due = due or follows
            if error is None:
                done += 1
                if row.kind == PURGE:
                    break
            else:
                stopped[chain] = error
                left += 1
        return Drained(done, left, next(iter(stopped.values()), None), due)

    def _attempt(self, row: OutboxRow) -> tuple[LakebedError | None, bool]:
        """What went wrong, if anything, and whether a checkpoint is due now."""
        try:
            return None, self._publish(row)
        except DatabaseError:
            raise
        except LakebedError as error:
            _log.warning("publishing %s version %s: %s", row.format, row.version, error.message)
            message = f"{error.message} ({error.hint})" if error.hint else error.message
            self._outbox.fail(row, code=error.code, message=message, wait_ms=self._wait_ms(row))
            return error, False

    def _publish(self, row: OutboxRow) -> bool:
        ledger = self._outbox.ledger(row.table_id)
        if row.kind == PURGE:
            self._purge(row)
            return False
        written = self._publishers[row.format].publish(ledger, ledger.view(row.version), row.kind)
        self._outbox.finish(
            row,
            written.publications,
            manifests=(written.manifests_added, written.manifests_retired),
            manifest_lists=written.manifest_lists,
            follow_up=written.follow_up,
        )
        return bool(written.follow_up)

    def _purge(self, row: OutboxRow) -> None:
        head = self._outbox.ledger(row.table_id).head()
        if head is not None:
            self._storage.delete_folder(head.location)
        self._outbox.forget(row.table_id)

    def _wait_ms(self, row: OutboxRow) -> int:
        base, most = (
            float(self._setting("publish.retry.base-s")),
            float(self._setting("publish.retry.max-s")),
        )
        wait = min(most, base * 2 ** min(row.attempts, 30))
        return int(1000 * random.uniform(wait / 2, wait))


def _waiting(row: OutboxRow, now_ms: int) -> LakebedError | None:
    """Why a row is left alone for now: it failed, and its next attempt is not due."""
    if row.error_code is None or row.next_ms <= now_ms:
        return None
    return LakebedError(row.error or row.error_code, hint="`lakebed publish` tries again at once")
