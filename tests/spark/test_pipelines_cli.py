"""Pipelines from the command line on Spark: a project that works, failures, interruption, kill."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lakebed
from lakebed.model.errors import PipelineInvalid
from lakebed.pipelines import Pipeline, changes, current, run_pipeline
from lakebed.pipelines.loading import load_pipeline
from lakebed.pipelines.template import write_project
from tests.lean import lean_environment

# Stops where the test says, when a file tells it to.
SLOW = """
import pathlib, sys, time
from lakebed.pipelines import Pipeline, changes, current
p = Pipeline("slow")
here = pathlib.Path(__file__).parent

@p.step("b.out", key="id")
def out(raw=changes("a.in")):
    return raw.drop("op")

@p.step("c.out", mode="replace")
def last(out=current("b.out")):
    out.collect()
    (here / "reached").touch()
    while (here / "wait").exists():
        time.sleep(0.05)
    return out
"""


def command(
    folder: Path, *arguments: str, stdout: IO[str] | int = subprocess.PIPE, **environment: str
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "lakebed", "-l", str(folder / "lake"), *arguments],
        cwd=folder,
        env={**lean_environment(), **environment},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW)
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        lake.create_table("a.in", "id long not null", primary_key=["id"])
        lake.table("a.in").append([{"id": 1}, {"id": 2}])
    return tmp_path


def wait_for_rows(told: Path, process: "subprocess.Popen[str]") -> None:
    """Until an event says that the step c.out has read both rows."""
    for _ in range(2400):
        for line in told.read_text().splitlines(keepends=True):
            event = json.loads(line) if line.endswith("\n") else {}
            of_step = event.get("event") == "progressed" and event["table"] == "c.out"
            if of_step and event["rows_read"] > 0:  # a busy machine may tell before there are any
                assert (event["rows_read"], event["bytes_read"] > 0) == (2, True)
                return
        if process.poll() is not None:
            raise AssertionError(process.communicate())
        time.sleep(0.05)
    raise AssertionError(told.read_text())


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    for _ in range(2400):
        if path.exists():
            return
        if process.poll() is not None:
            raise AssertionError(process.communicate())
        time.sleep(0.05)
    raise AssertionError(f"{path} was not reached")


def test_a_new_project_runs_and_its_test_passes(tmp_path: Path) -> None:
    write_project("shop", tmp_path / "shop")
    lakebed.init(tmp_path / "lake").close()

    run = command(tmp_path, "run", "shop/shop.py", "--master", "local[2]", "--json")
    out, err = run.communicate(timeout=300)

    assert run.returncode == 0, err
    ended = json.loads(out.splitlines()[-1])
    assert (ended["event"], ended["status"]) == ("run_ended", "succeeded")
    assert set(ended["written"]) == {
        "bronze.orders",
        "silver.orders",
        "silver.orders_rejected",
        "gold.daily",
    }
    (raw,) = [step for step in ended["steps"] if step["table"] == "bronze.orders"]
    assert (raw["work"]["rows_read"], raw["work"]["rows_written"]) >= (raw["rows"], raw["rows"])
    assert min(raw["work"]["bytes_read"], raw["work"]["bytes_written"]) > 0
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"],
        cwd=tmp_path / "shop",
        env=lean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_a_run_that_is_stopped_changes_nothing_and_the_next_one_works(
    project: Path, spark: SparkSession, how: str
) -> None:
    (project / "wait").touch()
    told = project / "told"
    with told.open("w") as stdout:
        run = command(project, "run", "slow.py", "--master", "local[1]", "--json", stdout=stdout)
    wait_for(project / "reached", run)
    wait_for_rows(told, run)
    with lakebed.open(project / "lake") as lake:
        (under_way,) = lake.runs.list()
        assert under_way.status == "running"

        if how == "interrupted":
            os.kill(run.pid, signal.SIGINT)
            (project / "wait").unlink()
            _, err = run.communicate(timeout=120)
            assert (run.returncode, "interrupted" in err) == (130, True), err
        else:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate(timeout=120)
            (project / "wait").unlink()

        assert lake.tables() == ["a.in"]
        load_pipeline(project / "slow.py").run(lake, session=spark)
        assert lake.tables() == ["a.in", "b.out", "c.out"]
        expected = "interrupted" if how == "interrupted" else "lost"
        assert [r.status for r in lake.runs.list()] == ["succeeded", expected]
        assert lake.check().clean
        assert not list((project / "lake" / "warehouse" / ".lakebed").rglob("*.parquet"))


@pytest.mark.parametrize("point", ["run_before_commit", "commit_after_rows", "commit_after_sql"])
def test_a_crash_at_the_commit_leaves_all_or_nothing(
    project: Path, spark: SparkSession, point: str
) -> None:
    run = command(project, "run", "slow.py", "--master", "local[1]", LAKEBED_CRASH_AT=point)
    run.communicate(timeout=300)
    assert run.returncode == -signal.SIGKILL

    with lakebed.open(project / "lake") as lake:
        there = ["a.in", "b.out", "c.out"] if point == "commit_after_sql" else ["a.in"]
        assert lake.tables() == there
        again = load_pipeline(project / "slow.py").run(lake, session=spark)
        assert again.status == ("unchanged" if point == "commit_after_sql" else "succeeded")
        assert sorted(lake.table("c.out").to_arrow()["id"].to_pylist()) == [1, 2]
        assert lake.check().clean


def test_a_wrong_master_is_one_message(project: Path) -> None:
    run = command(project, "run", "slow.py", "--master", "nonsense")
    _, err = run.communicate(timeout=300)

    assert run.returncode == 1
    assert "error: " in err
    assert "Traceback" not in err


@pytest.mark.parametrize("kind", ["spark", "sc"])
def test_a_cluster_that_is_not_there_is_one_message_and_the_next_run_works(
    project: Path, spark: SparkSession, kind: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        master = f"{kind}://127.0.0.1:{nobody.getsockname()[1]}"
    run = command(project, "run", "slow.py", "--no-check", "--master", master)
    _, err = run.communicate(timeout=300)

    assert run.returncode == 1
    (message,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert message.startswith(f"error: step b.out (slow.py:7): no Spark answers at {master}: ")
    with lakebed.open(project / "lake") as lake:
        assert lake.tables() == ["a.in"]
        assert load_pipeline(project / "slow.py").run(lake, session=spark).status == "succeeded"


LARGE = """
from lakebed.pipelines import Pipeline
p = Pipeline("large")

