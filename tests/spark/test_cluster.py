"""Beyond one machine: a real cluster on loopback, and what happens when parts of it are lost."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

import lakebed
from lakebed.api.lake import Lake
from lakebed.pipelines.loading import load_pipeline
from tests.spark.cluster import WAIT_S, Cluster, parent_of, wait_until
from tests.spark.shop import rows

SHOP = """
import pathlib
import pricing
from pyspark.sql import functions as F
from lakebed.pipelines import Pipeline, changes, current, expect

p = Pipeline("shop")
here = str(pathlib.Path(__file__).parent)

@p.step("silver.orders", key="id", partition_by=["day"])
@expect.drop("cents >= 0", quarantine="silver.rejected")
def orders(raw=changes("bronze.orders")):
    rows = raw.drop("op").mapInArrow(pricing.priced(here), "id long, day string, cents long")
    return rows.selectExpr("*", "array(cents) AS history")  # lists are written by Python workers

@p.step("gold.daily", mode="replace")
@expect.fail("cents > 0")
def daily(orders=current("silver.orders")):
    return orders.groupBy("day").agg(F.sum("cents").alias("cents"), F.count("*").alias("n"))
"""
# Not installed anywhere: it travels with the step. Tasks tell of themselves, and wait when told to.
PRICING = """
import json, os, pathlib, sys, time

def priced(folder):
    def rows(batches):
        yield from batches
        here = pathlib.Path(folder)
        told = {
            "guarded": [type(f).__name__ for f in sys.meta_path].count("NoDatabase") == 1,
            "drivers": [m for m in sys.modules if m.startswith(("psycopg", "sqlite3"))],
            "environment": sorted(os.environ.items()),
        }
        partial = here / f"{os.getpid()}.partial"
        partial.write_text(json.dumps(told))
        partial.rename(here / f"{os.getpid()}.task")
        until = time.monotonic() + 300
        while (here / "hold").exists() and time.monotonic() < until:
            time.sleep(0.05)
    return rows
"""
FIRST = [(1, "mon", 100), (2, "mon", 200), (3, "tue", 300), (4, "tue", -1)]
SECOND = [(2, "mon", 250), (5, "wed", 500), (6, "wed", -2)]
SILVER = [(1, "mon", 100), (2, "mon", 250), (3, "tue", 300), (5, "wed", 500)]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(processes: Cluster) -> Cluster:
    """With all its workers, whatever another test has done to them."""
    processes.heal()
    return processes


@pytest.fixture
def lake(postgres_url: str, tmp_path: Path) -> Iterator[Lake]:
    """On PostgreSQL, with a folder that every process of the cluster reaches."""
    with lakebed.open(postgres_url, warehouse=str(tmp_path / "shared"), create=True) as opened:
        yield opened


@pytest.fixture
def shop(lake: Lake, tmp_path: Path, spark: SparkSession) -> Path:
    """A pipeline that ran once, on one machine, and has something to merge since."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP)
    (folder / "pricing.py").write_text(PRICING)
    table = lake.create_table(
        "bronze.orders", "id long not null, day string, cents long", primary_key=["id"]
    )
    table.append(named(FIRST))
    load_pipeline(folder / "shop.py").run(lake, session=spark)
    for task in folder.glob("*.task"):
        task.unlink()
    table.upsert(named(SECOND))
    return folder / "shop.py"


def named(orders: list[tuple[int, str, int]]) -> list[dict[str, object]]:
    return [dict(zip(("id", "day", "cents"), order, strict=True)) for order in orders]


def command(
    cluster: Cluster, lake: Lake, file: Path, *more: str, connectors: bool = False
) -> "subprocess.Popen[str]":
    """Without the connectors it starts sooner: an empty cache has no jars."""
    options = [f"--conf={name}={value}" for name, value in cluster.settings().items()]
    without = {} if connectors else {"XDG_CACHE_HOME": str(cluster.folder / "cache")}
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "lakebed", "-l", lake.uri, "run", str(file)),
            *("--master", cluster.url, "--memory", "512m", *options, *more),
        ],
        env=cluster.environment() | without,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def task_under_way(file: Path, driver: "subprocess.Popen[str]") -> int:
    """The Python process of a task that has given its rows, and waits."""

    def look() -> int | None:
        assert driver.poll() is None, driver.communicate()
        return next((int(path.stem) for path in file.parent.glob("*.task")), None)

    return wait_until(look, "a task that waits")


