"""`format("lakebed")` in any Spark: batches are read and written without anything registered."""

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakebed
from lakebed.api.lake import Lake


def reading(spark: SparkSession, opened: Lake, **options: object) -> DataFrame:
    given = {"lake": opened.uri, **{name: str(value) for name, value in options.items()}}
    return spark.read.format("lakebed").options(**given).load("s.t")


def rows_of(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


def numbers(lake: Lake, count: int = 5) -> lakebed.Table:
    return lake.create_table("s.t", pa.table({"id": list(range(count)), "v": ["x"] * count}))


def test_a_table_is_read_as_it_is_now(spark: SparkSession, lake: Lake) -> None:
    table = numbers(lake)
    frame = reading(spark, lake)
    first = frame.count()

    table.append([{"id": 5, "v": "y"}])
    table.delete("id < 2")

    assert first == 5
    assert rows_of(reading(spark, lake)) == [(2, "x"), (3, "x"), (4, "x"), (5, "y")]


def test_versions_times_tags_columns_and_conditions_choose_rows(
    spark: SparkSession, lake: Lake
) -> None:
    table = numbers(lake, 2)
    table.create_tag("begun")
    appended = table.append([{"id": 7, "v": "y"}])
    table.update({"v": "'z'"}, "id = 0")

    assert rows_of(reading(spark, lake, version=0)) == [(0, "x"), (1, "x")]
    assert rows_of(reading(spark, lake, ref="begun")) == [(0, "x"), (1, "x")]
    assert len(rows_of(reading(spark, lake, timestamp=appended.time_ms))) == 3
    assert rows_of(reading(spark, lake, columns="v", where="id = 0")) == [("z",)]


def test_an_empty_table_has_columns_and_no_rows(spark: SparkSession, lake: Lake) -> None:
    lake.create_table("s.t", "id long, v string")

    frame = reading(spark, lake)

    assert frame.columns == ["id", "v"]
    assert frame.collect() == []


def test_every_type_comes_back_as_it_was_written(spark: SparkSession, lake: Lake) -> None:
    values = {
        "b": True,
        "i": 1,
        "l": 2**40,
        "f": 0.5,
        "d": Decimal("1.25"),
        "day": date(2026, 1, 2),
        "ts": datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        "s": "é",
        "bin": b"\x00\x01",
        "fix": b"1234",
        "u": uuid.UUID(int=5),
        "list": [1, None],
        "map": {"k": 1},
        "st": {"a": 1, "b": "x"},
    }
    lake.create_table(
        "s.t",
        "b boolean, i int, l long, f double, d decimal(10,2), day date, ts timestamp, s string,"
        " bin binary, fix fixed(4), u uuid, list list<int>, map map<string, int>,"
        " st struct<a: int, b: string>",
        formats="iceberg",
    ).append([values, dict.fromkeys(values)])

    reading(spark, lake).write.format("lakebed").mode("append").option("lake", lake.uri).save("s.t")
    got = [row for row in reading(spark, lake).collect() if row["b"] is not None]

    assert len(got) == 2
    assert got[0] == got[1]
    assert got[0]["u"] == "00000000-0000-0000-0000-000000000005"
    assert got[0]["fix"] == b"1234"
    assert got[0]["st"].asDict() == {"a": 1, "b": "x"}
    kept = lake.table("s.t").scan(where="b").to_arrow().to_pylist()
    assert lake.table("s.t").row_count == 4
    assert kept[0] == kept[1]


def test_renamed_dropped_and_defaulted_columns_are_followed(
    spark: SparkSession, lake: Lake
) -> None:
    table = numbers(lake, 2)
    table.set_formats("iceberg")
    table.alter().rename_column("v", "w").add_column("v", "int", default=7).commit()
    table.append([{"id": 9, "w": "n", "v": 1}])

    assert rows_of(reading(spark, lake)) == [(0, "x", 7), (1, "x", 7), (9, "n", 1)]
    assert rows_of(reading(spark, lake).where("v = 7").select("id")) == [(0,), (1,)]


def test_filters_are_handed_down_when_asked_for(spark: SparkSession, lake: Lake) -> None:
    table = numbers(lake, 3)
    table.append([{"id": 100, "v": "y"}])
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")

    frame = reading(spark, lake, pushFilters="true").where("id >= 100 and v like 'y%'")

    assert rows_of(frame) == [(100, "y")]
    assert frame.rdd.getNumPartitions() == 1


def test_an_append_creates_the_table_in_one_commit(spark: SparkSession, lake: Lake) -> None:
    frame = spark.range(10).selectExpr("id", "id % 2 as part")

    save(frame, lake, "append", partitionBy="part", primaryKey="id")
    save(frame.selectExpr("id + 10 as id", "part"), lake, "append", message="more")

    table = lake.table("s.t")
    assert [(c.operation, c.message) for c in table.history()] == [
        ("append", "more"),
        ("create", None),
    ]
    assert table.row_count == 20
    assert {f.path.split("/")[1] for f in table.files()} == {"part=0", "part=1"}
    assert lake.check().clean


def test_an_overwrite_replaces_rows_partitions_or_what_a_condition_names(
    spark: SparkSession, lake: Lake
) -> None:
    frame = spark.range(6).selectExpr("id", "id % 3 as part")
    save(frame, lake, "overwrite", partitionBy="part")

    save(
        frame.where("part = 1").selectExpr("id + 100 as id", "part"),
        lake,
        "overwrite",
        partitionOverwriteMode="dynamic",
    )
    assert rows_of(reading(spark, lake).select("id")) == [
        (0,), (101,), (104,), (2,), (3,), (5,),
    ]  # fmt: skip

    save(frame.where("id = 2"), lake, "overwrite", replaceWhere="part = 2")
    assert reading(spark, lake).where("part = 2").count() == 1

    with pytest.raises(PySparkException, match="SCHEMA_MISMATCH"):
        save(frame, lake, "overwrite", replaceWhere="part = 2")
    save(frame.where("id = 0"), lake, "overwrite")
    assert rows_of(reading(spark, lake)) == [(0, 0)]


def test_the_same_application_transaction_is_written_once(spark: SparkSession, lake: Lake) -> None:
    numbers(lake)

    for _ in range(2):
        save(spark.range(3).withColumn("v", F.lit("n")), lake, "append", txnAppId="a", txnVersion=4)

    assert lake.table("s.t").row_count == 8
    assert lake.check().clean


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_modes_that_spark_has_no_way_for_are_refused_by_it(
    spark: SparkSession, lake: Lake, mode: str
) -> None:
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        save(spark.range(3), lake, mode)

    assert not lake.has_table("s.t")


def save(frame: DataFrame, lake: Lake, mode: str, **options: object) -> None:
    given = {name: str(value) for name, value in options.items()}
    frame.write.format("lakebed").mode(mode).option("lake", lake.uri).options(**given).save("s.t")


def test_rows_against_a_constraint_are_refused_and_leave_nothing(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    table = lake.create_table("s.t", "id long", constraints={"small": "id < 8"})

    # One task: of several, one that is stopped while it writes may leave an orphan.
    with pytest.raises(PySparkException, match="CONSTRAINT_VIOLATED"):
        save(spark.range(10, numPartitions=1), lake, "append")

    assert table.version == 0
    assert list(Path(table.location).rglob("*.parquet")) == []
    save(spark.range(5), lake, "append")
    assert table.row_count == 5


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"lake": "/nowhere/at/all"}, "LAKE_NOT_FOUND"),
        ({"version": "77"}, "VERSION_NOT_FOUND"),
        ({"columns": "id, nix"}, "INVALID_"),
        ({"where": "id = = 2"}, "INVALID_EXPRESSION"),
        ({"versions": "1"}, "did you mean version"),
        ({"lake": ":memory:"}, "lives in one process"),
        ({"readChangeFeed": "true"}, "read by streams"),
    ],
)
def test_bad_options_are_refused_with_a_code(
    spark: SparkSession, lake: Lake, options: dict[str, str], code: str
) -> None:
    numbers(lake)

    with pytest.raises(PySparkException, match=code):
        reading(spark, lake, **options).collect()


def test_rows_of_another_shape_are_refused_before_any_is_computed(
    spark: SparkSession, lake: Lake
) -> None:
    numbers(lake)
    never = spark.range(3).select(F.col("id"), F.raise_error(F.lit("computed")).alias("w"))

    with pytest.raises(PySparkException, match="SCHEMA_MISMATCH"):
        save(never.select("id", F.col("w").cast("string")), lake, "append")


def test_a_failed_task_leaves_the_table_as_it_was(spark: SparkSession, lake: Lake) -> None:
    table = numbers(lake)
    broken = spark.range(10, numPartitions=4).select(
        "id", F.when(F.col("id") < 8, "x").otherwise(F.raise_error(F.lit("broken"))).alias("v")
    )

    with pytest.raises(PySparkException, match="broken"):
        save(broken, lake, "append")

    assert table.version == 0
    assert table.to_arrow().num_rows == 5
    assert lake.check().clean  # orphans are only noted
