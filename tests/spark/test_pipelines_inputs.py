"""What a step reads is read once, and as it is: odd files, new names, values that look alike."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakebed.api.lake import Lake
from lakebed.model.errors import LakebedError
from lakebed.pipelines import Pipeline, changes, expect, files, source
from tests.spark.shop import add, rows

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def raw_pipeline(folder: Path, pattern: str, *columns: str) -> Pipeline:
    p = Pipeline("p", folder=folder)

    @p.step("b.raw")
    def raw(
        new: DataFrame = files(
            pattern, format="csv", header=True, schema="id long, a long, b long"
        ),
    ) -> DataFrame:
        return new.select(*columns) if columns else new

    return p


def test_files_of_any_name_are_read_once_also_when_the_pattern_is_written_anew(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "[p]"
    folder = place / "in[x]"
    folder.mkdir(parents=True)
    for n, name in enumerate(("x[1].csv", "x1.csv", "{a,b}.csv", "a b%20ü?.csv", "b\\.csv")):
        (folder / name).write_text(f"id,a,b\n{n},1,2\n")

    raw_pipeline(place, "in[[]x]/*.csv").run(lake, session=spark)
    (folder / "late.csv").write_text("id,a,b\n5,1,2\n")
    raw_pipeline(place, "in[[]x]/**/*.csv").run(lake, session=spark)

    assert rows(lake, "b.raw", "id") == [(n,) for n in range(6)]
    raw_pipeline(place, "in[[]x]/*").run(lake, session=spark, full_refresh="b.raw")
    assert rows(lake, "b.raw", "id") == [(n,) for n in range(6)]


@pytest.mark.parametrize(
    ("text", "columns"),
    [("id,b,a\n1,2,3\n", ()), ("id,a,b\n1,2\n", ("id", "b")), ("id,a\n1,2\n", ("id",))],
)
def test_a_csv_file_with_other_columns_or_short_rows_is_refused(
    lake: Lake, spark: SparkSession, tmp_path: Path, text: str, columns: tuple[str, ...]
) -> None:
    (tmp_path / "1.csv").write_text(text)

    with pytest.raises(LakebedError, match=r"step b\.raw .*1\.csv"):
        raw_pipeline(tmp_path, "*.csv", *columns).run(lake, session=spark)

    assert not lake.has_table("b.raw")


def test_parquet_files_give_every_column_that_one_of_them_has(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"id": [2], "name": ["b"]}), tmp_path / "2.parquet")
    p = Pipeline("p", folder=tmp_path)

    @p.step("b.raw")
    def raw(new: DataFrame = files("*.parquet")) -> DataFrame:
        return new

    p.run(lake, session=spark)
    assert rows(lake, "b.raw", "id", "name") == [(1, None), (2, "b")]

    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "3.parquet")
    pq.write_table(pa.table({"id": [4]}), tmp_path / "4.parquet")
    with pytest.raises(LakebedError, match=r"(?s)step b\.raw .*STRING.*BIGINT|BIGINT.*STRING"):
        p.run(lake, session=spark)


def test_rows_that_share_a_primary_key_change_once_and_steps_may_share_a_quarantine(
    orders: Lake, spark: SparkSession
) -> None:
    p = Pipeline("p")

    @p.step("s.log")
    @expect.drop("amount < 30", quarantine="s.rejected")
    def log(new: DataFrame = changes("bronze.orders")) -> DataFrame:
        return new

    @p.step("s.days")
    @expect.drop("day <> 'tue'", quarantine="s.rejected")
    def days(new: DataFrame = changes("bronze.orders")) -> DataFrame:
        return new.select("day", "id")

    add(orders, (1, "mon", 11.0))
    p.run(orders, session=spark)
    orders.table("bronze.orders").update({"amount": "amount + 10"}, "id < 3")
    p.run(orders, session=spark)

    changed = [("insert", 1), ("insert", 1), ("insert", 2), ("insert", 3)]
    assert rows(orders, "s.log", "op", "id") == [*changed, ("update", 1), ("update", 1)]
    assert rows(orders, "s.rejected", "_reason", "id") == [("amount < 30", 2), ("day <> 'tue'", 3)]


def test_an_input_that_was_renamed_is_read_on_from_where_it_was(
    orders: Lake, spark: SparkSession
) -> None:
    def copied(table: str) -> Pipeline:
        p = Pipeline("p")

        @p.step("b.copy")
        def copy(new: DataFrame = changes(table)) -> DataFrame:
            return new.select("id")

        return p

    copied("bronze.orders").run(orders, session=spark)
    orders.rename_table("bronze.orders", "bronze.sales")
    orders.table("bronze.sales").append([{"id": 4, "day": "wed", "amount": 1.0}])
    copied("bronze.sales").run(orders, session=spark)

    assert rows(orders, "b.copy") == [(1,), (2,), (3,), (4,)]


def test_maps_and_microseconds_tell_rows_apart(lake: Lake, spark: SparkSession) -> None:
    def told(*given: tuple[datetime, datetime, dict[str, int]]) -> Pipeline:
        made = [(1, at, seen, parts) for at, seen, parts in given]
        p = Pipeline("p")

        def frame(session: SparkSession) -> DataFrame:
            return session.createDataFrame(
                made, "id long, at timestamp, seen timestamp, parts map<string, long>"
            )

        @p.step("s.history", mode="scd2", key="id", sequence_by="at")
        def history(new: DataFrame = source(frame)) -> DataFrame:
            return new

        @p.step("s.newest", key="id", sequence_by="at")
        def newest(new: DataFrame = source(frame)) -> DataFrame:
            return new

        return p

    soon, day = NOON + timedelta(microseconds=1), timedelta(days=1)
    told((NOON, NOON, {"x": 1})).run(lake, session=spark)
    twice = [(NOON + 2 * day, NOON, {"x": 2})] * 2
    told((NOON + day, soon, {"x": 1}), *twice).run(lake, session=spark)

    assert [seen for (seen,) in rows(lake, "s.history", "seen")] == [NOON, NOON, soon]
    assert [parts for (parts,) in rows(lake, "s.newest", "parts")] == [[("x", 2)]]


def test_rows_that_are_to_go_are_not_judged_and_one_of_several_that_is_right_stays(
    orders: Lake, spark: SparkSession
) -> None:
    p = Pipeline("p")

    @p.step("s.orders", key="id", op="op")
    @expect.drop("amount > 0", quarantine="s.rejected")
    def kept(new: DataFrame = changes("bronze.orders")) -> DataFrame:
        return new

    @p.step("s.days", key="day")
    @expect.drop(expect.unique("day"))
    @expect.drop("amount > 10")
    def days(new: DataFrame = changes("bronze.orders")) -> DataFrame:
        return new.select("day", "amount")

    p.run(orders, session=spark)
    orders.table("bronze.orders").update({"amount": "-1"}, "id = 2")
    p.run(orders, session=spark, select="s.orders")
    orders.table("bronze.orders").delete("id = 2")
    p.run(orders, session=spark, select="s.orders")

    assert rows(orders, "s.orders", "id") == [(1,), (3,)]
    assert rows(orders, "s.rejected", "id", "op") == [(2, "update")]
    assert rows(orders, "s.days") == [("mon", 20.0)]
