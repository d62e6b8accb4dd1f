"""The lock file: one at a time, waited for only so long, and nobody is forgotten."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakebed.meta.filelock import FileLock
from lakebed.model.errors import DatabaseLocked, DatabaseUnavailable


def test_one_holder_at_a_time_over_several_handles(tmp_path: Path) -> None:
    """Handles stand for processes: each opens the file for itself."""
    locks = [FileLock(str(tmp_path / "lock"), timeout_s=10) for _ in range(4)]
    inside, seen = [0], list[int]()

    def hold(lock: FileLock) -> None:
        for _ in range(10):
            with lock.held():
                inside[0] += 1
                seen.append(inside[0])
                time.sleep(0.001)
                inside[0] -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(hold, locks))

    assert seen == [1] * 40


def test_who_waits_too_long_is_told_and_blocks_nobody(tmp_path: Path) -> None:
    first, second = (FileLock(str(tmp_path / "lock"), timeout_s=0.2) for _ in range(2))

    with first.held():
        started = time.monotonic()
        with pytest.raises(DatabaseLocked) as caught, second.held():
            pass
        assert 0.15 < time.monotonic() - started < 2
    assert caught.value.retryable

    for lock in (second, first, second):
        with lock.held():
            pass


def test_threads_of_one_handle_wait_only_so_long_too(tmp_path: Path) -> None:
    lock = FileLock(str(tmp_path / "lock"), timeout_s=0.2)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.held():
            entered.set()
            leave.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(5)
    with pytest.raises(DatabaseLocked), lock.held():
        pass
    leave.set()
    thread.join()
    with lock.held():
        pass


def test_waiters_are_served_in_turn_though_one_never_rests(tmp_path: Path) -> None:
    greedy, patient = (FileLock(str(tmp_path / "lock"), timeout_s=10) for _ in range(2))
    stop, waits = threading.Event(), list[float]()

    def hog() -> None:
        while not stop.is_set():
            with greedy.held():
                time.sleep(0.005)

    thread = threading.Thread(target=hog)
    thread.start()
    for _ in range(20):
        started = time.monotonic()
        with patient.held():
            waits.append(time.monotonic() - started)
    stop.set()
    thread.join()

    assert max(waits) < 2


def test_a_failure_inside_gives_the_lock_back(tmp_path: Path) -> None:
    lock = FileLock(str(tmp_path / "lock"), timeout_s=0.2)

    def fail() -> None:
        with lock.held():
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fail()
    with FileLock(str(tmp_path / "lock"), timeout_s=0.2).held():
        pass


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable) as caught:
        FileLock(str(tmp_path / "gone" / "lock"), timeout_s=1).held().__enter__()

    assert "folder" in caught.value.hint
