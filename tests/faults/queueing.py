"""A writer that only writes, for the measure of fairness. It is spawned, so it imports little."""

import os
import time
from pathlib import Path

from lakebed.meta.sqlite import SqliteDialect
from lakebed.meta.store import Store


def open_store(path: str) -> Store:
    return Store(SqliteDialect(Path(path), timeout_s=30, pool_size=1), timeout_s=30)


def write_for_a_while(path: str, folder: str, writers: int, seconds: float) -> list[float]:
    """How long each write took, begun when all are ready: each wants the lock all the time."""
    store, waits = open_store(path), list[float]()
    Path(folder, str(os.getpid())).touch()
    while len(list(Path(folder).iterdir())) < writers:
        time.sleep(0.01)
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        with store.write(durable=False) as tx:
            tx.run("UPDATE note SET number = number + 1")
            time.sleep(0.002)
        waits.append(time.monotonic() - began)
    store.close()
    return waits
