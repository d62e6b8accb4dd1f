"""A small pipeline over orders, and how tests look at what it made."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebed.api.lake import Lake
from lakebed.model.runs import Run
from lakebed.pipelines import Pipeline, changes, current


def add(lake: Lake, *rows: tuple[int, str, float | None]) -> None:
    lake.table("bronze.orders").append(
        [dict(zip(("id", "day", "amount"), row, strict=True)) for row in rows]
    )


def rows(lake: Lake, table: str, *columns: str) -> list[tuple[Any, ...]]:
    found = lake.table(table).scan(columns=list(columns) or None).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def statuses(run: Run) -> dict[str, str]:
    return {step.table: step.status for step in run.report.steps}


def shop() -> Pipeline:
    p = Pipeline("shop")

    @p.step("silver.orders", key="id", op="op")
    def orders(raw: DataFrame = changes("bronze.orders")) -> DataFrame:
        return raw.selectExpr("id", "day", "amount * 2 as amount", "op")

    @p.step("gold.daily", mode="replace")
    def daily(orders: DataFrame = current("silver.orders")) -> DataFrame:
        return orders.groupBy("day").agg(F.sum("amount").alias("total"))

    return p
