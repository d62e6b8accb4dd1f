"""Which reader `sp.table` takes by itself; both give the same rows."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakebed.api.lake import Lake


def is_connector(frame: DataFrame) -> bool:
    return "RelationV2" in frame._jdf.queryExecution().optimizedPlan().toString()


def test_sparks_own_reader_is_taken_for_few_whole_files_without_a_layout(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sp = lake.spark(spark)
    plain = lake.create_table("s.plain", "id long")
    lake.create_table("s.laid", "id long", partition_by=["bucket(2, id)"])
    lake.create_table("s.sorted", "id long", sort_by=["id"])
    for name in ("s.plain", "s.laid", "s.sorted"):
        lake.table(name).append([{"id": n} for n in range(10)])

    assert not is_connector(sp.table("s.plain"))
    assert is_connector(sp.table("s.laid"))
    assert is_connector(sp.table("s.sorted"))
    with monkeypatch.context() as patch:
        patch.setattr("lakebed.api.spark_tables._FEW_FILES", 0)
        assert is_connector(sp.table("s.plain"))

    plain.delete("id = 3")
    assert plain.scan().plan().deleted
    assert is_connector(sp.table("s.plain"))
    assert sp.table("s.plain").where("id < 5").count() == 4
