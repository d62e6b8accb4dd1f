"""A query is plain when the engine's own tree of it shows no way to other relations or files."""

import duckdb
import pytest

from lakebed.sql.plain import is_plain

PLAIN = (
    "SELECT 1",
    "FROM t",
    "SELECT * FROM T AS x, t JOIN t AS y USING (a) WHERE x.a IN (SELECT a FROM t)",
    "WITH w AS MATERIALIZED (SELECT 1 AS a) SELECT a, row_number() OVER (ORDER BY a DESC) FROM w",
    "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 5) FROM r LIMIT 3",
    "SELECT DISTINCT ON (a) a FROM t UNION ALL SELECT b FROM (VALUES (1), (2)) AS v(b) LIMIT 5%",
    "SELECT {'a': 1}, [x FOR x IN [1, 2]], CASE WHEN a THEN 1 END FROM t, range(5), unnest([1])",
    "SELECT $a FROM t GROUP BY CUBE (a, b) QUALIFY row_number() OVER () = 1",
)
OTHER = (
    "SELECT * FROM u",
    "SELECT * FROM main.t",
    "SELECT * FROM memory.main.t",
    "SELECT * FROM 'x.parquet'",
    "TABLE 'x.csv'",
    "SELECT * FROM read_text('x')",
    "SELECT (SELECT content FROM read_text('x'))",
    "SELECT * FROM t WHERE EXISTS (FROM glob('x'))",
    "SELECT * FROM t JOIN LATERAL (FROM read_csv(t.a)) ON true",
    "WITH w AS (FROM parquet_scan('x')) FROM w",
    'WITH "x.parquet" AS (SELECT 1) FROM "x.parquet"',
    "SELECT * FROM query_table('t')",
    "SELECT getenv('HOME')",
    "SELECT 'HOME'.getenv() FROM t",
    "DESCRIBE t",
    "SHOW TABLES",
    "PIVOT t ON a USING sum(b)",
    "FROM t PIVOT (sum(a) FOR b IN (1, 2))",
    "SELECT 1; SELECT 2",
    "CREATE TABLE x AS SELECT 1",
    "SELECT FROM WHERE",
    "",
)


def tree(sql: str) -> str:
    with duckdb.connect() as connection:
        ((found,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    return str(found)


@pytest.mark.parametrize("sql", PLAIN)
def test_query_over_its_relations_is_plain(sql: str) -> None:
    assert is_plain(tree(sql), {"t"})


@pytest.mark.parametrize("sql", OTHER)
def test_query_that_may_reach_further_is_not_plain(sql: str) -> None:
    assert not is_plain(tree(sql), {"t"})
