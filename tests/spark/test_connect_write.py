"""Spark Connect: the same writes through a client that has no JVM."""

import subprocess
import sys
from pathlib import Path

import lakebed

PROGRAM = """
import sys
from pyspark.sql import SparkSession

import lakebed
from lakebed.engines.spark.session import is_connect
from lakebed.model.errors import InvalidExpression, SchemaMismatch

session = (
    SparkSession.builder.remote(sys.argv[2])
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
assert is_connect(session)
lake = lakebed.open(sys.argv[1])
sp = lake.spark(session)
for name in ("s.plain", "s.parts"):
    rows = session.range(20).selectExpr("id", "if(id = 3, double('nan'), id / 2) AS x")
    sp.append(rows, name)
    sp.delete(name, "id % 10 = 1")
    sp.update(name, {"x": "x + 1"}, "id < 5")
    merge = sp.merge(name, rows.where("id >= 11"), "t.id = s.id").when_matched_update({"x": "-1"})
    merge.when_not_matched_insert_all().execute()
    sp.sql(f"DELETE FROM {name} WHERE id = 0")
    for refused, kind in (
        (lambda: sp.append(rows.selectExpr("CAST(NULL AS BIGINT) AS id"), name), SchemaMismatch),
        (lambda: sp.delete(name, "nothing = 1"), InvalidExpression),
    ):
        try:
            refused()
        except kind:
            continue
        raise AssertionError(name)
print("written")
session.stop()
"""


def test_every_change_works_through_spark_connect(tmp_path: Path, connect_server: str) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        lake.create_table("s.plain", "id long not null, x double")
        lake.create_table("s.parts", "id long not null, x double", partition_by=["bucket(2, id)"])
        answer = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "lake"), connect_server],
            capture_output=True,
            text=True,
            check=False,
        )

        assert "written" in answer.stdout, answer.stderr[-2000:]
        for name in ("s.plain", "s.parts"):
            found = {row["id"]: row["x"] for row in lake.table(name).to_arrow().to_pylist()}
            assert sorted(found) == [*range(2, 11), *range(11, 20)]
            assert found[2] == 2.0
            assert found[10] == 5.0
            assert {found[n] for n in range(12, 20)} == {-1.0}
            assert found[11] == 5.5  # deleted, and inserted again
        assert not lake.check().findings
