"""INSERT, UPDATE, DELETE and MERGE in Spark's SQL; what is refused, and how."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakebed.api.lake import Lake
from lakebed.api.spark import Spark
from lakebed.api.table import Table
from lakebed.model.errors import (
    AmbiguousMerge,
    InvalidExpression,
    InvalidInput,
    LakebedError,
    QueryError,
    SchemaMismatch,
    SqlError,
    SqlUnsupported,
)


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("a.t", "id long not null, n int, k string, x double")
    made.append([{"id": n, "n": n * 10, "k": f"k{n}", "x": n / 2} for n in range(1, 5)])
    return made


@pytest.fixture
def sp(lake: Lake, spark: SparkSession) -> Spark:
    return lake.spark(spark)


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def test_statements_change_rows(table: Table, sp: Spark) -> None:
    sp.session.range(4, 7).createOrReplaceTempView("more")

    inserted = sp.sql("INSERT INTO a.t (id, x) SELECT id + 10, 1.5 FROM more;", message="why")
    sp.sql("INSERT INTO a.t BY NAME SELECT 'v' AS k, 20L AS id")
    sp.sql("INSERT INTO a.t VALUES (21, 1, 'a', 0.1)")
    updated = sp.sql("UPDATE a.t AS z SET z.n = z.n + 1, k = 'x, WHERE' WHERE z.id = 1")
    deleted = sp.sql("DELETE FROM a.t z WHERE z.id IN (2, 3)")

    assert (inserted.message, inserted.summary["added_rows"]) == ("why", 3)
    assert (updated.summary["updated_rows"], deleted.summary["deleted_rows"]) == (1, 2)
    assert rows_of(table) == [
        (1, 11, "x, WHERE", 0.5),
        (4, 40, "k4", 2.0),
        (14, None, None, 1.5),
        (15, None, None, 1.5),
        (16, None, None, 1.5),
        (20, None, "v", None),
        (21, 1, "a", 0.1),
    ]


def test_merge_joins_tables_and_queries(lake: Lake, table: Table, sp: Spark) -> None:
    lake.create_table("a.s", "id long, n int").append([{"id": 1, "n": 5}, {"id": 9, "n": 6}])

    commit = sp.sql("""
        MERGE INTO a.t AS t -- a comment
        USING (SELECT s.id, s.n, t.k AS old FROM a.s AS s LEFT JOIN a.t AS t ON s.id = t.id) AS s
        ON t.id = s.id
        WHEN MATCHED AND s.n > 100 THEN DELETE
        WHEN MATCHED THEN UPDATE SET n = CASE WHEN s.n > 1 THEN t.n + s.n ELSE 0 END, t.k = s.old
        WHEN NOT MATCHED AND s.n = 6 THEN INSERT (id, k) VALUES (s.id, concat('a', ','))
        WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN DELETE
    """)

    counted = [commit.summary[f"{what}_rows"] for what in ("inserted", "updated", "deleted")]
    assert counted == [1, 1, 1]
    assert rows_of(table) == [
        (1, 15, "k1", 0.5),
        (2, 20, "k2", 1.0),
        (3, 30, "k3", 1.5),
        (9, None, "a,", None),
    ]


def test_statements_in_a_transaction_see_it(table: Table, lake: Lake, sp: Spark) -> None:
    with lake.transaction() as tx:
        sp.sql("DELETE FROM a.t WHERE id > 1", transaction=tx)
        sp.sql("INSERT INTO a.t BY NAME SELECT id + 50 AS id, k FROM a.t", transaction=tx)
        assert sp.sql("SELECT count(*) FROM a.t", transaction=tx).collect() == [(2,)]
        assert table.row_count == 4
    assert rows_of(table) == [(1, 10, "k1", 0.5), (51, None, "k1", None)]


def test_overwrite_and_a_branch_by_name(table: Table, lake: Lake, sp: Spark) -> None:
    table.create_branch("dev")
    sp.sql("UPDATE a.t@dev SET n = 0")
    sp.sql("INSERT OVERWRITE a.t SELECT 1, 2, 'z', 3.0")

    assert rows_of(table) == [(1, 2, "z", 3.0)]
    assert {row[1] for row in rows_of(lake.table("a.t@dev"))} == {0}


REFUSED: list[tuple[str, type[LakebedError]]] = [
    ("DROP TABLE a.t", SqlUnsupported),
    ("DELETE FROM a.t WHERE id IN (SELECT id FROM a.t)", InvalidExpression),
    ("DELETE FROM a.t WHERE n", InvalidExpression),
    ("DELETE FROM a.t WHERE nothing = 1", InvalidExpression),
    ("DELETE FROM a.t WHERE", SqlError),
    ("DELETE FROM a.t WHERE id = 1) OR (1 = 1", LakebedError),
    ("UPDATE a.t SET n = max(n)", InvalidExpression),
    ("UPDATE a.t SET n = row_number() OVER (ORDER BY id)", InvalidExpression),
    ("UPDATE a.t SET n = explode(array(1, 2))", InvalidExpression),
    ("UPDATE a.t SET nothing = 1", InvalidExpression),
    ("UPDATE a.t SET n = 'text'", SchemaMismatch),
    ("UPDATE a.t SET n = k", SchemaMismatch),
    ("UPDATE a.t SET n = n + 0.5", SchemaMismatch),
    ("UPDATE a.t SET id = NULL", SchemaMismatch),
    ("UPDATE a.t SET n = 1 / 0", QueryError),
    ("UPDATE a.t SET n = 2147483647 + n", LakebedError),
    ("UPDATE a.t SET k = 'a\\'b'", SqlUnsupported),
    ("INSERT INTO a.t SELECT 1, 2", SchemaMismatch),
    ("INSERT INTO a.t (id, nothing) VALUES (1, 2)", SchemaMismatch),
    ("MERGE INTO a.t t USING a.t s ON t.id = s.id WHEN MATCHED THEN INSERT *", SqlError),
    ("MERGE INTO a.t t USING a.t s ON t.id = s.id", InvalidInput),
]


@pytest.mark.parametrize(("text", "kind"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
def test_bad_statements_change_nothing(
    text: str, kind: type[LakebedError], table: Table, sp: Spark
) -> None:
    before = rows_of(table)

    with pytest.raises(kind):
        sp.sql(text)

    assert (table.version, rows_of(table)) == (1, before)


def test_two_source_rows_for_one_row_are_refused_with_their_key(table: Table, sp: Spark) -> None:
    twice = sp.session.createDataFrame([(1, 5), (1, 6), (2, 7)], "id long, n int")

    with pytest.raises(AmbiguousMerge, match="id = 1"):
        sp.merge("a.t", twice, "t.id = s.id").when_matched_update({"n": "s.n"}).execute()
    merged = sp.merge("a.t", twice, "t.id = s.id").when_matched_update({"n": "s.n"}, "s.n <> 5")
    commit = merged.execute()  # only one of the two acts

    assert commit is not None
    assert commit.summary["updated_rows"] == 2
    assert [row[1] for row in rows_of(table)] == [6, 7, 30, 40]


def test_a_source_that_changes_each_time_is_computed_once(table: Table, sp: Spark) -> None:
    source = sp.session.range(1, 5).select("id", (F.rand() * 1e9).cast("int").alias("n"))
    seen = source.withColumn("k", F.col("n").cast("string")).withColumn("x", F.col("n") * 1.0)

    sp.merge(
        "a.t", seen.selectExpr("id", "n", "k", "double(n) AS x"), "t.id = s.id"
    ).when_matched_update_all().execute()

    assert all(str(n) == k and n == x for _, n, k, x in rows_of(table))


def test_row_ids_outlive_updates_and_merges(table: Table, lake: Lake, sp: Spark) -> None:
    sp.delete("a.t", "id = 4")
    before = {row["id"]: row["n"] for row in table.to_arrow().to_pylist()}
    sp.update("a.t", {"n": "n + 1"}, "id <= 2")
    source = sp.session.createDataFrame([(3, 0), (8, 0)], "id long, n int")
    merge = sp.merge("a.t", source, "t.id = s.id").when_matched_update({"n": "s.n"})
    merge.when_not_matched_insert({"id": "s.id"}).execute()

    changes = table.changes(from_version=2).to_arrow().to_pylist()

    pairs = [(c["_op"], c["id"], c["n"]) for c in changes]
    assert sorted(p for p in pairs if p[0] == "update_before") == [
        ("update_before", n, before[n]) for n in (1, 2, 3)
    ]
    assert ("insert", 8, None) in pairs
    assert not [p for p in pairs if p[0] == "delete"]


def test_upserts_take_any_key_and_refuse_null_and_repeated_ones(
    table: Table, lake: Lake, sp: Spark
) -> None:
    frame = sp.session.createDataFrame
    schema = "id long, n int, k string, x double"

    sp.upsert(frame([(9, 0, "k1", None), (8, 0, "new", None)], schema), "a.t", key="k")

    assert rows_of(table)[-2:] == [(8, 0, "new", None), (9, 0, "k1", None)]
    with pytest.raises(SchemaMismatch, match="'k'"):
        sp.upsert(frame([(9, 0, None, None)], schema), "a.t", key="k")
    with pytest.raises(AmbiguousMerge, match="k = 'a'"):
        sp.upsert(frame([(1, 0, "a", None), (2, 0, "a", None)], schema), "a.t", key="k")
    with pytest.raises(InvalidInput, match="primary key"):
        sp.upsert(frame([(9, 0, "a", None)], schema), "a.t")
    with pytest.raises(SchemaMismatch, match="lacks"):
        sp.upsert(sp.session.range(1), "a.t", key="id")
