"""Each kind of statement becomes the value that it says."""

from decimal import Decimal

import pytest

from lakebed.model.errors import SqlError, SqlParameters, SqlUnsupported
from lakebed.model.names import TableName
from lakebed.model.types import DecimalType, ListType, MapType, Primitive, StructType
from lakebed.sql import alterations as alter
from lakebed.sql.parameters import bind_parameters, parameters_of
from lakebed.sql.parse import parse_script
from lakebed.sql.query import Expression, Parameter, Select, Span
from lakebed.sql.statements import (
    AlterTable,
    Begin,
    Call,
    CommentOn,
    Commit,
    CopyFrom,
    CopyTo,
    CreateNamespace,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    DescribeNamespace,
    DropNamespace,
    DropTable,
    DropView,
    Explain,
    Insert,
    Merge,
    Rollback,
    Show,
    ShowCreate,
    ShowProperties,
    Statement,
    Truncate,
    Update,
    Use,
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
    "TRUNCATE TABLE s.t",
    "COPY s.t (a, b) FROM 'x.csv' (FORMAT csv, HEADER true)",
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


def test_statements_of_a_script_know_their_places() -> None:
    script = "SELECT 'a;b'; -- one; two\n\n  /* ; */ SELECT $$;$$ ;;\n"

    first, second = parse_script(script)

    assert (first.span, second.span) == (Span(0, 12, 1, 1), Span(37, 49, 3, 11))
    assert parse_script(" ; -- nothing\n;") == ()


@pytest.mark.parametrize(
    ("clause", "version", "timestamp", "branch"),
    [
        ("VERSION AS OF 3", 3, None, None),
        ("FOR VERSION AS OF 'tag'", "tag", None, None),
        ("FOR SYSTEM_VERSION AS OF 123456789012345", 123456789012345, None, None),
        ("version as of $v", Parameter("v"), None, None),
        ("TIMESTAMP AS OF '2024-01-31'", None, "'2024-01-31'", None),
        ("FOR SYSTEM_TIME AS OF now() - INTERVAL 1 DAY", None, "now() - INTERVAL 1 DAY", None),
        ("FOR TIMESTAMP AS OF ?", None, "$1", None),
        ("AT (VERSION => 3)", 3, None, None),
        ("AT (TIMESTAMP => $t)", None, "$t", None),
        ("@dev", None, None, "dev"),
        ('@"dev-1"', None, None, "dev-1"),
    ],
)
def test_time_travel_is_taken_out_of_the_text(
    clause: str, version: object, timestamp: str | None, branch: str | None
) -> None:
    space = "" if clause.startswith("@") else " "
    select = read(f"SELECT x.a FROM s.t{space}{clause} AS x WHERE x.a = 1")

    assert isinstance(select, Select)
    (table,) = select.tables
    assert " ".join(select.sql.split()) == 'SELECT x.a FROM "__lakebed_1" AS x WHERE x.a = 1'
    assert (table.name, table.alias) == (T, "x")
    assert (table.version, table.branch) == (version, branch)
    assert texts(table.timestamp) == [timestamp]
    assert parameters_of(select) == tuple(
        name for name in ("v", "1", "t") if f"${name}" in clause or (name == "1" and "?" in clause)
    )


@pytest.mark.parametrize(
    "sql",
    [
        "FROM t VERSION AS OF 1.5",
        "FROM t VERSION AS OF a + 1",
        "FROM t VERSION AS OF",
        "FROM t@",
        "FROM t@dev VERSION AS OF 3",
        "FROM t TIMESTAMP AS OF (SELECT max(ts) FROM u)",
    ],
)
def test_odd_time_travel_is_refused(sql: str) -> None:
    with pytest.raises(SqlError):
        parse_script(sql)


@pytest.mark.parametrize(
    ("text", "name", "metadata", "arguments"),
    [
        ("s.t$history", T, "history", ()),
        ('s."t$files"', T, "files", ()),
        ("T$SNAPSHOTS", TableName((), "T"), "snapshots", ()),
        ("s.t$changes(2, 5)", T, "changes", (2, 5)),
        ("s.t$changes('2024-01-01', ?)", T, "changes", ("2024-01-01", Parameter("1"))),
        ("table_changes('s.t', 2)", T, "changes", (2,)),
        ("s.t$other", TableName(("s",), "t$other"), None, ()),
    ],
)
def test_metadata_tables_are_told_from_names(
    text: str, name: TableName, metadata: str | None, arguments: tuple[object, ...]
) -> None:
    select = read(f"SELECT * FROM {text} AS m")

    assert isinstance(select, Select)
    (table,) = select.tables
    assert (table.name, table.metadata, table.arguments) == (name, metadata, arguments)
    assert select.sql == 'SELECT * FROM "__lakebed_1" AS m'


def test_ctes_are_no_tables_of_the_lake() -> None:
    select = read(
        """WITH t AS (SELECT * FROM t), u AS (SELECT * FROM t)
        SELECT * FROM T, u, (WITH v AS (SELECT 1) SELECT * FROM v, u) x, v, s.t"""
    )

    assert isinstance(select, Select)
    assert [str(table.name) for table in select.tables] == ["t", "v", "s.t"]


def test_tables_of_one_name_are_told_apart() -> None:
    select = read("SELECT a.t.id, b.t.id FROM a.t, b.t WHERE a.t.id = b.t.id")

    assert isinstance(select, Select)
    assert select.sql == (
        'SELECT "a.t".id, "b.t".id FROM "__lakebed_1" AS "a.t", "__lakebed_2" AS "b.t"'
        ' WHERE "a.t".id = "b.t".id'
    )


def test_needed_columns_are_a_superset_by_name() -> None:
    select = read(
        "SELECT o.id, lower(note), c.* FROM orders o JOIN customers c ON o.customer = c.id"
        " JOIN prices p USING (symbol) WHERE p.price > 1"
    )

    assert isinstance(select, Select)
    orders, customers, prices = (table.columns for table in select.tables)
    assert orders is not None
    assert prices is not None
    assert {"id", "note", "customer", "symbol"} <= orders
    assert "price" not in orders
    assert {"price", "symbol", "note"} <= prices
    assert not prices & {"customer", "id"}
    assert customers is None


@pytest.mark.parametrize(
    ("sql", "expected", "names"),
    [
        ("SELECT ?, ?", "SELECT $1, $2", ("1", "2")),
        ("SELECT $2, $1, $2", "SELECT $2, $1, $2", ("2", "1")),
        ("SELECT :a, $b, a[1:2], {'x':c}", "SELECT $a, $b, a[1:2], {'x':c}", ("a", "b")),
        ("SELECT '?', \"$1\", @x -- ?", "SELECT '?', \"$1\", @x", ()),
    ],
)
def test_parameters_are_named(sql: str, expected: str, names: tuple[str, ...]) -> None:
    select = read(sql)

    assert isinstance(select, Select)
    assert (select.sql, select.parameters) == (expected, names)


def test_parameters_are_checked_before_anything_runs() -> None:
    statement = read("UPDATE t SET a = ?, b = (SELECT max(x) FROM u VERSION AS OF ?) WHERE c = ?")

    assert bind_parameters(statement, [1, 2, 3]) == {"1": 1, "2": 2, "3": 3}
    named = read("CALL p($table, size => :size)")
    assert bind_parameters(named, {"table": "t", "size": 5}) == {"table": "t", "size": 5}
    for given in ([1, 2], [1, 2, 3, 4], {"a": 1}, None, "abc", 5):
        with pytest.raises(SqlParameters):
            bind_parameters(statement, given)  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="mixed"):
        parse_script("SELECT ?, $1")
    with pytest.raises(SqlError, match="mixed"):
        parse_script("SELECT $a, $1")


