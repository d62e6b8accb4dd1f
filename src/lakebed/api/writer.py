"""A buffered writer: many small writes, few commits. What is not flushed is lost in a crash."""

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import pyarrow as pa

from lakebed.api.intake import Intake, Taken, Values
from lakebed.api.options import check_number
from lakebed.model.errors import CommitUnknown, InvalidInput, LakebedError, WriterClosed
from lakebed.model.history import Commit

_log = logging.getLogger("lakebed")
_LONGEST_PAUSE_S = 60.0
_FIRST_PAUSE_S = 0.5

Append = Callable[[Sequence[pa.RecordBatch], str], Commit]  # batches, idempotency key


@dataclass(frozen=True, slots=True)
class Limits:
    """When a flush begins; and the bytes beyond which a write waits for it."""

    max_rows: int
    max_seconds: float | None
    max_bytes: int

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_bytes"):
            if check_number(name, getattr(self, name)) < 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}", hint="give at least 1")
        seconds = self.max_seconds
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and not (number and math.isfinite(seconds) and seconds > 0):
            hint = "give seconds above 0, or None for no limit of time"
            raise InvalidInput(f"max_seconds is {seconds!r}", hint=hint)


@dataclass(slots=True)
class _Load:
    """The rows of one flush. Its key makes trying again safe when nobody knows what happened."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    loose: list[Values] = field(default_factory=list)
    intake: Intake | None = None  # of the loose rows
    rows: int = 0
    size_bytes: int = 0
    since: float = 0.0
    key: str = field(default_factory=lambda: str(uuid.uuid4()))
    in_doubt: bool = False  # it may have been committed

    def add(self, taken: Taken) -> None:
        if not self.rows:
            self.since = time.monotonic()
        if taken.batches or taken.intake is not self.intake:
            self.pack()
        self.intake = taken.intake
        self.batches += taken.batches
        self.loose += taken.loose
        self.rows += taken.rows
        self.size_bytes += taken.size_bytes

    def pack(self) -> None:
        """All of it as batches, in the order in which it came."""
        if self.loose and self.intake is not None:
            self.batches.append(self.intake.to_batch(self.loose))
            self.loose = []


class Writer:
    """Takes rows from any number of threads; a thread of its own commits them, a load at a time.

    Rows are safe once a flush has committed them: every `max_seconds`, at `max_rows`, by `flush()`
    and when the block ends, by an exception too. A write that raises has kept none of its rows.
    """

    def __init__(self, look: Callable[[], Intake], append: Append, limits: Limits) -> None:
        self._look = look
        self._append = append
        self._limits = limits
        self._intake = look()
        self._filling = _Load()
        self._leaving: _Load | None = None  # being committed, or to be tried again
        self._closed = False
        self._waiting = 0  # calls that wait for room
        self._failures = 0
        self._retry_at = 0.0
        self._untold: Exception | None = None  # what a flush in the background met
        self._turn = threading.Lock()  # one flush at a time
        self._state = threading.Lock()  # guards all of the above
        self._work = threading.Condition(self._state)  # the thread waits for it
        self._room = threading.Condition(self._state)  # writes wait for it
        self._thread = threading.Thread(target=self._run, name="lakebed-writer", daemon=True)
        self._thread.start()

    @property
    def rows_waiting(self) -> int:
        """Rows that were written and are not known to be committed."""
        with self._state:
            return self._filling.rows + (self._leaving.rows if self._leaving else 0)

    def write(self, rows: object) -> None:
        """Check and keep one dict, or what `Table.append` takes; waits when there is no room.

        Raises what the last flush in the background met, once; the rows it could not commit stay.
        """
        if self._closed or self._untold:
            with self._state:
                self._refuse()  # before an iterator is read
        taken = self._intake.take_few(rows) or self._take(rows)
        if not taken.rows:
            return
        with self._state:
            self._refuse()
            self._wait_for_room(taken.size_bytes)
            self._filling.add(taken)
            if self._filling.rows == taken.rows or self._is_full():
                self._work.notify()

    def flush(self) -> Commit | None:
        """Commit what was written so far, in one commit; None if there is nothing.

        Rows of a flush that failed before are tried again first, as a commit of their own.
        """
        with self._turn:
            if self._closed:
                raise _closed()
            return self._flush()

    def close(self) -> None:
        """Take no more rows and flush. If that fails the rows stay: call it again to try again."""
        with self._state:
            self._closed = True
            self._work.notify_all()
            self._room.notify_all()
        try:
            with self._turn:
                self._flush()
        finally:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except LakebedError as failure:
            if error is None:
                raise
            lost = f"{self.rows_waiting} rows were not flushed: {failure.code}: {failure.message}"
            _log.error("%s", lost)
            error.add_note(lost)

    def _take(self, rows: object) -> Taken:
        """A closer look, at the table as it is now."""
        self._intake = intake = self._look()
        return intake.take(rows)

    def _refuse(self) -> None:
        if self._closed:
            raise _closed()
        if self._untold is not None:
            error, self._untold = self._untold, None
            raise error

    def _wait_for_room(self, size_bytes: int) -> None:
        while self._is_too_much(size_bytes) or self._is_behind():
            self._waiting += 1
            self._work.notify()
            try:
                self._room.wait()
            finally:
                self._waiting -= 1
            self._refuse()

    def _is_too_much(self, size_bytes: int) -> bool:
        """More than everything is taken when nothing else is there."""
        used = self._used()
        return used > 0 and used + size_bytes > self._limits.max_bytes

    def _is_behind(self) -> bool:
        """The next flush is soon due while one is under way: busy threads would hold that up.

        After a failure there is none under way, and rows are taken as long as there is room.
        """
        soon = (self._limits.max_seconds or 0) / 2
        return self._leaving is not None and not self._failures and self._pause() <= soon

    def _used(self) -> int:
        return self._filling.size_bytes + (self._leaving.size_bytes if self._leaving else 0)

    def _is_full(self) -> bool:
        """At half of the bytes, so that others can write while it is committed."""
        load = self._filling
        full = load.size_bytes * 2 >= self._limits.max_bytes
        return full or load.rows >= self._limits.max_rows

    def _pause(self) -> float:
        """Seconds until a flush is due."""
        if self._failures:
            return self._retry_at - time.monotonic()
        if not self._filling.rows:
            return math.inf
        if self._waiting or self._is_full():
            return 0
        seconds = self._limits.max_seconds
        return math.inf if seconds is None else self._filling.since + seconds - time.monotonic()

    def _run(self) -> None:
        while True:
            with self._state:
                while not self._closed and (pause := self._pause()) > 0:
                    self._work.wait(None if pause == math.inf else min(pause, _LONGEST_PAUSE_S))
                if self._closed:
                    return
            with self._turn:
                if not self._closed:
                    self._flush_behind()

    def _flush_behind(self) -> None:
        try:
            self._flush()
        except Exception as error:  # nobody waits for this thread: the next call tells
            _log.warning("%s rows wait, their flush failed: %s", self.rows_waiting, error)
            with self._state:
                self._untold = error
                self._room.notify_all()

    def _flush(self) -> Commit | None:
        try:
            commit = self._commit_all()
        except BaseException:
            with self._state:
                pause = min(_FIRST_PAUSE_S * 2**self._failures, _LONGEST_PAUSE_S)
                self._failures = min(self._failures + 1, 10)
                self._retry_at = time.monotonic() + pause
                self._work.notify()
                self._room.notify_all()
            raise
        with self._state:
            self._failures, self._untold = 0, None
        return commit

    def _commit_all(self) -> Commit | None:
        commit = self._commit(self._leaving) if self._leaving else None
        if not self._filling.rows:
            return commit
        intake = self._look()  # what is written from here on is for the table as it is now
        with self._state:
            self._intake = intake
            self._leaving, self._filling = self._filling, _Load()
        return self._commit(self._leaving)

    def _commit(self, load: _Load) -> Commit:
        load.pack()
        was_in_doubt, load.in_doubt = load.in_doubt, True
        try:
            commit = self._append(load.batches, load.key)
        except LakebedError as error:
            known = not was_in_doubt or "replayed" in error.context
            if known and not isinstance(error, CommitUnknown):
                # A refusal is kept under its key; the table may take the rows another time.
                load.key, load.in_doubt = str(uuid.uuid4()), False
            raise
        with self._state:
            self._leaving = None
            self._room.notify_all()
        return commit


def _closed() -> WriterClosed:
    return WriterClosed("the writer is closed", hint="make another one with table.writer()")
