"""Runs of pipelines on Spark: everything of a run is committed together, and nothing twice."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebed.api.lake import Lake
from lakebed.model.errors import (
    LakebedError,
    PipelineBusy,
    PipelineInvalid,
)
from lakebed.pipelines import Pipeline, changes, current, expect, files, jdbc, source
from tests.lineage_receiver import receiver
from tests.spark.shop import add, rows, shop, statuses


def test_all_outputs_of_a_run_are_one_commit(orders: Lake, spark: SparkSession) -> None:
    run = shop().run(orders, session=spark)

    assert run.status == "succeeded"
    assert run.report.written == {"silver.orders": 0, "gold.daily": 0}
    assert rows(orders, "silver.orders") == [(1, "mon", 20.0), (2, "mon", 40.0), (3, "tue", 10.0)]
    assert rows(orders, "gold.daily") == [("mon", 60.0), ("tue", 10.0)]
    commits = [orders.table(t).history()[0] for t in ("silver.orders", "gold.daily")]
    assert len({commit.transaction_id for commit in commits}) == 1
    assert orders.check().clean
    steps = orders.runs.get(run.id).report.steps
    assert [(s.inputs[0].rows, s.rows) for s in steps] == [(3, 3), (3, 2)]


def test_a_run_without_new_input_changes_nothing_and_starts_no_spark(
    orders: Lake, spark: SparkSession
) -> None:
    shop().run(orders, session=spark)

    again = shop().run(orders, session="no session is asked for")  # type: ignore[arg-type]

    assert again.status == "unchanged"
    assert statuses(again) == {"silver.orders": "unchanged", "gold.daily": "unchanged"}
    assert orders.table("silver.orders").version == 0


def test_only_what_changed_is_read_again(orders: Lake, spark: SparkSession) -> None:
    pipeline = shop()
    seen: list[list[tuple[Any, ...]]] = []

    @pipeline.step("silver.seen", mode="append")
    def seen_rows(raw: DataFrame = changes("bronze.orders")) -> DataFrame:
        seen.append(sorted(tuple(r) for r in raw.collect()))
        return raw

    pipeline.run(orders, session=spark)
    table = orders.table("bronze.orders")
    table.update({"amount": "7"}, "id = 1")
    table.update({"amount": "9"}, "id = 1")
    table.delete("id = 2")
    add(orders, (4, "wed", 1.0))
    add(orders, (5, "wed", 1.0))
    table.delete("id = 5")

    run = pipeline.run(orders, session=spark)

    assert seen[1] == [
        (1, "mon", 9.0, "update"),
        (2, "mon", 20.0, "delete"),
        (4, "wed", 1.0, "insert"),
    ]
    assert rows(orders, "silver.orders") == [(1, "mon", 18.0), (3, "tue", 10.0), (4, "wed", 2.0)]
    assert rows(orders, "gold.daily") == [("mon", 18.0), ("tue", 10.0), ("wed", 2.0)]
    (read,) = run.report.steps[0].inputs
    assert (read.name, read.after, read.until) == ("bronze.orders", 1, 7)
    assert read.rows == 6  # 1, 2 and 3 as they were; 1 and 3, copied with it, and 4 as they are


def test_changes_of_a_table_that_the_same_run_makes_are_seen(
    orders: Lake, spark: SparkSession
) -> None:
    p = shop()
    seen: list[list[tuple[Any, ...]]] = []

    @p.step("gold.log")
    def log(new: DataFrame = changes("silver.orders")) -> DataFrame:
        seen.append(sorted(tuple(r) for r in new.collect()))
        return new

    p.run(orders, session=spark)
    orders.table("bronze.orders").update({"amount": "1"}, "id = 3")

    p.run(orders, session=spark)

    assert len(seen[0]) == 3
    assert seen[1] == [(3, "tue", 2.0, "update")]
    assert p.run(orders, session=spark).status == "unchanged"


def test_a_change_feed_tells_every_change(orders: Lake, spark: SparkSession) -> None:
    p = Pipeline("p")

    @p.step("silver.feed")
    def feed(raw: DataFrame = changes("bronze.orders", feed=True)) -> DataFrame:
        return raw.select("id", "amount", "op", "_version")

    p.run(orders, session=spark)
    orders.table("bronze.orders").update({"amount": "1"}, "id = 3")
    orders.table("bronze.orders").delete("id = 3")
    p.run(orders, session=spark)

    assert [row for row in rows(orders, "silver.feed") if row[3] > 1] == [
        (3, 1.0, "delete", 3),
        (3, 1.0, "update_after", 2),
        (3, 5.0, "update_before", 2),
    ]


def test_an_input_that_moves_meanwhile_is_read_as_it_was(orders: Lake, spark: SparkSession) -> None:
    p = Pipeline("p")

    @p.step("silver.one", mode="replace")
    def one(raw: DataFrame = current("bronze.orders")) -> DataFrame:
        add(orders, (9, "sun", 1.0))
        return raw

    @p.step("silver.two", mode="replace")
    def two(
        first: DataFrame = current("silver.one"), raw: DataFrame = current("bronze.orders")
    ) -> DataFrame:
        return raw.join(first, "id", "left_semi").union(raw)

    p.run(orders, session=spark)

    assert len(rows(orders, "silver.one")) == 3
    assert len(rows(orders, "silver.two")) == 6


def test_partitions_are_replaced_whole(orders: Lake, spark: SparkSession) -> None:
    p = Pipeline("p")

    @p.step("gold.parts", mode="replace_partitions", partition_by="day")
    def parts(raw: DataFrame = changes("bronze.orders")) -> DataFrame:
        return raw.groupBy("day").agg(F.count("*").alias("n"))

    p.run(orders, session=spark)
    add(orders, (10, "tue", 1.0), (11, "tue", 1.0), (12, "wed", 1.0))
    p.run(orders, session=spark)

    assert rows(orders, "gold.parts") == [("mon", 2), ("tue", 2), ("wed", 1)]


def test_each_file_is_read_once(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    p = Pipeline("p", folder=tmp_path)

    @p.step("bronze.raw")
    def raw(
        new: DataFrame = files(
            "in/*.csv", header=True, schema="id long, name string", path_column="file"
        ),
    ) -> DataFrame:
        return new

    p.run(lake, session=spark)
    (folder / "1.csv").write_text("id,name\n1,a\n")
    p.run(lake, session=spark)
    (folder / "2.csv").write_text("id,name\n2,b\n")
    run = p.run(lake, session=spark)

    assert rows(lake, "bronze.raw", "id", "name") == [(1, "a"), (2, "b")]
    assert run.report.steps[0].inputs[0].files == 1
    assert p.run(lake, session=spark).status == "unchanged"
    (folder / "3.csv").write_text("id,name\nx,b\n")
    with pytest.raises(LakebedError, match=r"step bronze\.raw .*3\.csv"):
        p.run(lake, session=spark)
    (folder / "3.csv").write_text("id,name\n3,c\n")
    p.run(lake, session=spark)
    assert rows(lake, "bronze.raw", "id") == [(1,), (2,), (3,)]


def test_a_full_refresh_makes_a_step_and_what_follows_anew(
    orders: Lake, spark: SparkSession
) -> None:
    shop().run(orders, session=spark)
    orders.table("silver.orders").delete("id = 1")

    run = shop().run(orders, session=spark, full_refresh="silver.orders")

    assert statuses(run) == {"silver.orders": "done", "gold.daily": "done"}
    assert rows(orders, "silver.orders", "id") == [(1,), (2,), (3,)]


def test_a_backfill_makes_some_rows_again(orders: Lake, spark: SparkSession) -> None:
    shop().run(orders, session=spark)
    orders.table("silver.orders").update({"amount": "0"})

    shop().run(orders, session=spark, backfill="silver.orders", where="day = 'mon'")

    assert rows(orders, "silver.orders", "id", "amount") == [(1, 20.0), (2, 40.0), (3, 0.0)]


def test_a_selection_runs_what_it_names(orders: Lake, spark: SparkSession) -> None:
    run = shop().run(orders, session=spark, select="silver.orders")

    assert list(run.report.written) == ["silver.orders"]
    assert shop().run(orders, session=spark).report.written == {"gold.daily": 0}


def test_unknown_inputs_are_found_before_anything_runs(orders: Lake) -> None:
    p = Pipeline("p")

    @p.step("a.b")
    def b(raw: DataFrame = current("bronze.order")) -> DataFrame:
        return raw

    with pytest.raises(PipelineInvalid, match=r"reads bronze\.order, which is not there"):
        p.run(orders, session="none")  # type: ignore[arg-type]


def test_a_source_that_gives_other_rows_at_every_look_is_read_once(
    orders: Lake, spark: SparkSession
) -> None:
    p = Pipeline("p")

    @p.step("a.random", key="id")
    @expect.drop("x >= 0", quarantine="a.never")
    def random(raw: DataFrame = source(lambda spark: spark.range(100))) -> DataFrame:
        return raw.withColumn("x", F.rand())

    @p.step("a.copy", mode="replace")
    def copy(random: DataFrame = current("a.random")) -> DataFrame:
        return random

    p.run(orders, session=spark)
    p.run(orders, session=spark)

    assert rows(orders, "a.random") == rows(orders, "a.copy")


def test_another_database_is_read_whole_at_every_run(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    log = str(tmp_path / "derby.log")  # it would lie in the folder that the tests are run from
    assert spark._jvm is not None
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", log)
    url, driver = (
        "jdbc:derby:memory:shop;create=true",
        "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    )
    spark.range(3).write.jdbc(url, "numbers", "overwrite", {"driver": driver})
    p = Pipeline("p")

    @p.step("a.numbers", key="id")
    def numbers(n: DataFrame = jdbc(url, table="numbers", driver=driver)) -> DataFrame:
        return n.selectExpr("id")

    @p.step("a.most", mode="replace")
    def most(
        n: DataFrame = jdbc(url, query='select max("id") m from numbers', driver=driver),
    ) -> DataFrame:
        return n

    p.run(lake, session=spark)
    again = p.run(lake, session=spark, select="a.numbers")

    assert rows(lake, "a.numbers") == [(0,), (1,), (2,)]
    assert rows(lake, "a.most") == [(2,)]
    assert again.status == "unchanged", "rows that are there already are no change"


def test_parameters_reach_the_function_and_new_ones_run_it_again(
    orders: Lake, spark: SparkSession
) -> None:
    p = Pipeline("p")

    @p.step("a.chosen", mode="replace")
    def chosen(day: str, raw: DataFrame = current("bronze.orders")) -> DataFrame:
        return raw.where(F.col("day") == day)

    p.run(orders, session=spark, params={"day": "mon"})
    assert rows(orders, "a.chosen", "id") == [(1,), (2,)]
    assert p.run(orders, session=spark, params={"day": "mon"}).status == "unchanged"
    run = p.run(orders, session=spark, params={"day": "tue"})

    assert rows(orders, "a.chosen", "id") == [(3,)]
    assert run.report.parameters == {"day": "tue"}


def test_steps_that_do_not_wait_for_one_another_run_side_by_side(
    orders: Lake, spark: SparkSession
) -> None:
    import threading

    both = threading.Barrier(2, timeout=60)
    p = Pipeline("p")

    @p.step("a.one", mode="replace")
    def one(raw: DataFrame = current("bronze.orders")) -> DataFrame:
        both.wait()
        return raw

    @p.step("a.two", mode="replace")
    def two(raw: DataFrame = current("bronze.orders")) -> DataFrame:
        both.wait()
        return raw

    assert p.run(orders, session=spark, parallel=2).report.written == {"a.one": 0, "a.two": 0}


def test_a_second_run_at_the_same_time_is_refused(orders: Lake, spark: SparkSession) -> None:
    p = Pipeline("p")

    @p.step("a.b", mode="replace")
    def b(raw: DataFrame = current("bronze.orders")) -> DataFrame:
        with pytest.raises(PipelineBusy):
            p.run(orders, session=spark)
        return raw

    assert p.run(orders, session=spark).status == "succeeded"


def test_lineage_knows_tables_and_versions(orders: Lake, spark: SparkSession) -> None:
    run = shop().run(orders, session=spark)

    up = orders.runs.lineage("gold.daily", "up")

    assert [(e.output, e.input, e.after, e.until, e.run_id) for e in up] == [
        ("gold.daily", "silver.orders", None, 0, run.id),
        ("silver.orders", "bronze.orders", None, 1, run.id),
    ]
    assert [e.columns for e in up] == [
        {"day": ("day",), "total": ("amount",)},
        {"id": ("id",), "day": ("day",), "amount": ("amount",), "op": ("op",)},
    ]


def test_every_run_is_told_to_the_endpoint_of_openlineage(
    orders: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ids(events: list[dict[str, Any]]) -> set[str]:
        return {event["run"]["runId"][-12:] for event in events}

    def names(event: dict[str, Any], side: str) -> list[str]:
        return [dataset["name"] for dataset in event[side]]

    with receiver() as (url, events):
        monkeypatch.setenv("LAKEBED_OPENLINEAGE_URL", url)
        run = shop().run(orders, session=spark)
        first = list(events)
        shop().run(orders, session=spark)
        add(orders, (4, "wed", 1.0))
        broken = Pipeline("shop")

        @broken.step("gold.broken")
        def raises(raw: DataFrame = current("bronze.orders")) -> DataFrame:
            raise ValueError("no")

        with pytest.raises(LakebedError):
            broken.run(orders, session=spark)

    assert [event["eventType"] for event in first] == ["START", "COMPLETE"]
    assert ids(first) == {run.id}
    assert names(first[1], "inputs") == ["bronze.orders"]
    assert names(first[1], "outputs") == ["gold.daily", "silver.orders"]
    assert [event["eventType"] for event in events[2:]] == ["START", "COMPLETE", "START", "FAIL"]
    assert names(events[3], "outputs") == []
    assert len(ids(events)) == 3