def test_explain_holds_a_query() -> None:
    explained = read("EXPLAIN ANALYZE FROM s.t")

    assert isinstance(explained, Explain)
    assert explained.analyze
    assert explained.select.tables[0].name == T
    with pytest.raises(SqlUnsupported):
        parse_script("EXPLAIN DELETE FROM t")


def test_insert_takes_values_queries_and_names() -> None:
    values = read("INSERT INTO s.t@dev (a, b.c) VALUES (1, ?), (2, 'x')")
    named = read("WITH x AS (FROM u) INSERT INTO s.t BY NAME SELECT * FROM x")
    plain = read("INSERT INTO TABLE t (SELECT 1)")

    assert isinstance(values, Insert)
    assert (values.target.name, values.target.branch) == (T, "dev")
    assert values.columns == (("a",), ("b", "c"))
    assert values.source.sql == "VALUES (1, $1), (2, 'x')"
    assert isinstance(named, Insert)
    assert named.by_name
    assert " ".join(named.source.sql.split()) == (
        'WITH x AS (FROM "__lakebed_1" AS "u") SELECT * FROM x'
    )
    assert isinstance(plain, Insert)
    assert plain.columns is None


def test_rows_of_literals_are_taken_as_they_are() -> None:
    many = ", ".join(["(1, -2.5, 'it''s', NULL, DATE '2024-01-01', $p)"] * 5_000)
    insert = read(f"INSERT INTO s.t VALUES {many} -- all")

    assert isinstance(insert, Insert)
    assert insert.source.sql == f"VALUES {many}"
    assert insert.source.parameters == ("p",)
    for odd in ("VALUES (1", "VALUES 1", "VALUES (1)) x", "VALUES (1, (2)"):
        with pytest.raises(SqlError):
            parse_script(f"INSERT INTO t {odd}")