@p.step("b.large", key="id")
def large(spark, *, size: int):
    return spark.range(1).selectExpr("id", f"size(array_repeat(id, {size})) AS n")
"""


def test_a_spark_without_memory_is_one_message_and_the_next_run_works(
    project: Path, spark: SparkSession
) -> None:
    (project / "large.py").write_text(LARGE)
    huge = "--param=size=400000000"  # refused by Java at once: the memory is not touched
    run = command(project, "run", "large.py", "--master", "local[1]", "--memory", "512m", huge)
    _, err = run.communicate(timeout=300)

    assert run.returncode == 1
    (message,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert message.startswith("error: step b.large (large.py:5): Spark ")
    assert "memory" in message
    assert "Traceback" not in err
    assert "\tat " not in err, "no page of Java"
    with lakebed.open(project / "lake") as lake:
        assert lake.tables() == ["a.in"]
        load_pipeline(project / "large.py").run(lake, session=spark, params={"size": "3"})
        assert lake.table("b.large").to_arrow().to_pylist() == [{"id": 0, "n": 3}]


def test_a_pipeline_is_tested_in_one_line(spark: SparkSession) -> None:
    p = Pipeline("p")

    @p.step("b.mid", key="id")
    def mid(raw: DataFrame = changes("a.in")) -> DataFrame:
        return raw.drop("op")

    @p.step("c.out", mode="replace")
    def out(mid: DataFrame = current("b.mid")) -> DataFrame:
        return mid.where("id > 1")

    result = run_pipeline(p, {"a.in": pa.table({"id": [1, 2]})}, session=spark)
    given = run_pipeline(p, {"b.mid": [{"id": 5}]}, session=spark)

    assert result["c.out"] == [{"id": 2}]
    assert set(result) == {"a.in", "b.mid", "c.out"}
    assert [step.table for step in given.run.report.steps] == ["c.out"]
    assert given["c.out"] == [{"id": 5}]
    with pytest.raises(PipelineInvalid, match=r"no step reads a\.other"):
        run_pipeline(p, {"a.other": [{"id": 1}]}, session=spark)
