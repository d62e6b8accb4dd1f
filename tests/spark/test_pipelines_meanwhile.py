"""Others write to tables of a run while it goes on: the result is of one set of versions, whole."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakebed.api.lake import Lake
from lakebed.model.errors import CommitConflict, TableNotFound
from lakebed.pipelines import Pipeline, changes, current
from lakebed.pipelines.progress import Event, RunBeganAgain
from tests.spark.shop import add, rows, shop, statuses


def meddling(times: int, meddle: Callable[[], object]) -> Pipeline:
    """The shop, with a step at its end during which somebody else writes."""
    p, left = shop(), [meddle] * times

    @p.step("z.last", mode="replace")
    def last(daily: DataFrame = current("gold.daily")) -> DataFrame:
        if left:
            left.pop()()
        return daily

    return p


@pytest.mark.parametrize("how", ["append", "overwrite", "create"])
def test_a_run_begins_again_when_an_output_has_moved(
    orders: Lake, spark: SparkSession, how: str
) -> None:
    if how != "create":
        shop().run(orders, session=spark)
        add(orders, (4, "wed", 1.0))
    row = {"id": 50, "day": "sun", "amount": 5.0}

    def meddle() -> None:
        if how == "append":
            orders.table("silver.orders").append([row])
        elif how == "overwrite":
            orders.table("gold.daily").overwrite([{"day": "never", "total": 0.0}])
        else:
            schema = "id long not null, day string, amount double"
            orders.create_table("silver.orders", schema, primary_key=["id"]).append([row])

    heard: list[Event] = []
    p = meddling(1, meddle)
    run = p.run(orders, session=spark, listen=heard.append)

    assert sum(isinstance(event, RunBeganAgain) for event in heard) == 1
    assert run.status == "succeeded"
    made = {row[0]: row[2] for row in rows(orders, "silver.orders")}
    assert (50 in made) == (how != "overwrite")
    total = sum(made.values())
    assert sum(row[1] for row in rows(orders, "gold.daily")) == total, "nothing was missed"
    assert rows(orders, "z.last") == rows(orders, "gold.daily")
    assert p.run(orders, session=spark).status == "unchanged"
    assert orders.check().clean


def test_rows_that_others_append_beside_a_run_stay(orders: Lake, spark: SparkSession) -> None:
    p, heard = Pipeline("p"), list[Event]()

    @p.step("b.log")
    def log(raw: DataFrame = changes("bronze.orders")) -> DataFrame:
        if orders.has_table("b.log"):
            orders.table("b.log").append([{"id": 50, "day": "x", "amount": 0.0, "op": "other"}])
        return raw

    p.run(orders, session=spark)
    add(orders, (4, "wed", 1.0))
    p.run(orders, session=spark, listen=heard.append)

    assert [row[0] for row in rows(orders, "b.log")] == [1, 2, 3, 4, 50]
    assert not any(isinstance(event, RunBeganAgain) for event in heard), "both can stand"


def test_an_output_that_moves_every_time_is_a_conflict(orders: Lake, spark: SparkSession) -> None:
    shop().run(orders, session=spark)
    add(orders, (4, "wed", 1.0))
    never = [{"day": "never", "total": 0.0}]
    p = meddling(9, lambda: orders.table("gold.daily").overwrite(never))

    with pytest.raises(
        CommitConflict, match=r"step gold\.daily \(shop\.py:\d+\): somebody else changed.* 3 times"
    ) as caught:
        p.run(orders, session=spark)

    assert "run it again" in caught.value.hint
    assert rows(orders, "gold.daily") == [("never", 0.0)]
    assert not orders.has_table("z.last")
    assert rows(orders, "silver.orders", "id") == [(1,), (2,), (3,)]
    failed = orders.runs.list()[0]
    assert (failed.status, failed.report.failure and failed.report.failure.code) == (
        "failed",
        "COMMIT_CONFLICT",
    )
    assert shop().run(orders, session=spark).status == "succeeded"
    assert orders.check().notes == []


def test_an_input_that_is_dropped_meanwhile_is_read_as_it_was(
    orders: Lake, spark: SparkSession
) -> None:
    p = Pipeline("p")

    @p.step("b.first", mode="replace")
    def first(raw: DataFrame = current("bronze.orders")) -> DataFrame:
        orders.drop_table("bronze.orders")
        return raw

    run = p.run(orders, session=spark)

    assert statuses(run) == {"b.first": "done"}
    assert len(rows(orders, "b.first")) == 3
    with pytest.raises(TableNotFound):
        orders.table("bronze.orders")