def test_insert_overwrite_says_what_is_replaced() -> None:
    whole = read("INSERT OVERWRITE TABLE t SELECT 1")
    part = read("INSERT OVERWRITE t PARTITION (day = DATE '2024-01-01', hour) SELECT 1")
    where = read("INSERT INTO t REPLACE WHERE day = '2024-01-01' SELECT 1")

    assert isinstance(whole, Insert)
    assert whole.overwrite
    assert isinstance(part, Insert)
    assert [(p.column, texts(p.value)) for p in part.partition] == [
        ("day", ["DATE '2024-01-01'"]),
        ("hour", [None]),
    ]
    assert isinstance(where, Insert)
    assert where.overwrite
    assert texts(where.replace_where) == ["day = '2024-01-01'"]


def test_update_holds_expressions_over_its_relations() -> None:
    update = read(
        "UPDATE s.t SET a = s.t.a + 1, t.b = CASE WHEN x THEN (SELECT max(k) FROM u) END,"
        " c.d = DEFAULT, e = n.f FROM more.names AS n WHERE t.id = n.id AND t.z IN (FROM w)"
    )

    assert isinstance(update, Update)
    assert [(a.path, texts(a.value)) for a in update.assignments] == [
        (("a",), ['"t".a + 1']),
        (("b",), ['CASE WHEN x THEN (SELECT max(k) FROM "__lakebed_1" AS "u") END']),
        (("c", "d"), [None]),
        (("e",), ["n.f"]),
    ]
    assert texts(update.source, update.where) == [
        '"__lakebed_2" AS n',
        't.id = n.id AND t.z IN (FROM "__lakebed_3" AS "w")',
    ]
    assert update.where is not None
    assert update.source is not None
    assert [str(t.name) for t in (*update.where.tables, *update.source.tables)] == [
        "w",
        "more.names",
    ]


def test_delete_holds_its_condition() -> None:
    delete = read("DELETE FROM s.t AS x USING u JOIN v USING (k) WHERE x.id = u.id")
    everything = read("DELETE FROM s.t")

    assert isinstance(delete, Delete)
    assert delete.target.alias == "x"
    assert texts(delete.where, delete.source) == [
        "x.id = u.id",
        '"__lakebed_1" AS "u" JOIN "__lakebed_2" AS "v" USING (k)',
    ]
    assert isinstance(everything, Delete)
    assert everything.where is None


