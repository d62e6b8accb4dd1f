"""A Spark Connect server, as a team has one: pipelines run there from the command line."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

import lakebed
from lakebed.engines.spark.java import find_java
from tests.spark.cluster import LEAN, wait_until

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


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    """A process of its own; its clients have no Java."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": LEAN,
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path / "spark"),
        "spark.ui.enabled": "false",
    }
    home = Path(pyspark.__file__).parent
    own = {"SPARK_HOME": str(home), "JAVA_HOME": str(find_java().home)}
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [
                *(str(home / "bin" / "spark-submit"), "--master", "local[1]"),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *(f"--conf={name}={value}" for name, value in settings.items()),
            ],
            env={**os.environ, **own, "PYSPARK_PYTHON": sys.executable},
            stdout=log,
            stderr=log,
            cwd=tmp_path,
        )
    wait_until(lambda: server.poll() is None and is_open(port), "a Spark Connect server")
    yield f"sc://127.0.0.1:{port}"
    server.kill()
    server.wait()


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


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
