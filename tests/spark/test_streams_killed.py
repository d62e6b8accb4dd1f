"""Killed at any step, streams and writes neither lose nor double a row."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakebed
from lakebed.api.lake import Lake
from tests.lean import lean_environment
from tests.spark import crashing

ROWS = 3  # each is a batch; processes start for every one


@pytest.fixture
def crashes(spark_session: SparkSession) -> SparkSession:
    """Spark looks for a source in the active session, which earlier tests have left behind."""
    # Workers do not have the tests.
    cloudpickle.register_pickle_by_value(crashing)  # type: ignore[no-untyped-call]
    spark_session.createDataFrame([], "id long")  # makes it the active one
    spark_session.dataSource.register(crashing.CrashingSource)
    return spark_session


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_batch_that_is_killed_at_every_step_is_written_once(
    crashes: SparkSession, lake: Lake, tmp_path: Path, mode: str
) -> None:
    source = lake.create_table("s.src", pa.table({"id": [1, 2], "v": ["a", "b"]}))
    table = lake.create_table("s.out", "id long, v string", primary_key=["id"])
    options = {
        "lake": lake.uri,
        "mode": mode,
        "note": str(tmp_path / "note"),
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }

    def run(step: str) -> None:
        frame = crashes.readStream.format("lakebed").option("lake", lake.uri).load("s.src")
        writer = frame.writeStream.format("crashing").options(**options, crashAt=step)
        writer.trigger(availableNow=True).start("s.out").awaitTermination()

    for number, step in enumerate(crashing.STEPS):
        with pytest.raises(PySparkException):
            run(step)
        assert (tmp_path / f"note-{step}").exists()
        assert table.row_count == (2 if step == "after_commit" else 0)
        source.append([{"id": 10 + number, "v": "later"}])
    run("never")  # Spark repeats what it had begun, and no more in one run
    run("never")

    expected = [1, 2, *(10 + number for number in range(len(crashing.STEPS)))]
    assert sorted(table.to_arrow()["id"].to_pylist()) == expected
    assert table.row_count == len(expected)
    assert lake.check().clean


def test_a_write_that_is_killed_is_there_whole_or_not_at_all(
    crashes: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    frame = crashes.range(100, numPartitions=2)
    writer = frame.write.format("crashing").mode("append")

    for step in crashing.STEPS:
        with pytest.raises((PySparkException, Py4JJavaError)):
            writer.options(lake=lake.uri, crashAt=step, note=str(tmp_path / "note")).save("s.t")
        assert (tmp_path / f"note-{step}").exists()
        assert lake.has_table("s.t") == (step == "after_commit")

    assert sorted(lake.table("s.t").to_arrow()["id"].to_pylist()) == list(range(100))
    assert lake.check().clean


_QUERY = """
import sys
from lakebed.engines.spark.session import SessionOptions, start_session
from tests.spark.conftest import LEAN
uri, checkpoint = sys.argv[1:]
options = SessionOptions(master="local[2]", memory="512m", connectors=False, config=LEAN)
spark = start_session(options)
frame = (
    spark.readStream.format("lakebed").option("lake", uri).option("startingVersion", 0)
    .option("maxVersionsPerTrigger", 1).load("s.src")
)
query = (
    frame.writeStream.format("lakebed").option("lake", uri).option("checkpointLocation", checkpoint)
    .start("s.out")
)
query.processAllAvailable()
query.stop()
spark.stop()
"""


@pytest.mark.slow
def test_a_query_whose_processes_are_all_killed_goes_on_where_it_was(
    lake: Lake, tmp_path: Path
) -> None:
    source = lake.create_table("s.src", [{"id": 0}])
    for number in range(1, ROWS):
        source.append([{"id": number}])
    out = lake.create_table("s.out", "id long")
    arguments = [sys.executable, "-c", _QUERY, lake.uri, str(tmp_path / "checkpoint")]

    root, lean = Path(__file__).parents[2], lean_environment(connectors=False)
    query = subprocess.Popen(arguments, start_new_session=True, cwd=root, env=lean)
    seen = _progress(out, query)
    time.sleep(random.Random(7).uniform(0, 0.5))  # at any moment of a batch, and before the last
    os.killpg(query.pid, signal.SIGKILL)
    query.wait()
    assert seen <= out.version
    subprocess.run(arguments, check=True, cwd=root, env=lean, timeout=240)

    assert sorted(out.to_arrow()["id"].to_pylist()) == list(range(ROWS))
    assert [c.operation for c in out.history()].count("append") == ROWS


def _progress(table: lakebed.Table, query: "subprocess.Popen[bytes]") -> int:
    """Wait until the query has committed something; the version by then."""
    begun, until = table.version, time.monotonic() + 180
    while table.version < begun + 1 and query.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert table.version > begun, "the query did not get going"
    return table.version
