"""Spark's own Parquet reader: columns about rows, lost files, sessions without the connector."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakebed
from lakebed import Lake, Table
from lakebed.core.plan import Plan
from lakebed.engines.arrow.metadata import METADATA
from lakebed.engines.arrow.read import read as read_by_arrow
from lakebed.engines.arrow.read import read_schema
from lakebed.engines.spark.read import read
from lakebed.model.errors import ObjectMissing
from lakebed.storage.base import Storage
from tests.lean import lean_environment
from tests.spark.same import assert_same

EVERYTHING = tuple(METADATA)
Prepare = Callable[[Table], object]


def both(spark: SparkSession, table: Table, metadata: tuple[str, ...], **scan: Any) -> None:
    """What Spark gives for a plan is what Arrow gives."""

    def compare(plan: Plan, storage: Storage, _: object) -> None:
        batches = list(read_by_arrow(plan, storage, metadata=metadata))
        expected = pa.Table.from_batches(batches, read_schema(plan, metadata))
        assert_same(read(spark, plan, storage, metadata=metadata), expected)

    table.scan(**scan).read_by(compare)


def test_columns_about_rows_are_those_of_the_arrow_reader(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long, v string", formats="iceberg")
    table.append([{"id": n, "v": "x"} for n in range(20)])
    table.append([{"id": 100 + n, "v": "y"} for n in range(5)])
    both(spark, table, EVERYTHING)

    table.delete("id % 4 = 1")
    table.update({"v": "'z'"}, "id = 2")
    table.alter().add_column("n", "int", default=3).commit()
    table.append([{"id": 200, "v": "w", "n": 4}])

    both(spark, table, EVERYTHING)
    both(spark, table, ("_pos", "_file"), columns=["v"], where="id > 10 AND n = 3")
    both(spark, table, ("_row_id",), columns=[])
    both(spark, table, EVERYTHING, where="id = -1")


def test_a_lost_file_is_told_before_anything_is_read(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long")
    table.append([{"id": 1}])
    (Path(table.location) / table.files()[0].path).unlink()

    with pytest.raises(ObjectMissing, match="missing"):
        lake.spark(spark).table("s.t", reader="parquet")


WITHOUT = """
import sys
from pathlib import Path

import lakebed
from lakebed.engines.spark.session import SessionOptions, has_iceberg, start_session
from lakebed.model.errors import SparkError

lake = lakebed.open(sys.argv[1])
sp = lake.spark(master="local[2]", memory="1g", connectors=False)
assert not has_iceberg(sp.session)
table = lake.table("s.t")
assert sp.table("s.t").count() == 6
for entry in table.files():
    if entry.partition["p"] == "b":
        (Path(table.location) / entry.path).unlink()
assert sp.table("s.t", where="p = 'a'").count() == 3
for attempt in (lambda: sp.table("s.t", reader="iceberg"), lambda: lake.spark(connectors=True)):
    try:
        attempt()
        raise AssertionError("it must refuse")
    except SparkError as error:
        assert "lakebed spark jars" in error.hint or "lake.spark(connectors=True)" in error.hint
print("same")
sp.session.stop()
"""


def test_without_the_connector_conditions_of_the_read_leave_files_out(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("s.t", "id long, p string", partition_by=["p"])
        table.append([{"id": n, "p": p} for n, p in enumerate("aaabbb")])

    run = [sys.executable, "-c", WITHOUT, str(tmp_path / "lake")]
    answer = subprocess.run(
        run,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=lean_environment(connectors=False),
    )

    assert answer.stdout == "same\n", answer.stderr[-3000:]
