"""A lock file that processes and threads queue on, on every platform. Holds no rows."""

import errno
import os
import threading
import time
from types import TracebackType

from lakebed.model.errors import DatabaseLocked, DatabaseUnavailable, StorageReadOnly

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class FileLock:
    """Waiters are served about in order, and nobody polls.

    The kernel wakes those who wait, but whoever gave the lock back may take it again before they
    run. So one of them waits with a second lock in hand, which the others need before the first:
    who comes back finds it taken, and queues.
    """

    def __init__(self, path: str, *, timeout_s: float) -> None:
        self._path = path
        self._next = f"{path}.next"
        self._timeout_s = timeout_s
        self._mutex = threading.Lock()

    def held(self) -> "_Held":
        return _Held(self)

    def take(self) -> int:
        """The descriptor that holds the lock."""
        give_up = time.monotonic() + self._timeout_s
        if not self._mutex.acquire(timeout=self._timeout_s):
            raise self._late()
        try:
            return self._queued(give_up)
        except BaseException:
            self._mutex.release()
            raise

    def give(self, turn: int) -> None:
        try:
            _close(turn)
        finally:
            self._mutex.release()

    def _queued(self, give_up: float) -> int:
        turn = _open(self._path)
        try:
            next_ = _open(self._next)
            try:
                self._lock(next_, give_up)
                self._lock(turn, give_up)
            finally:
                _close(next_)
        except BaseException:
            _close(turn)
            raise
        return turn

    def _lock(self, descriptor: int, give_up: float) -> None:
        if fcntl is None:
            _lock_windows(descriptor)
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait(descriptor, give_up)

    def _wait(self, descriptor: int, give_up: float) -> None:
        # flock has no time-out: a thread waits in the kernel's queue on a descriptor of its own.
        waiting = os.dup(descriptor)
        state = _Waiter(waiting)
        thread = threading.Thread(target=state.run, name="lakebed-lock", daemon=True)
        thread.start()
        if not state.done.wait(max(0.0, give_up - time.monotonic())) and state.give_up():
            raise self._late()

    def _late(self) -> DatabaseLocked:
        return DatabaseLocked(
            f"the lake's write lock was not free within {self._timeout_s:g} s",
            hint="another process is writing; try again or raise database.timeout-s",
        )


class _Held:
    """A class and no generator: every commit passes through it."""

    __slots__ = ("_lock", "_turn")

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._turn = self._lock.take()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self._lock.give(self._turn)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    except OSError as error:
        kind = StorageReadOnly if error.errno in _READ_ONLY else DatabaseUnavailable
        raise kind(
            f"the lock file {path} cannot be opened: {error.strerror}",
            hint="the lake's folder must exist and be writable",
        ) from error


def _close(descriptor: int) -> None:
    """Give the lock back; closing alone would not do: a process forked meanwhile has it too."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


class _Waiter:
    def __init__(self, descriptor: int) -> None:
        self.done = threading.Event()
        self._descriptor = descriptor
        self._mutex = threading.Lock()
        self._given_up = False

    def run(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._mutex:
            if self._given_up:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            else:
                self.done.set()
            os.close(self._descriptor)

    def give_up(self) -> bool:
        """True when the lock was not had in the last moment."""
        with self._mutex:
            self._given_up = not self.done.is_set()
            return self._given_up


def _lock_windows(descriptor: int) -> None:  # pragma: no cover
    import msvcrt

    msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
