"""The same pipeline elsewhere: the lake on PostgreSQL, rows of another database."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakebed
from lakebed.api.lake import Lake
from lakebed.pipelines import Pipeline, changes, current, expect, jdbc
from tests.spark.shop import rows


def everything() -> Pipeline:
    p = Pipeline("everything")

    @p.step("b.orders", key="id", op="op")
    @expect.drop("amount >= 0", quarantine="b.bad")
    @expect.fail(expect.unique("id"))
    def orders(raw: DataFrame = changes("a.orders")) -> DataFrame:
        return raw

    @p.step("c.history", key="id", mode="scd2")
    def history(orders: DataFrame = changes("b.orders")) -> DataFrame:
        return orders.drop("op")

    @p.step("c.total", mode="replace")
    def total(orders: DataFrame = current("b.orders")) -> DataFrame:
        return orders.agg(F.sum("amount").alias("amount"), F.count("*").alias("n"))

    return p


def run_both(lake: Lake, session: SparkSession) -> None:
    table = lake.create_table("a.orders", "id long not null, amount double", primary_key=["id"])
    table.append([{"id": 1, "amount": 1.0}, {"id": 2, "amount": 2.0}, {"id": 3, "amount": -1.0}])

    everything().run(lake, session=session)
    table.update({"amount": "5"}, "id = 1")
    table.delete("id = 2")
    everything().run(lake, session=session)

    assert lake.table("b.orders").to_arrow().to_pylist() == [{"id": 1, "amount": 5.0}]
    assert lake.table("b.bad").row_count == 1
    assert lake.table("c.total").to_arrow().to_pylist() == [{"amount": 5.0, "n": 1}]
    told = lake.table("c.history").to_arrow().to_pylist()
    assert sorted((r["id"], r["amount"], r["is_current"]) for r in told) == [
        (1, 1.0, False),
        (1, 5.0, True),
        (2, 2.0, True),
    ]
    assert everything().run(lake, session=session).status == "unchanged"
    assert [run.status for run in lake.runs.list()] == ["unchanged", "succeeded", "succeeded"]
    assert lake.check().clean


def test_a_pipeline_runs_on_postgresql(
    postgres_url: str, spark: SparkSession, tmp_path: Path
) -> None:
    with lakebed.open(postgres_url, warehouse=str(tmp_path / "warehouse"), create=True) as lake:
        run_both(lake, spark)


def test_another_database_is_read_by_the_driver_of_the_jdbc_jars(
    postgres_url: str, lake: Lake, spark: SparkSession
) -> None:
    server, _, schema = postgres_url.partition("schema=")
    parts = urlsplit(server)
    with psycopg.connect(server.rstrip("?&"), autocommit=True) as connection:
        connection.execute(f'CREATE TABLE "{schema}".people (id bigint, name text)')
        connection.execute(f"INSERT INTO \"{schema}\".people VALUES (1, 'Ada'), (2, NULL)")
    url = f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}"
    login = {"user": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    p = Pipeline("p")

    @p.step("b.people", key="id")
    def people(all: DataFrame = jdbc(url, table=f'"{schema}".people', **login)) -> DataFrame:
        return all

    p.run(lake, session=spark)

    assert rows(lake, "b.people") == [(1, "Ada"), (2, None)]
