"""Spark's SQL over the lake's tables."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakebed import Lake
from lakebed.api.spark import Spark
from lakebed.model.errors import SqlUnsupported, TableNotFound


@pytest.fixture
def sp(lake: Lake, spark: SparkSession) -> Spark:
    lake.create_table("s.orders", "id long, customer long, note string").append(
        [{"id": n, "customer": n % 2, "note": "{x}"} for n in range(4)]
    )
    lake.create_table("s.customers", "id long, name string").append(
        [{"id": 0, "name": "a"}, {"id": 1, "name": "b"}]
    )
    return lake.spark(spark)


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_a_query_joins_tables_and_keeps_the_text_as_it_is(sp: Spark) -> None:
    found = sp.sql(
        "WITH few AS (SELECT * FROM s.orders WHERE orders.note = '{x}' AND id < 3)"
        " SELECT c.name, count(*) AS n, map('{k}', 1)['{k}'] FROM few JOIN s.customers AS c"
        " ON few.customer = c.id GROUP BY c.name"
    )

    assert rows(found) == [("a", 2, 1), ("b", 1, 1)]


def test_a_query_stays_at_its_versions_and_leaves_no_view(
    lake: Lake, sp: Spark, spark: SparkSession
) -> None:
    first = sp.sql("SELECT count(*) FROM s.orders")
    lake.table("s.orders").append([{"id": 9, "customer": 0, "note": None}])
    second = sp.sql("SELECT count(*) FROM s.orders")

    assert rows(first) == [(4,)]
    assert rows(second) == [(5,)]
    assert spark.catalog.listTables() == []


def test_a_query_may_choose_versions(lake: Lake, sp: Spark) -> None:
    table = lake.table("s.orders")
    table.create_tag("then")
    table.delete("id > 0")

    text = (
        "SELECT (SELECT count(*) FROM s.orders), (SELECT count(*) FROM s.orders VERSION AS OF 1),"
        " (SELECT count(*) FROM s.orders FOR VERSION AS OF 'then' AS o WHERE o.id > 1)"
    )
    assert rows(sp.sql(text)) == [(1, 4, 2)]
    with pytest.raises(SqlUnsupported, match="no number"):
        sp.sql("SELECT * FROM s.orders TIMESTAMP AS OF now()")


def test_names_that_only_spark_knows_are_left_to_it(
    lake: Lake, sp: Spark, spark: SparkSession
) -> None:
    spark.range(2).createTempView("mine")

    assert rows(sp.sql("SELECT mine.id, name FROM mine JOIN s.customers c USING (id)")) == [
        (0, "a"),
        (1, "b"),
    ]
    assert rows(sp.sql("SELECT 1 AS one")) == [(1,)]


def test_unknown_tables_are_told_with_the_closest_name(lake: Lake, sp: Spark) -> None:
    with pytest.raises(TableNotFound) as caught:
        sp.sql("SELECT * FROM s.order")
    assert "s.orders" in caught.value.hint
    lake.sql("CREATE VIEW s.v AS SELECT 1 AS one")
    with pytest.raises(SqlUnsupported, match="view"):
        sp.sql("SELECT * FROM s.v")
