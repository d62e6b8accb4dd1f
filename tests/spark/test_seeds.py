"""Points of the documents that need a Spark session; the others are in tests/seeds."""

from pathlib import Path

from pyspark.sql import SparkSession

from lakebed.api.lake import Lake
from tests.spark.shop import rows


def test_st_34_spark_writes_reads_and_travels_through_its_data_source(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    place = {"lake": str(tmp_path / "lake"), "path": "s.numbers"}
    for begin in (0, 3):
        spark.range(begin, begin + 3).write.format("lakebed").mode("append").options(**place).save()

    whole = spark.read.format("lakebed").options(**place).load()
    first = spark.read.format("lakebed").options(**place).option("version", "0").load()

    assert sorted(row.id for row in whole.collect()) == [0, 1, 2, 3, 4, 5]
    assert sorted(row.id for row in first.collect()) == [0, 1, 2]
    travelled = lake.spark(spark).sql("SELECT count(*) AS n FROM s.numbers VERSION AS OF 0")
    assert [row.n for row in travelled.collect()] == [3]


def test_pl_80_spark_and_lakebed_read_what_the_other_wrote(lake: Lake, spark: SparkSession) -> None:
    sp = lake.spark(spark)
    table = lake.create_table("s.people", "id long not null, name string", primary_key=["id"])

    def by_delta() -> list[tuple[int, str]]:
        return sorted(
            tuple(row) for row in spark.read.format("delta").load(table.location).collect()
        )

    sp.append(spark.createDataFrame([(1, "Ada"), (2, "Bob")], "id long, name string"), "s.people")
    assert rows(lake, "s.people") == [(1, "Ada"), (2, "Bob")] == by_delta()
    table.append([{"id": 3, "name": "Cy"}])
    assert by_delta() == [(1, "Ada"), (2, "Bob"), (3, "Cy")]
    table.delete("id = 1")
    newer = spark.createDataFrame([(2, "Bea"), (4, "Di")], "id long, name string")
    sp.merge(
        "s.people", newer, "t.id = s.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    wanted = [(2, "Bea"), (3, "Cy"), (4, "Di")]
    assert rows(lake, "s.people") == wanted == by_delta()
