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


def test_columns_may_be_named_by_namespace_and_table(lake: Lake, sp: Spark) -> None:
    lake.create_table("z.orders", "id long, n int").append([{"id": 1, "n": 5}])

    found = sp.sql(
        "SELECT s.orders.id, z.orders.n, s.orders.note FROM s.orders"
        " JOIN z.orders ON s.orders.id = z.orders.id WHERE s.orders.customer = 1"
    )

    assert rows(found) == [(1, 5, "{x}")]
    assert sp.sql("SELECT s.orders.* FROM s.orders WHERE s.orders.id = 2").columns == [
        "id",
        "customer",
        "note",
    ]


def test_views_show_what_the_lakes_own_sql_shows(lake: Lake, sp: Spark) -> None:
    lake.sql("USE s; CREATE VIEW big AS SELECT id, customer AS c, note FROM orders WHERE id > 0")
    lake.sql(
        "CREATE VIEW s.names (who, orders) AS SELECT name, count(*) AS n FROM s.big"
        " JOIN s.customers ON c = customers.id GROUP BY name"
    )

    for text in (
        "SELECT * FROM s.names",
        "SELECT names.who, b.note FROM s.names JOIN s.big AS b ON b.id = names.orders",
        "WITH names AS (SELECT 7 AS orders) SELECT sum(s.big.id) + max(orders) FROM s.big, names",
    ):
        wanted = [tuple(row.values()) for row in lake.sql(text).to_pylist()]
        assert rows(sp.sql(text)) == sorted(wanted), text
    lake.table("s.orders").append([{"id": 9, "customer": 1, "note": None}])
    with lake.transaction() as tx:
        tx.table("s.orders").append([{"id": 10, "customer": 1, "note": None}])
        seen = sp.sql("SELECT * FROM s.names WHERE who = 'b'", transaction=tx)
        assert rows(seen) == [("b", 4)]
    sp.sql("INSERT INTO s.customers BY NAME SELECT 100L + orders AS id, who AS name FROM s.names")
    assert rows(sp.sql("SELECT id FROM s.customers WHERE id > 99")) == [(101,), (104,)]


def test_views_that_may_mean_something_else_are_refused(
    lake: Lake, sp: Spark, spark: SparkSession
) -> None:
    lake.sql("CREATE VIEW s.half AS SELECT id / 2 AS h FROM s.orders")
    lake.sql("CREATE VIEW s.plain AS SELECT id FROM s.orders")

    with pytest.raises(SqlUnsupported, match=r"s\.half may mean something else.*id / 2"):
        sp.sql("SELECT * FROM s.half")
    with pytest.raises(SqlUnsupported, match="no versions"):
        sp.sql("SELECT * FROM s.plain VERSION AS OF 1")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with pytest.raises(SqlUnsupported, match="timeZone"):
        sp.sql("SELECT * FROM s.plain")


def test_what_the_lake_knows_of_a_table_is_a_table_too(lake: Lake, sp: Spark) -> None:
    lake.table("s.orders").delete("id = 0")

    history = sp.sql("SELECT version, operation, time, summary FROM s.`orders$history` WHERE true")
    joined = sp.sql(
        "SELECT h.operation, f.deleted_rows FROM s.`orders$files` AS f"
        " JOIN s.`orders$history` AS h ON h.version = f.added_version"
    )

    wanted = lake.sql("SELECT version, operation, time FROM s.orders$history").to_pylist()
    assert rows(history.select("version", "operation")) == sorted(
        (row["version"], row["operation"]) for row in wanted
    )
    assert rows(joined) == [("delete", 1)]  # the version that gave the file its vector
    with pytest.raises(SqlUnsupported, match="no table"):
        sp.sql("SELECT * FROM s.`orders$changes`")
    with pytest.raises(SqlUnsupported, match="no versions"):
        sp.sql("SELECT * FROM s.`orders$history` VERSION AS OF 1")
