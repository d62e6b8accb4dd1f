"""Processes write to one lake at once, killed or left alone: nothing is lost or doubled."""

import json
import multiprocessing
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from tests.faults.conftest import REPO, Place
from tests.faults.driver import SCHEMA
from tests.faults.hammer import WORKERS
from tests.faults.hammer import rows as batch_rows
from tests.faults.health import assert_healthy, lake_ids
from tests.faults.queueing import open_store, write_for_a_while

SECONDS = 7.0


@dataclass(frozen=True)
class Run:
    tried: dict[int, bool]  # batch -> whether it goes to both tables
    acknowledged: dict[int, bool]
    waits: list[list[float]]  # by worker, in seconds
    lives: int


def test_killed_at_random_moments_every_acknowledged_batch_is_there_once(
    place: Place, tmp_path: Path
) -> None:
    run = hammer(place, tmp_path, seed="7")
    assert run.lives >= 5
    assert len(run.acknowledged) >= 20

    with place.open() as lake:
        found = lake_ids(lake)
        left, right = ({i // 10 for i in found[name]} for name in ("a.left", "a.right"))
        assert set(run.acknowledged) <= left <= set(run.tried)
        assert {b for b in left if run.tried[b]} == right
        assert_healthy(lake, {"a.left": ids(left), "a.right": ids(right)})
        published = [c.version for c in lake.table("a.left").history() if not c.published]
        assert published == []


def test_left_alone_every_process_makes_progress_and_none_waits_long(
    place: Place, tmp_path: Path
) -> None:
    run = hammer(place, tmp_path, seed="")

    assert run.tried == run.acknowledged
    counts = [len(waits) for waits in run.waits]
    average = mean(w for waits in run.waits for w in waits)
    assert len(counts) == WORKERS
    assert min(counts) >= max(counts) / 5, counts
    assert max(w for waits in run.waits for w in waits) <= max(2.0, 25 * average), average
    with place.open() as lake:
        pairs = [b for b, pair in run.acknowledged.items() if pair]
        assert_healthy(lake, {"a.left": ids(set(run.acknowledged)), "a.right": ids(set(pairs))})


def test_writers_of_many_processes_are_served_in_turn(tmp_path: Path) -> None:
    """Left to SQLite's own waiting, some of these make one write and some a thousand."""
    path, writers, seconds = tmp_path / "test.db", 5, 2.0
    ready = tmp_path / "ready"
    ready.mkdir()
    path.touch()
    store = open_store(str(path))
    with store.write() as tx:
        tx.run("CREATE TABLE note (number BIGINT)")
        tx.run("INSERT INTO note VALUES (0)")

    with multiprocessing.get_context("spawn").Pool(writers) as pool:
        jobs = [(str(path), str(ready), writers, seconds)] * writers
        waits = pool.starmap(write_for_a_while, jobs, chunksize=1)

    with store.read() as tx:
        assert tx.one("SELECT number FROM note") == (sum(map(len, waits)),)
    store.close()
    counts = sorted(map(len, waits))
    assert counts[0] >= counts[-1] / 3, counts
    assert max(map(max, waits)) <= seconds / 2, counts


def hammer(place: Place, folder: Path, *, seed: str) -> Run:
    with place.open(create=True) as lake:
        lake.create_table("a.left", SCHEMA)
        lake.create_table("a.right", SCHEMA)
    logs = folder / "logs"
    logs.mkdir()
    warehouse = "" if place.kind == "sqlite" else str(place.warehouse)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.faults.hammer",
            place.uri,
            warehouse,
            logs,
            str(SECONDS),
            seed,
        ],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    tried, acknowledged, waits = {}, {}, [[] for _ in range(WORKERS)]  # type: ignore[var-annotated]
    for log in logs.iterdir():
        for line in log.read_bytes().split(b"\n")[:-1]:
            entry = json.loads(line)
            if "try" in entry:
                tried[entry["try"]] = entry["pair"]
            else:
                acknowledged[entry["ack"]] = entry["pair"]
                waits[int(log.name.split(".")[0])].append(entry["s"])
    return Run(tried, acknowledged, waits, json.loads(done.stdout)["lives"])


def ids(batches: set[int]) -> list[int]:
    return [int(str(row["id"])) for batch in batches for row in batch_rows(batch)]
