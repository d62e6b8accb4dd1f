"""Tables as sources and sinks of streams: `readStream` and `writeStream` of `format("lakebed")`."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

import lakebed
from lakebed.api.lake import Lake


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture
def source(lake: Lake) -> lakebed.Table:
    table = lake.create_table("s.src", pa.table({"id": [1, 2], "v": ["a", "b"]}))
    table.append([{"id": 3, "v": "c"}])
    return table


def followed(spark: SparkSession, lake: Lake, **options: object) -> DataFrame:
    given = {name: str(value) for name, value in options.items()}
    stream = spark.readStream.format("lakebed").option("lake", lake.uri).options(**given)
    return stream.load("s.src")


def sink(frame: DataFrame, opened: Lake, checkpoint: str, **options: object) -> DataStreamWriter:
    given = {"lake": opened.uri, **{name: str(value) for name, value in options.items()}}
    written = frame.writeStream.format("lakebed").options(**given)
    return written.option("checkpointLocation", checkpoint)


def run(writer: DataStreamWriter, table: str = "s.out") -> int:
    """What there is until it is done; how many batches that took."""
    query = writer.trigger(availableNow=True).start(table)
    query.awaitTermination()
    return len([p for p in query.recentProgress if p.numInputRows])


def ids(lake: Lake, table: str = "s.out") -> list[int]:
    return sorted(lake.table(table).to_arrow()["id"].to_pylist())


def test_a_stream_reads_the_table_and_then_every_new_version_once(
    spark: SparkSession, lake: Lake, source: lakebed.Table, checkpoint: str
) -> None:
    run(sink(followed(spark, lake), lake, checkpoint))
    first = ids(lake)

    source.append([{"id": 4, "v": "d"}])
    source.append([{"id": 5, "v": "e"}])
    run(sink(followed(spark, lake), lake, checkpoint))
    run(sink(followed(spark, lake), lake, checkpoint))

    assert first == [1, 2, 3]
    assert ids(lake) == [1, 2, 3, 4, 5]
    assert [c.operation for c in lake.table("s.out").history()] == ["append", "append", "create"]
    assert lake.check().clean


def test_a_stream_begins_where_it_is_told(
    spark: SparkSession, lake: Lake, source: lakebed.Table, checkpoint: str
) -> None:
    run(sink(followed(spark, lake, startingVersion=1), lake, checkpoint))
    assert ids(lake) == [3]

    source.append([{"id": 4, "v": "d"}])
    later = source.append([{"id": 5, "v": "e"}])
    started = {"startingTimestamp": later.time_ms, "maxFilesPerTrigger": 1}
    source.append([{"id": 6, "v": "f"}])
    for expected in ([5], [5, 6]):
        run(sink(followed(spark, lake, **started), lake, f"{checkpoint}-later"), "s.later")
        assert ids(lake, "s.later") == expected


def test_a_running_query_takes_no_more_versions_at_once_than_it_may(
    spark: SparkSession, lake: Lake, source: lakebed.Table, checkpoint: str
) -> None:
    for number in (4, 5):
        source.append([{"id": number, "v": "x"}])
    frame = followed(spark, lake, startingVersion=0, maxVersionsPerTrigger=1)

    query = sink(frame, lake, checkpoint).trigger(processingTime="0 seconds").start("s.out")
    try:
        query.processAllAvailable()
    finally:
        query.stop()

    assert ids(lake) == [1, 2, 3, 4, 5]
    assert lake.table("s.out").version == 4  # a commit for every version, after its creation


def test_the_change_feed_is_a_stream(
    spark: SparkSession, lake: Lake, source: lakebed.Table, checkpoint: str
) -> None:
    source.update({"v": "'B'"}, "id = 2")
    source.delete("id = 1")
    frame = followed(spark, lake, startingVersion=2, readChangeFeed="true")
    frame = frame.selectExpr("id", "v", "_op as op", "_version as version")

    run(sink(frame, lake, checkpoint))

    found = lake.table("s.out").to_arrow().to_pylist()
    assert sorted((r["version"], r["op"], r["id"], r["v"]) for r in found) == [
        (2, "update_after", 2, "B"),
        (2, "update_before", 2, "b"),
        (3, "delete", 1, "a"),
    ]


def test_a_version_that_takes_rows_away_ends_the_query_unless_it_may_be_skipped(
    spark: SparkSession, lake: Lake, source: lakebed.Table, checkpoint: str
) -> None:
    run(sink(followed(spark, lake), lake, checkpoint))
    source.delete("id = 1")
    source.append([{"id": 9, "v": "n"}])

    with pytest.raises(StreamingQueryException, match="STREAM_CHANGED"):
        run(sink(followed(spark, lake), lake, checkpoint))
    before = ids(lake)
    run(sink(followed(spark, lake, skipChangeCommits="true"), lake, checkpoint))

    assert before == [1, 2, 3]
    assert ids(lake) == [1, 2, 3, 9]


def test_new_columns_end_the_query_and_the_next_one_reads_on_with_them(
    spark: SparkSession, lake: Lake, source: lakebed.Table, checkpoint: str
) -> None:
    out = lake.create_table("s.out", "id long, v string, n int")
    query = sink(followed(spark, lake), lake, checkpoint).start("s.out")
    try:
        query.processAllAvailable()
        source.alter().add_column("n", "int").commit()
        source.append([{"id": 4, "v": "d", "n": 7}])
        with pytest.raises(StreamingQueryException, match="changed its columns"):
            query.processAllAvailable()
    finally:
        query.stop()

    assert ids(lake) == [1, 2, 3]
    run(sink(followed(spark, lake), lake, checkpoint))
    assert out.scan(where="id = 4").to_arrow().to_pylist() == [{"id": 4, "v": "d", "n": 7}]
    assert ids(lake) == [1, 2, 3, 4]


def test_upserts_by_key_keep_one_row_of_each(
    spark: SparkSession, lake: Lake, source: lakebed.Table, checkpoint: str
) -> None:
    upserts = {"mode": "upsert", "primaryKey": "id"}
    run(sink(followed(spark, lake), lake, checkpoint, **upserts))
    source.append([{"id": 2, "v": "B"}, {"id": 4, "v": "d"}])

    run(sink(followed(spark, lake), lake, checkpoint, **upserts))

    out = lake.table("s.out")
    got = {row["id"]: row["v"] for row in out.to_arrow().to_pylist()}
    assert (got, out.row_count) == ({1: "a", 2: "B", 3: "c", 4: "d"}, 4)
    assert len(list(Path(out.location).rglob("*.parquet"))) == len(_paths(lake))
    assert lake.check().clean


def _paths(lake: Lake) -> set[str]:
    """Of all versions."""
    table = lake.table("s.out")
    return {f.path for v in range(table.version + 1) for f in table.files(version=v)}


def test_upserts_by_another_key_and_keys_given_twice(
    spark: SparkSession, lake: Lake, source: lakebed.Table, checkpoint: str
) -> None:
    lake.create_table("s.out", [{"id": 77, "v": "a"}])

    run(sink(followed(spark, lake), lake, checkpoint, mode="upsert", key="v"))
    assert ids(lake) == [1, 2, 3]

    source.append([{"id": 5, "v": "a"}, {"id": 6, "v": "a"}])
    with pytest.raises(StreamingQueryException, match="AMBIGUOUS_MERGE"):
        run(sink(followed(spark, lake), lake, checkpoint, mode="upsert", key="v"))
    assert ids(lake) == [1, 2, 3]


def test_complete_output_replaces_the_table_every_time(
    spark: SparkSession, lake: Lake, source: lakebed.Table, checkpoint: str
) -> None:
    def counted() -> DataStreamWriter:
        frame = followed(spark, lake).groupBy().agg(F.count("*").alias("n"))
        return sink(frame, lake, checkpoint).outputMode("complete")

    run(counted())
    source.append([{"id": 4, "v": "d"}])
    run(counted())

    assert lake.table("s.out").to_arrow().to_pylist() == [{"n": 4}]


def test_a_checkpoint_that_was_set_back_is_refused_not_ignored(
    spark: SparkSession, lake: Lake, source: lakebed.Table, tmp_path: Path
) -> None:
    def writer(name: str) -> DataStreamWriter:
        return sink(followed(spark, lake), lake, str(tmp_path / name), txnAppId="app")

    run(writer("one"))
    source.append([{"id": 4, "v": "d"}])
    run(writer("one"))

    assert lake.table("s.out").last_txn("app") == 1
    with pytest.raises(StreamingQueryException, match="the checkpoint was set back"):
        run(writer("two"))
    assert ids(lake) == [1, 2, 3, 4]


def test_a_place_that_is_begun_anew_is_another_stream(
    spark: SparkSession, lake: Lake, source: lakebed.Table, tmp_path: Path
) -> None:
    run(sink(followed(spark, lake), lake, str(tmp_path / "one")))
    (tmp_path / "one").rename(tmp_path / "gone")

    run(sink(followed(spark, lake), lake, str(tmp_path / "one")))

    assert ids(lake) == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "merge"}, "use append or upsert"),
        ({"key": "id"}, "an append has no key"),
        ({"mode": "upsert"}, "has no primary key"),
        ({"lake": "/nowhere"}, "LAKE_NOT_FOUND"),
    ],
)
def test_bad_options_of_a_sink_end_the_query(
    spark: SparkSession,
    lake: Lake,
    source: lakebed.Table,
    checkpoint: str,
    options: dict[str, str],
    message: str,
) -> None:
    lake.create_table("s.out", "id long, v string")

    with pytest.raises(StreamingQueryException, match=message):
        run(sink(followed(spark, lake), lake, checkpoint, **options))

    assert ids(lake) == []
