"""CREATE TABLE: columns, types, constraints, layout."""

import pytest

from lakebed.model.errors import SqlError
from lakebed.model.types import DecimalType, ListType, MapType, Primitive, StructType
from lakebed.sql.parse import parse_script
from lakebed.sql.statements import (
    CreateTable,
)
from tests.unit.sql.examples import T, read, texts


def test_create_table_reads_columns_constraints_and_layout() -> None:
    created = read(
        """CREATE OR REPLACE TABLE IF NOT EXISTS s.t (
            id BIGINT NOT NULL PRIMARY KEY,
            price NUMERIC(10, 2) DEFAULT round(0.5, 1) NOT NULL COMMENT 'it''s',
            twice DOUBLE PRECISION GENERATED ALWAYS AS (price * 2),
            note VARCHAR(20) CHECK (length(note) > 0),
            CONSTRAINT positive CHECK (price > 0)
        ) USING iceberg PARTITIONED BY (region, day(ts), bucket(16, id), truncate(note, 4))
        ORDER BY (price DESC NULLS LAST, id) COMMENT 'prices'
        TBLPROPERTIES ('a.b' = 'c', write.mode = 5, on = true)"""
    )

    assert isinstance(created, CreateTable)
    assert (created.name, created.if_not_exists, created.or_replace) == (T, True, True)
    assert [(c.name, str(c.type), c.required) for c in created.columns] == [
        ("id", "long", True),
        ("price", "decimal(10,2)", True),
        ("twice", "double", False),
        ("note", "string", False),
    ]
    price = created.columns[1]
    assert (texts(price.default), price.comment) == (["round(0.5, 1)"], "it's")
    assert texts(created.columns[2].generated) == ["price * 2"]
    assert created.primary_key == ("id",)
    assert [(c.name, c.condition.sql) for c in created.checks] == [
        (None, "length(note) > 0"),
        ("positive", "price > 0"),
    ]
    assert created.partition_by == ("region", "day(ts)", "bucket(16, id)", "truncate(note, 4)")
    assert created.sort_by == ("price desc nulls last", "id")
    assert created.properties == (("a.b", "c"), ("write.mode", "5"), ("on", "true"))
    assert (created.comment, created.provider) == ("prices", "iceberg")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("TIMESTAMP", "timestamp"),
        ("TIMESTAMP(6) WITH TIME ZONE", "timestamp"),
        ("TIMESTAMP WITHOUT TIME ZONE", "timestamp_ntz"),
        ("timestamptz", "timestamp"),
        ("TIMESTAMP_NTZ", "timestamp_ntz"),
        ("INT", "int"),
        ("int8", "long"),
        ("SMALLINT", "short"),
        ("CHARACTER VARYING(5)", "string"),
        ("BYTEA", "binary"),
        ("FIXED(16)", "fixed(16)"),
        ("DECIMAL(5)", "decimal(5,0)"),
        ("FLOAT", "float"),
        ("UUID", "uuid"),
        ("INT[][]", "list<list<int>>"),
        ("INT ARRAY", "list<int>"),
        ("ARRAY<STRUCT<a: INT NOT NULL, b: TEXT>>", "list<struct<a: int not null, b: string>>"),
        ("ROW(a INT, `b c` MAP(TEXT, DOUBLE))", "struct<a: int, b c: map<string, double>>"),
    ],
)
def test_types_of_many_dialects_are_known(text: str, kind: str) -> None:
    created = read(f"CREATE TABLE t (a {text}, b INT)")

    assert isinstance(created, CreateTable)
    assert str(created.columns[0].type) == kind
    assert isinstance(
        created.columns[0].type, Primitive | DecimalType | ListType | MapType | StructType
    ) or kind.startswith("fixed")


def test_create_table_as_takes_a_query() -> None:
    created = read("CREATE TABLE t PARTITIONED BY (d) AS WITH x AS (SELECT 1 AS d) FROM x, s.u")
    like = read("CREATE TABLE t LIKE s.t")
    hive = read("CREATE TABLE t (a INT) PARTITIONED BY (ds STRING COMMENT 'x')")

    assert isinstance(created, CreateTable)
    assert created.select is not None
    assert [str(t.name) for t in created.select.tables] == ["s.u"]
    assert isinstance(like, CreateTable)
    assert like.like == T
    assert isinstance(hive, CreateTable)
    assert [(c.name, c.comment) for c in hive.columns] == [("a", None), ("ds", "x")]
    assert hive.partition_by == ("ds",)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t",
        "CREATE TABLE t ()",
        "CREATE TABLE t (a)",
        "CREATE TABLE t (a NUMERIC)",
        "CREATE TABLE t (a DECIMAL(40, 2))",
        "CREATE TABLE t (a HUGEINT)",
        "CREATE TABLE t (a FOO)",
        "CREATE TABLE t (a INT[3])",
        "CREATE TABLE t (a INT UNIQUE)",
        "CREATE TABLE t (a INT REFERENCES u (b))",
        "CREATE TABLE t (a INT GENERATED ALWAYS AS IDENTITY)",
        "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (b))",
        "CREATE TABLE t (a INT) LOCATION 's3://x'",
        "CREATE TABLE t (a INT) AS SELECT 1",
        "CREATE TABLE t (a INT DEFAULT)",
        "CREATE TABLE t (a INT) PARTITIONED BY (bucket(16))",
        "CREATE TABLE t (a INT CHECK (a > 0) garbage)",
        "CREATE INDEX i ON t (a)",
        "ALTER TABLE t",
        "ALTER TABLE t ADD",
        "ALTER TABLE t ALTER a TYPE INT USING a::INT",
        "ALTER TABLE t ADD a INT UNIQUE",
        "ALTER TABLE t CREATE BRANCH b RETAIN 5 MOONS",
        "ALTER VIEW v RENAME TO w",
        "DROP",
        "DROP INDEX i",
        "CREATE VIEW v AS SELECT ?",
        "CREATE VIEW v",
        "COMMENT ON TABLE t IS 5",
        "COMMENT ON COLUMN a IS 'x'",
        "CALL p",
        "CALL p(a => 1, 2)",
        "CALL p(SELECT 1)",
        "SHOW EVERYTHING",
        "USE",
        "BEGIN LATER",
        "garbage",
    ],
)
def test_odd_definitions_are_refused(sql: str) -> None:
    with pytest.raises(SqlError) as refused:
        parse_script(sql)

    assert refused.value.context["line"] == 1
