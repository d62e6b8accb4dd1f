"""Statements of every kind, and how tests read them."""

from lakebed.model.names import TableName
from lakebed.sql.parse import parse_script
from lakebed.sql.query import Expression
from lakebed.sql.statements import (
    Statement,
)

STATEMENTS = [
    "SELECT a, count(*) FROM s.t@dev AS x WHERE a = ? GROUP BY a",
    "SELECT * FROM s.t VERSION AS OF 3 JOIN u FOR SYSTEM_TIME AS OF '2024-01-01' USING (id)",
    "EXPLAIN ANALYZE SELECT 1",
    "INSERT INTO s.t (a, b) VALUES (1, 'x'), (2, NULL)",
    "INSERT OVERWRITE s.t PARTITION (day = '2024-01-01') SELECT * FROM u",
    "WITH x AS (FROM u) INSERT INTO s.t BY NAME SELECT * FROM x",
    "INSERT INTO s.t REPLACE WHERE day = '2024-01-01' SELECT * FROM u",
    "UPDATE s.t AS x SET a = CASE WHEN b THEN 1 END, c.d = u.e FROM u WHERE x.id = u.id",
    "DELETE FROM s.t USING u WHERE t.id = u.id AND t.a IS DISTINCT FROM u.a",
    (
        "MERGE INTO s.t USING (FROM u WHERE ok) AS s ON t.id = s.id WHEN MATCHED AND s.op THEN"
        " DELETE WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT (id, a) VALUES"
        " (s.id, s.a) WHEN NOT MATCHED BY SOURCE THEN DELETE"
    ),
    "INSERT INTO s.t (a, b) VALUES (1, DEFAULT), (DEFAULT, 'x')",
    "UPDATE s.t SET (a, b) = (1, DEFAULT), (c, d) = (SELECT e, f FROM u WHERE u.id = t.id)",
    "UPDATE s.t SET a = u.x FROM u JOIN v ON u.k = v.k, w WHERE t.id = u.id AND u.i = w.i",
    "WITH x(i) AS (FROM u), y AS (FROM x) UPDATE s.t SET a = 1 WHERE id IN (SELECT i FROM y)",
    "WITH x AS MATERIALIZED (FROM u) MERGE INTO t USING x ON a = (FROM u) WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE s.t",
    "COPY s.t (a, b) FROM 'x.csv' (FORMAT csv, HEADER true, DELIMITER ';', NULLSTR ['', 'NA'])",
    "COPY (SELECT * FROM s.t) TO 'x.parquet'",
    (
        "CREATE TABLE IF NOT EXISTS s.t (id BIGINT PRIMARY KEY, a DECIMAL(9) DEFAULT 0 COMMENT 'x',"
        " b STRUCT<c: INT NOT NULL>, d TEXT[], CHECK (a)) PARTITIONED BY (day(ts), bucket(16, i))"
        " SORTED BY (id DESC) TBLPROPERTIES ('k' = 'v')"
    ),
    "CREATE OR REPLACE TABLE s.t AS SELECT * FROM u",
    "DROP TABLE IF EXISTS s.t PURGE",
    "ALTER TABLE s.t ADD COLUMN a INT AFTER b, DROP COLUMN c, RENAME COLUMN d TO e",
    "ALTER TABLE s.t ALTER COLUMN a TYPE BIGINT",
    "ALTER TABLE s.t ADD PARTITION FIELD bucket(16, id) AS shard",
    "ALTER TABLE s.t CREATE OR REPLACE BRANCH b AS OF VERSION 3 RETAIN 7 DAYS",
    "ALTER TABLE s.t SET TBLPROPERTIES ('a' = 'b')",
    "ALTER TABLE s.t WRITE ORDERED BY a DESC NULLS LAST, b",
    "CREATE SCHEMA IF NOT EXISTS a.b COMMENT 'x'",
    "DROP NAMESPACE IF EXISTS a.b CASCADE",
    "CREATE OR REPLACE VIEW s.v (a COMMENT 'x', b) AS SELECT 1, 2",
    "DROP VIEW IF EXISTS s.v",
    "COMMENT ON COLUMN s.t.a IS 'it''s'",
    "CALL lake.optimize('s.t', max_size => 5, columns => ARRAY['a', 'b'])",
    "BEGIN TRANSACTION",
    "COMMIT",
    "ROLLBACK",
    "SHOW TABLES IN a.b LIKE 'x%'",
    "SHOW CREATE TABLE s.t",
    "DESCRIBE TABLE EXTENDED s.t",
    "DESCRIBE HISTORY s.t LIMIT 3",
    "USE a.b",
    "RESTORE TABLE s.t TO VERSION AS OF 3",
]
T = TableName(("s",), "t")


def read(sql: str) -> Statement:
    (statement,) = parse_script(sql)
    return statement


def texts(*found: Expression | None) -> list[str | None]:
    return [None if each is None else each.sql for each in found]
