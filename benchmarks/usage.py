"""What this process takes of the machine, with the processes below it: a JVM and its workers."""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

_PROCESSES = Path("/proc")


def below_s() -> float:
    """User and system time of the processes below this one, that live or are gone.

    To find them takes some milliseconds of this process: it is not asked while its own time counts.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = sum(map(_ticks, _below())) / os.sysconf("SC_CLK_TCK")
    return used.ru_utime + used.ru_stime + living


def forget_peak() -> None:
    """Linux can begin anew; elsewhere the peak is that of the whole process so far."""
    for process in (os.getpid(), *_below()):
        try:
            (_PROCESSES / str(process) / "clear_refs").write_text("5")
        except OSError:
            continue


def peak_bytes() -> int:
    found = sum(_peak(process) for process in (os.getpid(), *_below()))
    if found:
        return found
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def _below() -> list[int]:
    """Processes that live and descend from this one; where there is no /proc, none is known."""
    parents = dict(_parents())
    found: list[int] = []
    known = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in known} - known:
        known |= more
        found += more
    return found


def _parents() -> Iterator[tuple[int, int]]:
    if _PROCESSES.is_dir():
        for folder in _PROCESSES.iterdir():
            if folder.name.isdigit() and (fields := _fields(int(folder.name))):
                yield int(folder.name), int(fields[1])


def _ticks(process: int) -> int:
    return sum(map(int, _fields(process)[11:15]))


def _fields(process: int) -> list[str]:
    """Of /proc/N/stat, from the state on; none when the process is gone."""
    try:
        text = (_PROCESSES / str(process) / "stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _peak(process: int) -> int:
    try:
        text = (_PROCESSES / str(process) / "status").read_text()
    except OSError:
        return 0
    found = [line.split()[1] for line in text.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else 0
