"""Runs one small job per request in a forked process of its own, which may be killed at any point.

A request is a line of JSON: {"job", "uri", "warehouse", "crash_at"}. The answer is a line too: how
the process ended, and what it acknowledged before. Forking from here, where everything is imported
and nothing runs, makes a kill cost milliseconds.
"""

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import lakebed
import lakebed.api.lake
import lakebed.formats.delta.publish
import lakebed.formats.iceberg.publish
import lakebed.meta.postgres
import lakebed.meta.sqlite
from lakebed.core import crash
from lakebed.core.index import FileIndex
from lakebed.meta import migrate
from lakebed.model.runs import Cursor, RunAttachment, RunReport

SCHEMA = "id long not null, word string"
BIG = 70_000  # every other row deleted: a vector too large for Delta's log
NEXT = migrate.Migration(
    migrate.known_migrations()[-1].number + 1,
    "next",
    "CREATE TABLE later (one BIGINT); CREATE TABLE later2 (one BIGINT)",
)
Request = dict[str, str]
Ack = Callable[[str], object]


def rows(*ids: int) -> list[dict[str, object]]:
    return [{"id": i, "word": f"w{i}"} for i in ids]


def open_lake(request: Request, *, create: bool = False) -> lakebed.Lake:
    return lakebed.open(request["uri"], create=create, warehouse=request["warehouse"] or None)


def set_up(request: Request) -> lakebed.Lake:
    lake = open_lake(request, create=True)
    lake.create_table("a.left", SCHEMA).append(rows(0, 1, 2))
    lake.create_table("a.right", SCHEMA).append(rows(0, 1, 2))
    return lake


def append(lake: lakebed.Lake) -> None:
    lake.table("a.left").append(rows(10, 11))


def follow(lake: lakebed.Lake) -> None:
    """Two versions that wait, published by a follower."""
    for n in (10, 11):
        lake.table("a.left").append(rows(n), publish="service")
    stop = threading.Event()
    lake.follow_publishing(stop, tell=lambda _: stop.set())


def overwrite(lake: lakebed.Lake) -> None:
    lake.table("a.left").overwrite(rows(20))


def delete(lake: lakebed.Lake) -> None:
    lake.table("c.big").delete("word = 'w1'")


def changes(lake: lakebed.Lake) -> None:
    lake.table("c.told").delete("id = 1")


def rewrite(lake: lakebed.Lake) -> None:
    lake.table("a.left").delete("id = 1", settings={"write.delete.mode": "copy-on-write"})


def refs(lake: lakebed.Lake) -> None:
    lake.table("a.left").create_branch("b")


def branch(lake: lakebed.Lake) -> None:
    lake.table("a.left").append(rows(50), branch="b")


def forward(lake: lakebed.Lake) -> None:
    lake.table("a.left").fast_forward("main", to="b")


def transaction(lake: lakebed.Lake) -> None:
    with lake.transaction() as tx:
        tx.table("a.left").append(rows(30))
        tx.table("a.right").append(rows(30))


def pipeline_run(lake: lakebed.Lake) -> None:
    """The end of a pipeline's run: two tables and how far it has read one of them."""
    with lake.runs.begin("p") as active:
        read = active.look(["a.left", "a.right"])["a.left"]
        active.transaction.table("a.right").append(rows(60))
        active.transaction.create_table("b.made", rows(61))
        cursor = Cursor("b.made", "changes:a.left", read.id, read.version)
        ended = RunAttachment(active.id, "p", RunReport(), (cursor,))
        active.finish(ended, changed=True)


def create(lake: lakebed.Lake) -> None:
    lake.create_table("b.new", rows(40, 41))


def start_delta(lake: lakebed.Lake) -> None:
    lake.table("c.iceberg").set_formats("delta,iceberg")


def start_iceberg(lake: lakebed.Lake) -> None:
    lake.table("c.delta").set_formats("delta,iceberg")


def checkpoint(lake: lakebed.Lake) -> None:
    lake.table("c.often").append(rows(1))
    lake.close()  # checkpoints come after the answer


def index(lake: lakebed.Lake) -> None:
    FileIndex(lake._parts.planner._store, width=1).extend(lake.table("a.left").id)


def restore(lake: lakebed.Lake) -> None:
    lake.table("a.left").restore(version=0)


def drop(lake: lakebed.Lake) -> None:
    lake.drop_table("a.right", purge=True)


def publish(lake: lakebed.Lake) -> None:
    lake.publish()


ACTIONS: dict[str, Callable[[lakebed.Lake], None]] = {
    action.__name__: action
    for action in (
        append,
        follow,
        overwrite,
        delete,
        changes,
        refs,
        branch,
        forward,
        restore,
        rewrite,
        transaction,
        pipeline_run,
        create,
        start_delta,
        start_iceberg,
        checkpoint,
        index,
        drop,
        publish,
    )
}


def run(request: Request, ack: Ack) -> None:
    job = request["job"]
    if job == "open":
        crash._AT = request["crash_at"]
        open_lake(request, create=True)
    elif job == "upgrade":
        known = migrate.known_migrations()
        migrate.known_migrations = lambda: (*known, NEXT)  # type: ignore[assignment]
        crash._AT = request["crash_at"]
        if crash._AT == "in the migration":
            die_in_migration()
        open_lake(request)
    else:
        lake = open_lake(request) if job == "publish" else set_up(request)
        prepare(lake, job)
        crash._AT = request["crash_at"]
        ACTIONS[job](lake)
    ack(job)
    crash._AT = ""


def prepare(lake: lakebed.Lake, job: str) -> None:
    if job == "start_delta":
        lake.create_table("c.iceberg", SCHEMA, formats="iceberg").append(rows(0))
    elif job == "start_iceberg":
        lake.create_table("c.delta", SCHEMA, formats="delta").append(rows(0))
    elif job == "delete":
        words = [f"w{i % 2}" for i in range(BIG)]
        lake.create_table("c.big", pa.table({"id": range(BIG), "word": words}))
    elif job == "changes":
        feed = {"delta.enableChangeDataFeed": "true"}
        lake.create_table("c.told", SCHEMA, properties=feed).append(rows(0, 1, 2))
    elif job in ("branch", "forward"):
        refs(lake)
        if job == "forward":
            branch(lake)
    elif job == "checkpoint":
        often = {"publish.delta.checkpoint-interval": "1"}
        lake.create_table("c.often", SCHEMA, properties=often)


def die_in_migration() -> None:
    """SQLite takes schema changes back like rows: half a migration must leave no trace."""
    real = lakebed.meta.store.Tx.run

    def run_and_die(self: lakebed.meta.store.Tx, sql: str, *more: object) -> int:
        count = real(self, sql, *more)  # type: ignore[arg-type]
        if "later (" in sql:
            os.kill(os.getpid(), signal.SIGKILL)
        return count

    lakebed.meta.store.Tx.run = run_and_die  # type: ignore[assignment, method-assign]


def fork(request: Request) -> dict[str, object]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            run(request, lambda text: os.write(write, text.encode()))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        acknowledged = pipe.read().decode()
    return {"code": os.waitstatus_to_exitcode(status), "acknowledged": acknowledged}


if __name__ == "__main__":
    Path(sys.argv[1]).touch()  # imported: ready to fork
    for line in sys.stdin:
        sys.stdout.write(json.dumps(fork(json.loads(line))) + "\n")
        sys.stdout.flush()
