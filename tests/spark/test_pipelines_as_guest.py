"""Spark Declarative Pipelines, with a table of the lake as their sink."""

import subprocess
import sys
from pathlib import Path

import pytest

from lakebed.api.lake import Lake
from lakebed.engines.spark.java import find_java
from tests.lean import lean_environment
from tests.spark.shop import rows

SPECIFICATION = """
name: guest
storage: file://{folder}/storage
libraries:
  - glob:
      include: transformations/**
"""
FLOWS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

dp.create_sink("orders", "lakebed", {{"lake": "{folder}/lake", "path": "silver.orders"}})

@dp.append_flow(target="orders")
def orders():
    spark = SparkSession.active()
    return spark.readStream.schema("id long, name string").csv("file://{folder}/in")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {
        "spark-pipeline.yml": SPECIFICATION.format(folder=tmp_path),
        "transformations/flows.py": FLOWS.format(folder=tmp_path),
        "in/1.csv": "1,a\n2,b\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_declarative_pipeline_writes_to_a_table_of_the_lake(project: Path, lake: Lake) -> None:
    lake.create_table("silver.orders", "id long, name string")

    ended = subprocess.run(
        [Path(sys.executable).with_name("spark-pipelines"), "run"],
        cwd=project,
        env={
            **lean_environment(connectors=False),
            "JAVA_HOME": str(find_java().home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_TESTING": "1",  # any port
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert rows(lake, "silver.orders") == [(1, "a"), (2, "b")]
    assert lake.table("silver.orders").history()[0].operation == "append"
