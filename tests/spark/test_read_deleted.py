"""Rows that are deleted, in files of many row groups: every reader leaves out just these."""

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakebed import Lake
from tests.spark.same import assert_same, rows_of, rows_of_each

READERS = ("auto", "iceberg", "parquet")
FIRST = 1_000  # the id that the second file begins with


def test_every_reader_leaves_out_deleted_rows_of_files_with_many_row_groups(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sp = lake.spark(spark)
    settings = {"write.parquet.row-group-rows": "64"}
    table = lake.create_table("s.t", "id long, v string", properties=settings, formats="iceberg")
    for first, rows in ((0, 700), (FIRST, 130)):
        numbers = spark.range(first, first + rows, 1, 1)
        sp.append(numbers.selectExpr("id", "concat('v', id % 7) AS v"), "s.t")
    groups = [_row_groups(Path(table.location) / file.path) for file in table.files()]
    assert sorted(groups) == [[64, 64, 2], [64] * 10 + [60]]

    gone = {0, 63, 64, 127, 128, 699, FIRST, FIRST + 63, FIRST + 64, FIRST + 129}
    gone |= set(random.Random(7).sample(range(700), 90))
    sp.delete("s.t", f"id IN ({', '.join(map(str, sorted(gone)))})")
    table.alter().rename_column("v", "name").commit()
    table.alter().add_column("n", "int", default=5).commit()
    sp.append(spark.range(5_000, 5_003).selectExpr("id", "'v1' AS name", "6 AS n"), "s.t")

    left = {*range(700), *range(FIRST, FIRST + 130), *range(5_000, 5_003)} - gone
    filters = ("true", "id = 63", "id = 65", "id BETWEEN 126 AND 131", "name = 'v1' AND n = 5")
    some = table.scan(columns=["n", "id"]).to_arrow()
    assert set(some.column("id").to_pylist()) == left
    for reader in READERS:
        assert sp.table("s.t", reader=reader).count() == len(left)
        assert_same(sp.table("s.t", reader=reader, columns=["n", "id"]), some)
        frames = [sp.table("s.t", reader=reader, where=each) for each in filters]
        frames += [sp.table("s.t", reader=reader).where(each) for each in filters]
        expected = [rows_of(table.scan(where=each).to_arrow()) for each in filters]
        assert rows_of_each(frames) == [*expected, *expected]
    with monkeypatch.context() as patch:  # by a join, as where files are many
        patch.setattr("lakebed.engines.spark.bitmap._MOST_FILES", 0)
        frames = [sp.table("s.t", reader="parquet", where=each) for each in filters]
    assert rows_of_each(frames) == expected


def test_a_file_that_is_not_the_one_that_was_planned_gives_no_rows(
    lake: Lake, spark: SparkSession
) -> None:
    table = lake.create_table("s.t", "id long, v string")
    table.append([{"id": n, "v": "x"} for n in range(10)])
    table.delete("id = 3")
    path = Path(table.location) / table.files()[0].path
    pq.write_table(pq.read_table(path), path, compression="none", write_statistics=False)

    with pytest.raises(PySparkException, match=rf"{path.name} has another size"):
        lake.spark(spark).table("s.t", reader="parquet").count()


def _row_groups(path: Path) -> list[int]:
    metadata = pq.read_metadata(path)
    return [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