def test_merge_has_a_clause_for_each_kind_of_row() -> None:
    merge = read(
        """MERGE INTO s.t AS t USING (SELECT * FROM u WHERE ok) AS s ON t.id = s.id
        WHEN MATCHED AND s.op = CASE WHEN true THEN 'D' END THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.a = s.a, b = DEFAULT
        WHEN NOT MATCHED BY TARGET AND s.op <> 'D' THEN INSERT (id, a) VALUES (s.id, DEFAULT)
        WHEN NOT MATCHED BY SOURCE AND t.old THEN UPDATE SET a = 0
        WHEN NOT MATCHED BY SOURCE THEN DELETE"""
    )

    assert isinstance(merge, Merge)
    assert (merge.source.sql, merge.source_alias) == (
        'SELECT * FROM (SELECT * FROM "__lakebed_1" AS "u" WHERE ok) AS s',
        "s",
    )
    assert texts(merge.on) == ["t.id = s.id"]
    assert [(c.kind, c.action) for c in merge.clauses] == [
        ("matched", "delete"),
        ("matched", "update"),
        ("not_matched", "insert"),
        ("not_matched_by_source", "update"),
        ("not_matched_by_source", "delete"),
    ]
    assert texts(*(c.condition for c in merge.clauses)) == [
        "s.op = CASE WHEN true THEN 'D' END",
        None,
        "s.op <> 'D'",
        "t.old",
        None,
    ]
    assert [(a.path, texts(a.value)) for a in merge.clauses[1].assignments] == [
        (("a",), ["s.a"]),
        (("b",), [None]),
    ]
    assert merge.clauses[2].columns == (("id",), ("a",))
    assert texts(*merge.clauses[2].values) == ["s.id", None]


