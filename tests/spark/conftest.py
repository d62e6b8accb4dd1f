"""One Spark session per test run, on one worker; each test has its own lake and SQL settings."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import lakebed
from lakebed.api.lake import Lake
from lakebed.engines.spark.java import find_java
from lakebed.engines.spark.session import SessionOptions, start_session
from tests.lean import lean
from tests.spark.cluster import wait_until
from tests.spark.shop import add

# Small tables: what costs is starting, planning and the number of tasks.
LEAN = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
}


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """With the connectors; it is an error, never a skip, when they are not there."""
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):  # another Spark's
        os.environ.pop(name, None)
    folder = tmp_path_factory.mktemp("spark")
    config = {
        **LEAN,
        "spark.driver.extraJavaOptions": lean(),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "w"),
    }
    options = SessionOptions(master="local[2]", memory="1g", connectors=True, config=config)
    session = start_session(options)
    yield session
    session.stop()


@pytest.fixture
def spark(spark_session: SparkSession) -> SparkSession:
    """Settings and views of a test end with it; what it costs to start is paid once."""
    return spark_session.newSession()


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lakebed.open(tmp_path / "lake", create=True) as opened:
        yield opened


@pytest.fixture
def orders(lake: Lake) -> Lake:
    """What the pipelines of shop.py begin with."""
    lake.create_table(
        "bronze.orders",
        "id long not null, day string, amount double",
        primary_key=["id"],
    )
    add(lake, (1, "mon", 10.0), (2, "mon", 20.0), (3, "tue", 5.0))
    return lake


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A process of its own; its clients have no Java."""
    folder = tmp_path_factory.mktemp("connect")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": lean(connectors=False),
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "spark"),
        "spark.ui.enabled": "false",
    }
    home = Path(pyspark.__file__).parent
    own = {"SPARK_HOME": str(home), "JAVA_HOME": str(find_java().home)}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [
                *(str(home / "bin" / "spark-submit"), "--master", "local[2]"),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *(f"--conf={name}={value}" for name, value in settings.items()),
            ],
            env={**os.environ, **own, "PYSPARK_PYTHON": sys.executable},
            stdout=log,
            stderr=log,
            cwd=folder,
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
