"""A Spark Connect server, as a team has one: pipelines run there from the command line."""

import subprocess
import sys
from pathlib import Path

import lakebed

SHOP = """
from lakebed.pipelines import Pipeline, changes, current, expect

p = Pipeline("shop")

@p.step("b.orders", key="id", partition_by=["day"])
@expect.drop("cents >= 0", quarantine="b.bad")
def orders(raw=changes("a.orders")):
    return raw.drop("op")

@p.step("c.zone", mode="replace")
def zone(orders=current("b.orders")):
    return orders.selectExpr("count(*) AS n", "current_timezone() AS zone")
"""
CONNECTED = """
import sys
from pyspark.sql import SparkSession

import lakebed
from lakebed.engines.spark.session import is_connect
from tests.spark.test_pipelines_places import run_both

session = (
    SparkSession.builder.remote(sys.argv[2])
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
assert is_connect(session)
with lakebed.open(sys.argv[1], create=True) as lake:
    run_both(lake, session)
session.stop()
print("done")
"""


def test_the_command_line_runs_a_pipeline_on_a_connect_server(
    tmp_path: Path, connect_server: str
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        columns = "id long not null, day string, cents long"
        table = lake.create_table("a.orders", columns, primary_key=["id"])
        table.append([{"id": n, "day": "mon", "cents": n - 1} for n in range(3)])
        for cents in (1, 7):
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "lakebed", "-l", str(tmp_path / "lake")),
                    *("run", str(tmp_path / "shop.py"), "--master", connect_server),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            found = {
                row["id"]: row["cents"] for row in lake.table("b.orders").to_arrow().to_pylist()
            }
            assert found == {1: 0, 2: cents}
            table.update({"cents": "7"}, "id = 2")
        assert lake.table("b.bad").row_count == 1
        assert lake.table("c.zone").to_arrow().to_pylist() == [{"n": 2, "zone": "UTC"}]
        assert lake.check().clean


def test_a_pipeline_runs_through_spark_connect(tmp_path: Path, connect_server: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", CONNECTED, str(tmp_path / "lake"), connect_server],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert answer.stdout.strip().endswith("done"), answer.stderr