def test_merge_has_short_forms() -> None:
    merge = read(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING more.rows USING (id, k)"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    nothing = read("MERGE INTO t USING u s ON true WHEN MATCHED THEN DO NOTHING")

    assert isinstance(merge, Merge)
    assert merge.merge_schema
    assert texts(merge.on) == ['"t"."id" = "rows"."id" AND "t"."k" = "rows"."k"']
    assert [c.action for c in merge.clauses] == ["update_all", "insert_all"]
    assert isinstance(nothing, Merge)
    assert nothing.clauses[0].action == "nothing"


@pytest.mark.parametrize(
    "sql",
    [
        "MERGE INTO t USING u ON true",
        "MERGE INTO t USING u ON true WHEN MATCHED THEN INSERT *",
        "MERGE INTO t USING u ON true WHEN NOT MATCHED THEN DELETE",
        "MERGE INTO t USING u ON true WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
        "MERGE INTO t USING u ON true WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
        "MERGE INTO t USING (SELECT 1) ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING a JOIN b ON true WHEN MATCHED THEN DELETE",
        "UPDATE t SET a = 1 b = 2",
        "UPDATE t SET a = ",
        "UPDATE t SET (a, b) = (1, 2)",
        "UPDATE t SET a = 1 RETURNING *",
        "DELETE FROM t WHERE",
        "DELETE FROM t WHERE a = 1 LIMIT 5",
        "DELETE FROM t WHERE a = 1) OR (b = 2",
        "DELETE FROM t WHERE a = 1 FROM u",
        "INSERT INTO t DEFAULT VALUES",
        "INSERT INTO t VALUES (DEFAULT)",
        "INSERT INTO t SELECT 1 ON CONFLICT DO NOTHING",
        "INSERT INTO t",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "COPY t FROM x.csv",
        "COPY (DELETE FROM t) TO 'x'",
        "TRUNCATE t u",
    ],
)
def test_odd_changes_of_rows_are_refused(sql: str) -> None:
    with pytest.raises(SqlError):
        parse_script(sql)


def test_copy_names_files_formats_and_options() -> None:
    loaded = read("COPY s.t (a, b) FROM 'in.csv.gz' WITH (HEADER, DELIM ';', nulls ['', '-'])")
    spark = read("COPY INTO s.t FROM ? FILEFORMAT = PARQUET FORMAT_OPTIONS ('mergeSchema' = 'x')")
    table = read("COPY s.t (a, \"b c\") TO 'out.parquet' (compression zstd)")
    query = read("COPY (SELECT * FROM s.t WHERE a = 1) TO 'out.json' (FORMAT json)")

    assert isinstance(loaded, CopyFrom)
    assert (loaded.path, loaded.format, loaded.columns) == ("in.csv.gz", "csv", (("a",), ("b",)))
    assert loaded.options == (("header", True), ("delim", ";"), ("nulls", ("", "-")))
    assert isinstance(spark, CopyFrom)
    assert (spark.path, spark.format) == (Parameter("1"), "parquet")
    assert isinstance(table, CopyTo)
    assert (table.format, table.options) == ("parquet", (("compression", "zstd"),))
    assert table.source.sql == 'SELECT "a", "b c" FROM "__lakebed_1"'
    assert isinstance(query, CopyTo)
    assert query.source.tables[0].name == T


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


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (
            "ADD COLUMN a.b INT COMMENT 'x' FIRST",
            alter.AddColumn(
                ("a", "b"), Primitive("int"), comment="x", position=alter.Position(None)
            ),
        ),
        (
            "ADD IF NOT EXISTS a TEXT NOT NULL AFTER b",
            alter.AddColumn(
                ("a",),
                Primitive("string"),
                required=True,
                position=alter.Position("b"),
                if_not_exists=True,
            ),
        ),
        ("DROP COLUMN IF EXISTS a.b CASCADE", alter.DropColumn(("a", "b"), if_exists=True)),
        ("RENAME COLUMN a.b TO c", alter.RenameColumn(("a", "b"), "c")),
        ("RENAME TO u", alter.RenameTable(TableName((), "u"))),
        ("ALTER COLUMN a TYPE BIGINT", alter.SetColumnType(("a",), Primitive("long"))),
        ("ALTER a SET DATA TYPE DOUBLE", alter.SetColumnType(("a",), Primitive("double"))),
        ("ALTER a SET NOT NULL", alter.SetColumnRequired(("a",), True)),
        ("ALTER COLUMN a DROP NOT NULL", alter.SetColumnRequired(("a",), False)),
        ("ALTER a DROP DEFAULT", alter.SetColumnDefault(("a",), None)),
        ("ALTER COLUMN a COMMENT 'x'", alter.SetColumnComment(("a",), "x")),
        ("ALTER COLUMN a AFTER b", alter.MoveColumn(("a",), alter.Position("b"))),
        ("COMMENT 'x'", alter.SetTableComment("x")),
        ("SET TBLPROPERTIES ('a' = 'b', c.d = 5)", alter.SetProperties((("a", "b"), ("c.d", "5")))),
        ("UNSET TBLPROPERTIES IF EXISTS ('a', b)", alter.UnsetProperties(("a", "b"), True)),
        ("DROP CONSTRAINT IF EXISTS c", alter.DropConstraint("c", True)),
        ("ADD PRIMARY KEY (a, b)", alter.SetPrimaryKey(("a", "b"))),
        ("SET IDENTIFIER FIELDS a, b", alter.SetPrimaryKey(("a", "b"))),
        ("DROP PRIMARY KEY", alter.SetPrimaryKey(())),
        ("ADD PARTITION FIELD day(ts)", alter.AddPartitionField("day(ts)")),
        (
            "ADD PARTITION FIELD bucket(16, id) AS shard",
            alter.AddPartitionField("bucket(16, id)", "shard"),
        ),
        ("DROP PARTITION FIELD shard", alter.DropPartitionField("shard")),
        (
            "REPLACE PARTITION FIELD ts_day WITH hour(ts) AS h",
            alter.ReplacePartitionField("ts_day", "hour(ts)", "h"),
        ),
        ("PARTITIONED BY (a, day(b))", alter.SetPartitioning(("a", "day(b)"))),
        ("WRITE LOCALLY ORDERED BY a DESC, b", alter.SetSortOrder(("a desc", "b"))),
        ("WRITE UNORDERED", alter.SetSortOrder(())),
        (
            (
                "CREATE BRANCH IF NOT EXISTS b AS OF VERSION 3 RETAIN 2 DAYS"
                " WITH SNAPSHOT RETENTION 5 SNAPSHOTS 1 HOURS"
            ),
            alter.CreateRef(
                "branch",
                "b",
                3,
                if_not_exists=True,
                retain_ms=172_800_000,
                keep_snapshots=5,
                keep_snapshots_ms=3_600_000,
            ),
        ),
        ("CREATE OR REPLACE TAG q3", alter.CreateRef("tag", "q3", or_replace=True)),
        ("REPLACE TAG q3 AS OF VERSION 'b'", alter.CreateRef("tag", "q3", "b", or_replace=True)),
        ("DROP BRANCH IF EXISTS b", alter.DropRef("branch", "b", True)),
        ("DROP TAG q3", alter.DropRef("tag", "q3")),
    ],
)
def test_alter_table_has_an_action_for(text: str, action: alter.Alteration) -> None:
    statement = read(f"ALTER TABLE s.t {text}")

    assert isinstance(statement, AlterTable)
    assert (statement.name, statement.actions) == (T, (action,))