def assert_merged(lake: Lake) -> None:
    """Each row once: to us, and to readers that know nothing of us."""
    assert rows(lake, "silver.orders", "id", "day", "cents") == SILVER
    assert rows(lake, "gold.daily") == [("mon", 350, 2), ("tue", 300, 1), ("wed", 500, 1)]
    assert rows(lake, "silver.rejected", "id") == [(4,), (6,)]
    assert read_by_others(lake, "silver.orders") == [SILVER, SILVER]
    assert lake.check().clean


def read_by_others(lake: Lake, name: str) -> list[list[tuple[Any, ...]]]:
    lake.publish()
    location = lake.table(name).location
    delta = QueryBuilder().register("t", DeltaTable(location)).execute("SELECT * FROM t").read_all()
    iceberg = StaticTable.from_metadata(location).scan().to_arrow()
    return [
        sorted((row["id"], row["day"], row["cents"]) for row in pa.table(found).to_pylist())
        for found in (delta, iceberg)
    ]


def test_a_driver_that_is_killed_changes_nothing_and_the_next_run_needs_no_database_on_executors(
    cluster: Cluster, lake: Lake, shop: Path
) -> None:
    hold = shop.parent / "hold"
    hold.touch()
    before = {name: lake.table(name).version for name in lake.tables()}
    killed = command(cluster, lake, shop)
    task = task_under_way(shop, killed)
    assert parent_of(parent_of(task)) in cluster.executors()
    killed.kill()
    killed.communicate()
    hold.unlink()

    assert {name: lake.table(name).version for name in lake.tables()} == before
    assert lake.check().clean
    wait_until(lambda: not cluster.executors(), "executors that end with their driver")

    run = command(cluster, lake, shop, "--json", connectors=True)
    out, err = run.communicate(timeout=WAIT_S)

    assert run.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["status"] == "succeeded"
    assert [r.status for r in lake.runs.list()] == ["succeeded", "lost", "succeeded"]
    assert_merged(lake)
    secret = lake.uri.partition("schema=")[2]
    for file in shop.parent.glob("*.task"):
        told = json.loads(file.read_text())
        assert told["guarded"], "a database could not have been opened there"
        assert told["drivers"] == []
        assert not [v for v in told["environment"] if secret in v[1] or "postgres" in v[1]]


def test_a_run_survives_the_loss_of_a_worker(cluster: Cluster, lake: Lake, shop: Path) -> None:
    hold = shop.parent / "hold"
    hold.touch()
    run = command(cluster, lake, shop)
    cluster.kill_worker_of(task_under_way(shop, run))
    hold.unlink()
    _, err = run.communicate(timeout=WAIT_S)

    assert run.returncode == 0, err
    assert_merged(lake)


LARGE = """
from lakebed.pipelines import Pipeline

p = Pipeline("large")

@p.step("gold.large", mode="replace")
def large(spark, *, size: int):
    return spark.range(1).selectExpr("id", f"size(array_repeat(id, {size})) AS n")
"""
HUGE = 400_000_000  # more than the heap of an executor, which is not even touched


