"""A lake under load for a long time: `python -m benchmarks.soak --minutes 20`.

Writers, a reader and followers of the outbox work beside each other; some are killed at random
moments and started again; the lake is checked now and then. At the end every promise holds.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lakebed
from benchmarks.measure import REPO
from benchmarks.soak_actors import COLUMNS, EVENTS, PAIRS, read_notes

_TAKES_S = 300  # for an actor to end
_MOST_GROWTH = 1.2
_LEAST_S = 300  # below it memory is told and not judged: nothing has settled
_MARGIN_BYTES = 8_000_000  # of the allocator, not of ours


@dataclass
class Actor:
    name: str
    command: Sequence[str]
    out: Path  # what it says: something, once it has begun
    killable: bool
    process: "subprocess.Popen[bytes] | None" = None
    rss: list[tuple[float, int]] = field(default_factory=list)

    def start(self) -> None:
        with self.out.open("wb") as out:
            self.process = subprocess.Popen(self.command, cwd=REPO, stdout=out)

    def wait_for_word(self) -> None:
        assert self.process is not None
        wait_until = time.monotonic() + _TAKES_S
        while not self.out.stat().st_size:
            assert self.process.poll() is None, f"{self.name} does not begin"
            assert time.monotonic() < wait_until, f"{self.name} takes too long to begin"
            time.sleep(0.02)

    def look(self, at: float) -> None:
        """It lives, or is killed by us: anything else is a failure."""
        assert self.process is not None
        code = self.process.poll()
        assert code is None, f"{self.name} ended with {code}"
        self.rss.append((at, _rss_bytes(self.process.pid)))

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_TAKES_S)
            except subprocess.TimeoutExpired:
                self.kill()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="how long (default: 20)")
    parser.add_argument("--lake", help="an empty place for the lake (default: a temporary folder)")
    parser.add_argument("--seed", type=int, default=None, help="of the moments of kills and checks")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lakebed-soak-") as folder:
        uri = options.lake or str(Path(folder) / "lake")
        warehouse = Path(folder) / "warehouse" if "://" in uri else None
        said = soak(uri, warehouse, Path(folder), options.minutes * 60, options.seed)
    for line in said:
        print(line)
    return 0


def soak(
    uri: str, warehouse: Path | None, notes: Path, seconds: float, seed: int | None = None
) -> list[str]:
    """What happened; whatever must not happen is an AssertionError."""
    dice = random.Random(seed)
    with lakebed.open(uri, create=True, warehouse=warehouse) as lake:
        lake.set_setting("publish.mode", "service")
        for name in (EVENTS, PAIRS):
            lake.create_table(name, COLUMNS)
    actors = _actors(uri, notes)
    kills = checks = 0
    try:
        for actor in actors:
            actor.start()
        for actor in actors:
            actor.wait_for_word()
        begun = time.monotonic()
        next_kill = next_check = seconds / 10
        while (at := time.monotonic() - begun) < seconds:
            for actor in actors:
                actor.look(at)
            if at >= next_kill:
                victim = dice.choice([a for a in actors if a.killable])
                victim.kill()
                victim.start()
                kills += 1
                next_kill = at + dice.uniform(0.02, 0.08) * min(seconds, 300)
            if at >= next_check:
                _check(uri)
                checks += 1
                next_check = at + dice.uniform(0.05, 0.2) * min(seconds, 600)
            time.sleep(min(1.0, seconds / 40))
    finally:
        for actor in actors:
            actor.end()
    ended = [f"{a.name}: {a.process.returncode}" for a in actors if a.process and not a.killable]
    assert all(text.endswith(": 0") for text in ended), ended
    said = [*_judge_rows(uri, notes), *_judge_memory(actors, seconds)]
    return [f"{seconds:.0f} s, {kills} kills, {checks} checks meanwhile", *said]


def _actors(uri: str, notes: Path) -> list[Actor]:
    def acting(kind: str, number: int) -> list[str]:
        log = str(notes / f"{number}.log")
        return [sys.executable, "-m", "benchmarks.soak_actors", kind, uri, str(number), log]

    following = [sys.executable, "-m", "lakebed", "-l", uri, "publish", "--follow", "--json"]
    planned = [
        ("writer", acting("write", 0), False),
        ("writer that is killed", acting("write", 1), True),
        ("reader", acting("read", 2), False),
        ("publisher", following, False),
        ("publisher that is killed", following, True),
    ]
    return [
        Actor(name, command, notes / f"{name}.out", killable) for name, command, killable in planned
    ]


def _check(uri: str) -> None:
    """Beside everybody else; what waits for publication is nothing wrong."""
    with lakebed.open(uri) as lake:
        findings = lake.check().findings
    assert findings == [], findings


def _judge_rows(uri: str, notes: Path) -> list[str]:
    with lakebed.open(uri) as lake:
        status = lake.publish()
        assert status.lags == (), status.lags
        report = lake.check()
        assert report.findings == [], report.findings
        rows = lake.table(EVENTS).scan().to_arrow().to_pylist()
        versions = lake.table(EVENTS).version + lake.table(PAIRS).version
    found = [(row["writer"], row["n"]) for row in rows]
    assert len(found) == len(set(found)), "a row is there twice"
    for number in (0, 1):
        entries = read_notes(notes / f"{number}.log")
        told = {
            what: [n for said, n in entries if said == what]
            for what in ("try", "ack", "clear", "cleared")
        }
        here = {n for writer, n in found if writer == number}
        begun, done = max(told["clear"], default=-1), max(told["cleared"], default=-1)
        lost = {n for n in told["ack"] if n >= begun} - here
        assert not lost, f"promised and lost: {sorted(lost)[:5]}"
        assert here <= set(told["try"]), "rows that nobody wrote"
        assert not {n for n in here if n < done}, "rows that were deleted are back"
    return [f"{versions:,} versions, {len(found):,} rows at the end, the check is clean"]


def _judge_memory(actors: Sequence[Actor], seconds: float) -> list[str]:
    said = []
    for actor in actors:
        if actor.killable:
            continue
        second, last = (
            statistics.median([b for at, b in actor.rss if low <= at / seconds < low + 0.25] or [1])
            for low in (0.25, 0.75)
        )
        growth = last / second
        said.append(f"{actor.name}: {last / 1e6:.0f} MB, {growth:.2f}x of the second quarter")
        if seconds >= _LEAST_S:
            assert last <= _MOST_GROWTH * second + _MARGIN_BYTES, said[-1]
    return said


def _rss_bytes(process: int) -> int:
    try:
        pages = int((Path("/proc") / str(process) / "statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