def test_alter_table_takes_several_actions_and_expressions() -> None:
    statement = read(
        "ALTER TABLE IF EXISTS s.t ADD COLUMNS (a INT, b TEXT), ALTER c SET DEFAULT f(1, 2),"
        " ADD CONSTRAINT k CHECK (a > 0 AND b IN ('x', 'y')), DROP COLUMNS (d, e)"
    )

    assert isinstance(statement, AlterTable)
    assert statement.if_exists
    a, b, default, check, d, e = statement.actions
    assert isinstance(default, alter.SetColumnDefault)
    assert texts(default.default) == ["f(1, 2)"]
    assert isinstance(check, alter.AddCheck)
    assert (check.name, check.condition.sql) == ("k", "a > 0 AND b IN ('x', 'y')")
    assert [x.path for x in (a, b, d, e)] == [("a",), ("b",), ("d",), ("e",)]  # type: ignore[union-attr]


def test_views_keep_the_text_of_their_query() -> None:
    view = read("CREATE OR REPLACE VIEW s.v (a COMMENT 'x', b) COMMENT 'c' AS\nSELECT 1, /* 2 */ 2")

    assert isinstance(view, CreateView)
    assert view.select.text == "SELECT 1, /* 2 */ 2"
    assert view.columns == (("a", "x"), ("b", None))
    assert (view.or_replace, view.comment) == (True, "c")
    assert read("DROP VIEW IF EXISTS s.v") == DropView(
        TableName(("s",), "v"), Span(0, 23, 1, 1), if_exists=True
    )


def test_namespaces_and_tables_are_created_and_dropped() -> None:
    created = read("CREATE NAMESPACE IF NOT EXISTS a.b COMMENT 'x' WITH DBPROPERTIES ('k' = 'v')")
    dropped = read("DROP DATABASE IF EXISTS a.b CASCADE")
    table = read("DROP TABLE IF EXISTS s.t PURGE")
    emptied = read("TRUNCATE TABLE s.t")

    assert isinstance(created, CreateNamespace)
    assert (created.namespace, created.if_not_exists) == (("a", "b"), True)
    assert created.properties == (("comment", "x"), ("k", "v"))
    assert isinstance(dropped, DropNamespace)
    assert (dropped.namespace, dropped.if_exists, dropped.cascade) == (("a", "b"), True, True)
    assert isinstance(table, DropTable)
    assert (table.name, table.if_exists, table.purge) == (T, True, True)
    assert isinstance(emptied, Truncate)
    assert emptied.target.name == T


def test_comments_are_set_and_removed() -> None:
    column, schema = parse_script(
        "COMMENT ON COLUMN s.t.a IS NULL; COMMENT ON SCHEMA a.b IS 'it''s'"
    )

    assert isinstance(column, CommentOn)
    assert (column.kind, column.name, column.path, column.comment) == (
        "column",
        ("s", "t"),
        ("a",),
        None,
    )
    assert isinstance(schema, CommentOn)
    assert (schema.kind, schema.name, schema.comment) == ("namespace", ("a", "b"), "it's")


