"""Processes that write as fast as they can, killed at random moments and started again.

Each batch is three rows, `batch * 10 + 0..2`; a pair is one commit to both tables. A worker writes
`try` before a commit and `ack` after it, durably, so that the test knows what it was promised.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import lakebed
import lakebed.api.lake
import lakebed.formats.delta.publish
import lakebed.formats.iceberg.publish
import lakebed.meta.postgres
import lakebed.meta.sqlite

WORKERS = 4


def rows(batch: int) -> list[dict[str, object]]:
    return [{"id": batch * 10 + n, "word": "w"} for n in range(3)]


def work(uri: str, warehouse: str, folder: Path, number: int, life: int, deadline: float) -> None:
    warnings.simplefilter("ignore", lakebed.PublishWarning)
    lake = lakebed.open(uri, warehouse=warehouse or None)
    left = lake.table("a.left")
    dice = random.Random(f"{number} {life}")
    log = os.open(folder / f"{number}.{life}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    batch = (number * 1000 + life) * 100_000
    while time.monotonic() < deadline:
        batch += 1
        pair = dice.random() < 0.3
        note(log, {"try": batch, "pair": pair})
        started = time.monotonic()
        if pair:
            with lake.transaction() as tx:
                tx.table("a.left").append(rows(batch))
                tx.table("a.right").append(rows(batch))
        else:
            left.append(rows(batch))
        note(log, {"ack": batch, "pair": pair, "s": time.monotonic() - started})
    lake.close()


def note(log: int, entry: dict[str, object]) -> None:
    os.write(log, json.dumps(entry).encode() + b"\n")
    os.fsync(log)


def watch(uri: str, warehouse: str, deadline: float) -> None:
    """A reader beside them: every batch it sees is whole, and no batch is there twice."""
    with lakebed.open(uri, warehouse=warehouse or None) as lake:
        while time.monotonic() < deadline:
            for name in ("a.left", "a.right"):
                ids = sorted(lake.table(name).to_arrow().column("id").to_pylist())
                assert ids == [r["id"] for b in sorted({i // 10 for i in ids}) for r in rows(b)]
            time.sleep(0.05)


def fork(*arguments: object) -> int:
    child = os.fork()
    if child == 0:
        try:
            (work if len(arguments) == 6 else watch)(*arguments)  # type: ignore[arg-type]
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def supervise(uri: str, warehouse: str, folder: Path, seconds: float, seed: str) -> list[int]:
    """Exit codes other than those of killed workers; no kills without a seed."""
    deadline = time.monotonic() + seconds
    lives = dict.fromkeys(range(WORKERS), 0)
    workers = {fork(uri, warehouse, folder, n, 0, deadline): n for n in lives}
    watcher = fork(uri, warehouse, deadline)
    dice = random.Random(seed)
    while seed and time.monotonic() < deadline:
        time.sleep(dice.uniform(0.02, 0.5))
        victim = dice.choice(list(workers))
        os.kill(victim, signal.SIGKILL)
        _, status = os.waitpid(victim, 0)
        number = workers.pop(victim)
        if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGKILL):
            return [os.waitstatus_to_exitcode(status)]
        lives[number] += 1
        workers[fork(uri, warehouse, folder, number, lives[number], deadline)] = number
    codes = [os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in (*workers, watcher)]
    sys.stdout.write(json.dumps({"lives": sum(lives.values()), "codes": codes}))
    return codes


if __name__ == "__main__":
    uri, warehouse, folder, seconds, seed = sys.argv[1:]
    sys.exit(any(supervise(uri, warehouse, Path(folder), float(seconds), seed)))
