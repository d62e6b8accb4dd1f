"""What processes do in a soak: write and note what they were promised, or read and compare.

`python -m benchmarks.soak_actors KIND LAKE NUMBER LOG` goes on until SIGTERM, or until killed.
"""

import os
import random
import signal
import sys
import threading
import warnings
from pathlib import Path

import lakebed

COLUMNS = "writer int not null, n long not null, word string"
EVENTS, PAIRS = "soak.events", "soak.pairs"
_KEEP = 200  # newest rows that a writer leaves behind when it clears up
_PAUSE_S = 0.02
_LOOK = 10  # rows between two looks at the backlog
_FAR_BEHIND = 200  # versions that wait: publication is given time, so that the load is steady


class Notes:
    """Lines of a writer's log, durable before and after every change."""

    def __init__(self, path: Path) -> None:
        self.next = 1 + max((n for _, n in read_notes(path)), default=-1)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, what: str, n: int) -> None:
        os.write(self._file, f"{what} {n}\n".encode())
        os.fsync(self._file)


def read_notes(path: Path) -> list[tuple[str, int]]:
    """A line that a kill cut short was no promise."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [(what, int(n)) for what, n in map(str.split, lines)]


def write(lake: lakebed.Lake, number: int, log: Path, stop: threading.Event) -> None:
    notes, dice = Notes(log), random.Random()
    events = lake.table(EVENTS)
    while not stop.is_set():
        n = notes.next
        row = [{"writer": number, "n": n, "word": f"word {n}"}]
        if n % _KEEP == _KEEP - 1:
            notes.write("clear", n - _KEEP)
            for name in (EVENTS, PAIRS):
                lake.table(name).delete(f"writer = {number} and n < {n - _KEEP}")
            notes.write("cleared", n - _KEEP)
        notes.write("try", n)
        if dice.random() < 0.2:
            with lake.transaction() as tx:
                tx.table(EVENTS).append(row)
                tx.table(PAIRS).append(row)
        else:
            events.append(row)
        notes.write("ack", n)
        notes.next = n + 1
        stop.wait(_PAUSE_S)
        while n % _LOOK == 0 and lake.status().backlog.versions > _FAR_BEHIND:
            if stop.wait(_PAUSE_S * 10):
                break


def read(lake: lakebed.Lake, stop: threading.Event) -> None:
    """Every version is whole: no row twice, and a pair's row is in both tables."""
    dice = random.Random()
    while not stop.is_set():
        with lake.transaction() as tx:
            events = _keys(tx.table(EVENTS).scan().to_arrow().to_pylist())
            pairs = _keys(tx.table(PAIRS).scan().to_arrow().to_pylist())
        assert len(set(events)) == len(events), "a row is there twice"
        low = {w: min(n for v, n in events if v == w) for w in {w for w, _ in events}}
        torn = {(w, n) for w, n in pairs if n >= low.get(w, 0)} - set(events)
        assert not torn, f"pairs without their event: {sorted(torn)[:5]}"
        table = lake.table(EVENTS)
        version = dice.randint(max(0, table.version - 50), table.version)
        earlier = _keys(table.scan(version=version).to_arrow().to_pylist())
        assert len(set(earlier)) == len(earlier), f"version {version} has a row twice"
        stop.wait(_PAUSE_S)


def _keys(rows: list[dict[str, object]]) -> list[tuple[int, int]]:
    return [(int(str(row["writer"])), int(str(row["n"]))) for row in rows]


def main(kind: str, uri: str, number: str, log: str) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    warnings.simplefilter("ignore", lakebed.PublishWarning)
    with lakebed.open(uri) as lake:
        print("ready", flush=True)
        if kind == "write":
            write(lake, int(number), Path(log), stop)
        else:
            read(lake, stop)


if __name__ == "__main__":
    main(*sys.argv[1:])