def test_an_executor_without_memory_is_one_message_and_the_next_run_works(
    cluster: Cluster, lake: Lake, tmp_path: Path, spark: SparkSession
) -> None:
    file = tmp_path / "large.py"
    file.write_text(LARGE)

    once = "--conf=spark.task.maxFailures=1"
    run = command(cluster, lake, file, f"--param=size={HUGE}", once)
    _, err = run.communicate(timeout=WAIT_S)

    assert run.returncode == 1, err
    (message,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert re.search(r"step gold\.large \(large\.py:\d+\): .*Spark ran out of memory", message)
    assert "spark.executor.memory" in err
    assert "\tat " not in err, "no page of Java"
    assert lake.tables() == []
    load_pipeline(file).run(lake, session=spark, params={"size": "3"})
    assert rows(lake, "gold.large") == [(0, 3)]
    assert lake.check().clean


ATTEMPTS = """
import json, os, pathlib, sys, time
from pyspark import TaskContext
import lakebed

url, master, folder, config = sys.argv[1:]
notes = pathlib.Path(folder)
lake = lakebed.open(url)
sp = lake.spark(master=master, memory="512m", connectors=False, config=json.loads(config))

def is_first(name):
    try:
        (notes / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def wait_for(name):
    until = time.monotonic() + 300
    while not (notes / name).exists() and time.monotonic() < until:
        time.sleep(0.05)

def meet(name):
    # What the first task that comes here meets; attempts are told apart by their notes.
    context = TaskContext.get()
    task = f"{name}-{context.stageId()}-{context.partitionId()}"
    (notes / f"{task}-{context.attemptNumber()}").touch()
    if not is_first(name):
        return
    if name.startswith("fails"):
        raise ValueError("the first attempt")
    if name.startswith("slow"):
        wait_for(f"{task}-1")
    if name == "kept":
        stat = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
        (notes / "keeper").write_text(stat.rpartition(")")[2].split()[1])  # the executor
    if name == "waits":
        (notes / f"{os.getpid()}.task").touch()
        wait_for("go")

def frame(name, first=0, rows=1000, parts=2):
    def given(batches):
        for number, batch in enumerate(batches):
            yield batch
            if number == 0:
                meet(name)
    made = sp.session.range(first, rows, numPartitions=parts).selectExpr("id", "id AS n")
    return made.mapInArrow(given, "id long, n long")

def met(name, value):
    meet(name)
    return value

def merge(table, source, update, insert):
    made = sp.merge(table, source, "t.id = s.id").when_matched_update({"n": update})
    made.when_not_matched_insert({"id": "s.id", "n": insert}).execute()

sp.session.udf.register("met", met, "long")
sp.append(frame("slow-append"), "a.plain")
sp.append(frame("slow-listed").selectExpr("*", "array(n) AS list"), "a.listed")
merge("a.plain", frame("slow-source", 990, 1010), "-1", "met('slow-insert', s.n)")
merge("a.listed", frame("fails-source", 990, 1010), "-1", "met('fails-insert', s.n)")
merge("a.plain", frame("kept", 1000, 1020, 1), "met('waits', -1L)", "s.n")
"""


def test_attempts_that_are_slow_or_fail_or_are_lost_double_no_row(
    cluster: Cluster, lake: Lake, tmp_path: Path
) -> None:
    lake.create_table("a.plain", "id long, n long")
    lake.create_table("a.listed", "id long, n long, list array<long>")
    notes = tmp_path / "notes"
    notes.mkdir()
    settings = cluster.settings() | {
        "spark.sql.adaptive.enabled": "false",  # rows are written by the tasks that make them
        "spark.locality.wait": "60s",  # where rows are kept, they are used
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.efficiency.enabled": "false",
    }
    driver = subprocess.Popen(
        [
            *(sys.executable, "-c", ATTEMPTS, lake.uri, cluster.url),
            *(str(notes), json.dumps(settings)),
        ],
        env=cluster.environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    task_under_way(notes / "any", driver)
    cluster.kill_worker_of(int((notes / "keeper").read_text()))
    (notes / "go").touch()
    _, err = driver.communicate(timeout=WAIT_S)

    assert driver.returncode == 0, err
    changed = {"a.plain": (990, 1010, 1020), "a.listed": (990, 1000, 1010)}
    for table, (first, last, end) in changed.items():
        expected = [(n, -1 if first <= n < last else n) for n in range(end)]
        assert rows(lake, table, "id", "n") == expected, table
    attempts = sorted(path.name for path in notes.iterdir())
    for place in ("append", "listed", "source", "insert"):
        assert [a for a in attempts if re.fullmatch(rf"slow-{place}-\d+-\d+-1", a)], attempts
    for place in ("source", "insert"):
        assert [a for a in attempts if re.fullmatch(rf"fails-{place}-\d+-\d+-1", a)], attempts
    stages = {a.split("-")[1] for a in attempts if a.startswith("kept-")}
    assert len(stages) == 2, "rows that were lost with their executor were computed anew"
    assert lake.check().clean
