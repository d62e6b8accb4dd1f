"""Steps that fail, or give what cannot be written or is not expected: told, and nothing changes."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakebed
from lakebed.api.lake import Lake
from lakebed.model.errors import (
    AmbiguousMerge,
    ExpectationFailed,
    LakebedError,
    SchemaMismatch,
    StepFailed,
)
from lakebed.pipelines import Pipeline, changes, current, expect, source
from tests.spark.shop import add, rows, shop


def test_a_failing_step_leaves_its_line_and_no_table(orders: Lake, spark: SparkSession) -> None:
    p = shop()

    @p.step("gold.broken", mode="replace")
    def broken(daily: DataFrame = current("gold.daily")) -> DataFrame:
        return daily.select("no_such_column")

    with pytest.raises(
        StepFailed, match=r"step gold\.broken \(test_pipeline_failures\.py:\d+\).*no_such_column"
    ):
        p.run(orders, session=spark)

    (run,) = orders.runs.list()
    assert run.status == "failed"
    assert run.report.failure is not None
    assert run.report.failure.step == "gold.broken"
    assert run.report.failure.place is not None
    assert orders.tables() == ["bronze.orders"]
    assert orders.check().notes == []
    assert shop().run(orders, session=spark).status == "succeeded", "the next run works"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda raw: None, "returned nothing"),
        (lambda raw: raw.count(), "returned a int"),
        (lambda raw: raw.join(raw.alias("x"), F.lit(True)), "two columns 'id'"),
        (lambda raw: raw.join(raw.alias("x"), F.lit(True)).select("id"), "AMBIGUOUS_REFERENCE"),
        (lambda raw: raw.where(int("one")), "ValueError: invalid literal"),
        (lambda raw: raw.withColumn("x", F.lit(None)), "column 'x' has no type"),
        (lambda raw: raw.select(F.expr("1/0").alias("id")), "DIVIDE_BY_ZERO"),
        (
            lambda raw: raw.select(F.udf(lambda x: 1 // (x - x))("id").alias("id")),
            "ZeroDivisionError",
        ),
    ],
)
def test_bad_results_are_one_message(
    orders: Lake, spark: SparkSession, made: Callable[[DataFrame], DataFrame], said: str
) -> None:
    p = Pipeline("p")

    @p.step("a.b", mode="replace")
    def b(raw: DataFrame = current("bronze.orders")) -> DataFrame:
        return made(raw)

    with pytest.raises(LakebedError, match=said) as caught:
        p.run(orders, session=spark)

    assert caught.value.message.startswith("step a.b (test_pipeline_failures.py:")
    assert not orders.has_table("a.b")
    assert orders.check().notes == [], "no half of it is left"


def test_keys_that_are_null_or_double_are_refused(orders: Lake, spark: SparkSession) -> None:
    def pipeline(key: str) -> Pipeline:
        p = Pipeline("p")

        @p.step("a.b", key="k")
        def b(raw: DataFrame = current("bronze.orders")) -> DataFrame:
            return raw.selectExpr(f"{key} as k", "amount")

        return p

    with pytest.raises(SchemaMismatch, match="key column 'k' is NULL in 1 rows"):
        pipeline("nullif(id, 2)").run(orders, session=spark)
    with pytest.raises(AmbiguousMerge, match="2 rows have the key k='mon'"):
        pipeline("day").run(orders, session=spark)


def test_a_wrong_schema_is_refused(orders: Lake, spark: SparkSession) -> None:
    shop().run(orders, session=spark)
    p = Pipeline("shop")

    @p.step("silver.orders", key="id")
    def silver(raw: DataFrame = current("bronze.orders")) -> DataFrame:
        return raw.withColumn("extra", F.lit(1))

    with pytest.raises(SchemaMismatch, match="'extra'"):
        p.run(orders, session=spark)


def test_wrong_columns_are_found_before_anything_runs(orders: Lake, spark: SparkSession) -> None:
    shop().run(orders, session=spark)
    add(orders, (4, "wed", 1.0))
    p = shop()

    @p.step("gold.broken", mode="replace")
    @expect.warn("amuont > 1")
    def broken(orders: DataFrame = current("silver.orders")) -> DataFrame:
        return orders

    @p.step("gold.history", key="id", mode="scd2")
    def history(orders: DataFrame = changes("silver.orders")) -> DataFrame:
        return orders.drop("op")

    with pytest.raises(StepFailed, match=r"step gold\.broken .*amuont"):
        p.run(orders, session=spark)
    (steps,) = {run.report.steps for run in orders.runs.list(limit=1)}
    assert steps == (), "no step was begun"
    with pytest.raises(StepFailed, match=r"step gold\.broken .*amuont"):
        p.run(orders, session=spark, check=False)
    (steps,) = {run.report.steps for run in orders.runs.list(limit=1)}
    assert [step.table for step in steps if step.status == "done"] != [], "they were begun"
    q = Pipeline("shop")

    @q.step("silver.orders", key="id")
    def silver(raw: DataFrame = changes("bronze.orders")) -> DataFrame:
        return raw.selectExpr("id", "array(day) as day", "amount")

    with pytest.raises(SchemaMismatch, match=r"step silver\.orders .*'day'"):
        q.run(orders, session=spark)
    assert orders.runs.list(limit=1)[0].report.steps == ()


def test_a_function_with_effects_is_called_once_unless_all_are_to_be_checked(
    orders: Lake, spark: SparkSession
) -> None:
    called: list[str] = []
    p = Pipeline("p")

    def numbers(session: SparkSession) -> DataFrame:
        called.append("source")
        return session.range(3)

    @p.step("a.plain", key="id")
    def plain(n: DataFrame = source(numbers)) -> DataFrame:
        return n

    @p.step("a.counted", mode="replace")
    def counted(n: DataFrame = current("a.plain")) -> DataFrame:
        called.append(f"step on {n.count()} rows")
        return n

    @p.step("a.wrong", mode="replace")
    def wrong(n: DataFrame = current("a.counted")) -> DataFrame:
        return n.select("missing")

    with pytest.raises(StepFailed, match=r"step a\.wrong .*missing"):
        p.run(orders, session=spark)
    assert called == ["source", "step on 3 rows"]
    with pytest.raises(StepFailed, match=r"step a\.wrong .*missing"):
        p.run(orders, session=spark, check=True)
    assert called[2:] == ["source", "step on 0 rows"]
    assert orders.runs.list(limit=1)[0].report.steps == (), "found before anything ran"


def test_rows_that_are_not_as_expected_go_to_quarantine(orders: Lake, spark: SparkSession) -> None:
    add(orders, (4, "wed", -1.0), (5, "wed", None))
    p = Pipeline("p")

    @p.step("silver.orders", key="id")
    @expect.drop("amount >= 0", quarantine="silver.bad")
    @expect.drop(expect.references("day", "ref.days"), quarantine="silver.bad")
    @expect.warn("amount > 9")
    @expect.fail(expect.row_count(least=1))
    def silver(raw: DataFrame = changes("bronze.orders")) -> DataFrame:
        return raw.drop("op")

    orders.create_table("ref.days", [{"day": "mon"}, {"day": "wed"}])
    run = p.run(orders, session=spark)

    assert rows(orders, "silver.orders", "id") == [(1,), (2,)]
    assert rows(orders, "silver.bad", "id", "_reason", "_run") == [
        (3, "references(day -> ref.days(day))", run.id),
        (4, "amount >= 0", run.id),
        (5, "amount >= 0", run.id),
    ]
    (step,) = run.report.steps
    assert (step.rows, step.dropped) == (2, 3)
    assert [(e.text, e.passed, e.rows) for e in step.expectations] == [
        ("amount >= 0", False, 2),
        ("references(day -> ref.days(day))", False, 1),
        ("amount > 9", True, 0),
        ("row_count(least=1)", True, 0),
    ]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("amount < 20", r"amount < 20: 1 rows are not so; for example id=2"),
        (expect.not_null("day", "amount"), None),
        (expect.unique("day"), r"unique\(day\): 1 rows"),
        (expect.row_count(most=2), r"there are 3 rows"),
        (expect.references("id", "ref.days", "id"), r"references"),
        (expect.freshness("at", hours=1), r"the newest is [\d,]+ s old"),
    ],
)
def test_expectations_that_fail_stop_the_run(
    orders: Lake, spark: SparkSession, rule: Any, said: str | None
) -> None:
    orders.create_table("ref.days", [{"id": 1}, {"id": 2}])
    p = Pipeline("p")

    @p.step("silver.orders", mode="replace")
    @expect.fail(rule)
    def silver(raw: DataFrame = current("bronze.orders")) -> DataFrame:
        return raw.withColumn("at", F.lit(datetime(2020, 1, 1, tzinfo=UTC)))

    if said is None:
        assert p.run(orders, session=spark).status == "succeeded"
        return
    with pytest.raises(ExpectationFailed, match=said):
        p.run(orders, session=spark)
    assert not orders.has_table("silver.orders")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(mount(folder), check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def wait_for_room(folder: Path, spark: SparkSession) -> None:
    """What was written of it has gone; Spark's writer holds its file until it is collected."""
    assert [path for path in folder.rglob("*.parquet") if path.is_file()] == []
    assert spark._jvm is not None
    for _ in range(600):
        spark._jvm.java.lang.System.gc()
        if shutil.disk_usage(folder).used < 1_000_000:
            return
        time.sleep(0.1)
    raise AssertionError(shutil.disk_usage(folder))


def mount(folder: Path) -> list[str]:
    return ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]


def test_a_full_disk_is_one_message_and_the_next_run_works(
    small: Path, tmp_path: Path, spark: SparkSession
) -> None:
    def pipeline(rows: int) -> Pipeline:
        p = Pipeline("p")

        @p.step("a.first", mode="replace")
        def first(n: DataFrame = source(lambda spark: spark.range(10))) -> DataFrame:
            return n

        @p.step("a.large", mode="replace")
        def large(n: DataFrame = current("a.first")) -> DataFrame:
            return n.sparkSession.range(rows).select(F.rand().alias("x"))

        return p

    with lakebed.open(tmp_path / "lake", warehouse=str(small / "w"), create=True) as lake:
        with pytest.raises(
            LakebedError, match=r"step a\.large .*No space left on device"
        ) as caught:
            pipeline(2_000_000).run(lake, session=spark)
        assert caught.value.context["place"].startswith("test_pipeline_failures.py:")  # type: ignore[attr-defined]
        assert lake.tables() == []
        wait_for_room(small, spark)
        assert pipeline(10).run(lake, session=spark).status == "succeeded"
        assert lake.check().clean
