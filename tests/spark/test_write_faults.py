"""What goes wrong while Spark writes: nothing is visible, and at worst orphans stay behind."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakebed
from lakebed.api.lake import Lake
from lakebed.api.spark import Spark
from lakebed.model.errors import LakebedError
from tests.lean import lean_environment

SCHEMA = "id long, n long"
LAYOUTS: dict[str, dict[str, Any]] = {
    "native": {},
    "parted": {"partition_by": ["bucket(2, id)"]},
    # Spark's own writer does not know how much to compress with this one.
    "workers": {"properties": {"write.parquet.compression-codec": "lz4"}},
}
_WAIT_S = 120.0


@pytest.fixture
def sp(lake: Lake, spark: SparkSession) -> Spark:
    return lake.spark(spark)


def failing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if 9_000 in batch.column("id").to_pylist():
            raise ValueError("row 9000 cannot be had")
        yield batch


def slow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        time.sleep(0.05)


def many(session: SparkSession, rows: int = 10_000) -> DataFrame:
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    return session.range(rows).select("id", F.col("id").alias("n"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_task_that_raises_commits_nothing(layout: str, lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", SCHEMA, **LAYOUTS[layout])
    table.append([{"id": 1, "n": 1}])

    with pytest.raises(LakebedError, match="row 9000 cannot be had"):
        sp.append(many(sp.session).mapInArrow(failing, SCHEMA), "a.t")
    source = many(sp.session).mapInArrow(failing, SCHEMA)
    merge = sp.merge("a.t", source, "t.id = s.id").when_matched_update_all()
    with pytest.raises(LakebedError, match="row 9000 cannot be had"):
        merge.execute()

    assert (table.version, table.row_count) == (1, 1)
    assert not lake.check().findings
    assert len(list(Path(table.location, "data").rglob("*.parquet"))) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_job_that_is_cancelled_commits_nothing(layout: str, lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", SCHEMA, **LAYOUTS[layout])
    context = sp.session.sparkContext
    failures: list[BaseException] = []

    def append() -> None:
        try:
            sp.append(many(sp.session, 100_000).mapInArrow(slow, SCHEMA), "a.t")
        except LakebedError as error:
            failures.append(error)

    running = Thread(target=append)
    running.start()
    tracker, until = context.statusTracker(), time.monotonic() + _WAIT_S
    while not tracker.getActiveJobsIds() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.5)
    context.cancelAllJobs()
    running.join()

    assert [error for error in failures if "cancelled" in str(error)]
    assert table.version == 0
    assert not lake.check().findings


SCRIPT = """
import sys, time
from pathlib import Path
import lakebed
from tests.spark import test_write_faults as faults

lake = lakebed.open(sys.argv[1])
sp = lake.spark(master=sys.argv[2], memory="512m", connectors=False, config={
    "spark.sql.shuffle.partitions": "2",
    "spark.local.dir": sys.argv[3],
})
getattr(faults, sys.argv[4])(sp, sys.argv[3])
"""


def run(lake: Lake, folder: Path, master: str, what: str) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[2]
    arguments = [str(lake.uri), master, str(folder), what]
    environment = {**lean_environment(connectors=False), "PYTHONPATH": str(root)}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *arguments], cwd=root, env=environment)


def append_slowly(sp: Spark, _: str) -> None:
    frame = many(sp.session, 10_000_000).mapInArrow(slow, SCHEMA)
    sp.append(frame, "a.t")


def test_a_driver_that_is_killed_leaves_orphans_only(lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("a.t", SCHEMA)
    table.append([{"id": 1, "n": 1}])
    data = Path(table.location, "data")

    process = run(lake, tmp_path, "local[2]", "append_slowly")
    until = time.monotonic() + _WAIT_S
    while len(list(data.rglob("*.parquet"))) < 2 and time.monotonic() < until:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()

    assert len(list(data.rglob("*.parquet"))) > 1
    assert (table.version, table.row_count) == (1, 1)
    assert not lake.check().findings
    table.append([{"id": 2, "n": 2}])
    assert table.row_count == 2


def fails_once(folder: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches):
        yield batch
        mark = Path(folder) / "failed"
        if number == 5 and not mark.exists():
            mark.touch()
            raise ValueError("the first attempt")


def append_again(sp: Spark, folder: str) -> None:
    for name in ("a.native", "a.parted", "a.workers"):
        (Path(folder) / "failed").unlink(missing_ok=True)
        frame = many(sp.session).mapInArrow(lambda b: fails_once(folder, b), SCHEMA)
        sp.append(frame, name)
        assert (Path(folder) / "failed").exists()


def test_tasks_that_are_tried_again_double_no_row(lake: Lake, tmp_path: Path) -> None:
    tables = [
        lake.create_table(f"a.{name}", SCHEMA, **options) for name, options in LAYOUTS.items()
    ]

    process = run(lake, tmp_path, "local[2,3]", "append_again")

    assert process.wait(timeout=_WAIT_S) == 0
    for table in tables:
        ids = table.to_arrow().column("id").to_pylist()
        assert sorted(ids) == list(range(10_000))
    assert not lake.check().findings


def test_files_of_attempts_that_come_too_late_do_not_count(lake: Lake, sp: Spark) -> None:
    sp.session.conf.set("spark.sql.adaptive.enabled", "false")  # one stage makes and writes rows
    data = Path(lake.create_table("a.t", SCHEMA).location, "data")

    def late(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        (folder,) = data.iterdir()
        (folder / "attempt").mkdir()
        pq.write_table(pa.table({"id": [7], "n": [7]}), folder / "attempt" / "part-0.parquet")

    sp.append(many(sp.session, 10).coalesce(1).mapInArrow(late, SCHEMA), "a.t")

    assert len(list(data.rglob("*.parquet"))) == 2
    assert sorted(lake.table("a.t").to_arrow().column("id").to_pylist()) == list(range(10))
    assert lake.check().clean


def test_a_merge_that_meets_another_change_is_made_again(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", SCHEMA)
    table.append([{"id": n, "n": 0} for n in range(5)])
    uri = str(lake.uri)

    def meanwhile(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with lakebed.open(uri) as other:
            if other.table("a.t").version == 1:
                other.table("a.t").update({"n": "7"}, "id = 1")
        yield from batches

    source = many(sp.session, 2).coalesce(1).mapInArrow(meanwhile, SCHEMA)
    merge = sp.merge("a.t", source, "t.id = s.id").when_matched_update({"n": "t.n + s.id + 1"})
    commit = merge.execute()

    assert commit is not None
    assert commit.version == 3
    assert sorted(row["n"] for row in table.to_arrow().to_pylist()) == [0, 0, 0, 1, 9]
