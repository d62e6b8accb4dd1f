"""Spark Connect: the same reads through a client that has no JVM."""

import os
import subprocess
import sys
from pathlib import Path

import lakebed
from lakebed.engines.spark.session import ICEBERG_EXTENSION
from tests.lean import lean

PROGRAM = """
import sys
from pyspark.sql import SparkSession

import lakebed
from lakebed.engines.spark.jars import cached_jars
from lakebed.engines.spark.session import is_connect
from tests.spark.same import assert_same

jars = cached_jars() or []
session = (
    SparkSession.builder.remote("local[2]")
    .config("spark.jars", ",".join(map(str, jars)))
    .config("spark.sql.extensions", sys.argv[2])
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
assert is_connect(session)
lake = lakebed.open(sys.argv[1])
sp, table = lake.spark(session), lake.table("s.t")
for reader in ("iceberg", "parquet", "auto"):
    assert_same(sp.table("s.t", reader=reader), table.to_arrow())
    found = sp.table("s.t", where="w > 'x'", columns=["id"], reader=reader)
    assert_same(found, table.scan(where="w > 'x'", columns=["id"]).to_arrow())
assert sp.sql("SELECT count(*) AS n FROM s.t").collect()[0].n == table.row_count
plain = session.read.format("lakebed").option("lake", sys.argv[1]).load("s.t")
assert_same(plain, table.to_arrow())
plain.write.format("lakebed").option("lake", sys.argv[1]).mode("append").save("s.copy")
assert lake.table("s.copy").row_count == table.row_count
print("same")
session.stop()
"""


def test_a_connect_session_reads_alike(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("s.t", "id long, v string, f float")
        table.append([{"id": n, "v": "xyz"[n % 3], "f": n / 3} for n in range(50)])
        table.alter().rename_column("v", "w").commit()
        table.delete("id % 7 = 0")

    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "lake"), ICEBERG_EXTENSION],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={
            **os.environ,
            "JDK_JAVA_OPTIONS": lean(connectors=False),  # their jars go another way
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_TESTING": "1",  # any port
        },
    )

    assert answer.stdout == "same\n", answer.stderr[-3000:]