def test_call_has_values() -> None:
    called = read(
        "CALL system.compact('s.t', -1.5, NULL, size => 5, tags => ['a', 'b'], ok := true, p => $p)"
    )
    restored = read("RESTORE TABLE s.t TO TIMESTAMP AS OF '2024-01-01'")

    assert isinstance(called, Call)
    assert called.procedure == ("system", "compact")
    assert called.positional == ("s.t", Decimal("-1.5"), None)
    assert called.named == (
        ("size", 5),
        ("tags", ("a", "b")),
        ("ok", True),
        ("p", Parameter("p")),
    )
    assert isinstance(restored, Call)
    assert restored.named == (("table", "s.t"), ("timestamp", "2024-01-01"))
    assert isinstance(read("CALL p()"), Call)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("BEGIN", Begin),
        ("START TRANSACTION", Begin),
        ("COMMIT WORK", Commit),
        ("END", Commit),
        ("ROLLBACK TRANSACTION", Rollback),
        ("ABORT", Rollback),
    ],
)
def test_transactions_begin_and_end(sql: str, kind: type) -> None:
    assert isinstance(read(sql), kind)


def test_show_and_describe_name_what_they_show() -> None:
    def shown(sql: str) -> tuple[object, ...]:
        statement = read(sql)
        assert isinstance(statement, Show)
        return statement.what, statement.namespace, statement.pattern

    assert shown("SHOW TABLES") == ("tables", None, None)
    assert shown("SHOW VIEWS IN a.b 'x*'") == ("views", ("a", "b"), "x*")
    assert shown("SHOW SCHEMAS LIKE 'x%'") == ("namespaces", None, "x%")
    created, properties, described, column, space, used = parse_script(
        "SHOW CREATE TABLE s.t; SHOW TBLPROPERTIES s.t ('k'); DESC FORMATTED s.t;"
        " DESCRIBE s.t a.b; DESCRIBE SCHEMA a.b; USE SCHEMA a.b"
    )
    assert isinstance(created, ShowCreate)
    assert isinstance(properties, ShowProperties)
    assert (properties.name, properties.property) == (T, "k")
    assert isinstance(described, Describe)
    assert described.extended
    assert isinstance(column, Describe)
    assert (column.name, column.path) == (T, ("a", "b"))
    assert isinstance(space, DescribeNamespace)
    assert isinstance(used, Use)
    assert used.namespace == ("a", "b")


def test_history_is_a_query_of_the_metadata_table() -> None:
    select = read("DESCRIBE HISTORY s.t LIMIT 3")

    assert isinstance(select, Select)
    assert select.sql == 'SELECT * FROM "__lakebed_1" LIMIT 3'
    assert (select.tables[0].name, select.tables[0].metadata) == (T, "history")


def test_error_shows_statement_line_column_and_place() -> None:
    with pytest.raises(SqlError) as refused:
        parse_script("SELECT 1;\n\nSELECT *\n  FROM t WHERE (a = 1;\nSELECT 2")

    error = refused.value
    assert error.code == "SQL_SYNTAX"
    assert error.context == {"statement": 2, "line": 4, "character": 22}
    assert str(error).splitlines()[1:] == ["    FROM t WHERE (a = 1;", " " * 23 + "^"]
    assert error.hint


@pytest.mark.parametrize(
    ("sql", "place", "message"),
    [
        ("SELECT 'abc", 8, "not closed"),
        ('SELECT "abc', 8, "not closed"),
        ("SELECT /* abc", 8, "not closed"),
        ("SELEC 1", 1, "expected a statement"),
        ("CREATE TABLE t (a INT b TEXT)", 23, "expected"),
        ("SELECT a FROM t WHERE a = = 1", 27, "missing"),
        ("SELECT € FROM t", 8, "unexpected character"),
        ("INSERT t VALUES (1)", 8, "expected INTO"),
    ],
)
def test_error_points_at_the_place(sql: str, place: int, message: str) -> None:
    with pytest.raises(SqlError, match=message) as refused:
        parse_script(sql)

    assert refused.value.context["character"] == place
