"""Queries reach nothing of the host: functions, files and statements are refused with a reason."""

import duckdb
import pytest

from lakebed.model.errors import SqlError
from lakebed.sql.parse import parse_script
from lakebed.sql.query import Select
from lakebed.sql.sandbox import HARMLESS_SOURCES


def functions_of_the_engine(*kinds: str) -> list[str]:
    with duckdb.connect() as engine:
        rows = engine.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions()"
            " WHERE list_contains(?, function_type) ORDER BY 1",
            [list(kinds)],
        ).fetchall()
    return [str(name) for (name,) in rows]


@pytest.mark.parametrize("name", functions_of_the_engine("table", "table_macro", "pragma"))
def test_table_function_is_refused_unless_it_is_harmless(name: str) -> None:
    for sql in (
        f"SELECT * FROM {name}('x')",
        f'FROM t, LATERAL "{name.upper()}"(t.a)',
        f"SELECT (SELECT 1 FROM main.{name}(1))",
        f"FROM (a JOIN {name}(1) ON true)",
        f"INSERT INTO t FROM {name}(1)",
        f"UPDATE t SET a = (SELECT max(x) FROM {name}(1))",
        f"MERGE INTO t USING {name}(1) s ON true WHEN MATCHED THEN DELETE",
        f"COPY (FROM {name}(1)) TO 'x.csv'",
        f"CREATE VIEW v AS FROM {name}(1)",
    ):
        if name in HARMLESS_SOURCES and "main." not in sql:
            assert parse_script(sql)
        else:
            with pytest.raises(SqlError):
                parse_script(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT getenv('HOME')",
        "SELECT current_setting('s3_secret_access_key')",
        "SELECT 'a'.getenv()",
        "SELECT \"getenv\" /* */ ('HOME')",
        "SELECT getvariable('x')",
        "SELECT write_log('x')",
        "SELECT nextval('s')",
        "SELECT sleep_ms(100000)",
        "SELECT * FROM t WHERE a = (SELECT content FROM read_text('/etc/passwd'))",
        "FROM 'data.parquet'",
        "FROM s.'data.csv'",
        "SELECT * FROM $1",
        "SELECT * FROM ?",
        "SELECT * INTO x FROM t",
        "WITH d AS (DELETE FROM t RETURNING *) FROM d",
        "WITH d AS (INSERT INTO t VALUES (1) RETURNING *) FROM d",
        "WITH d AS (COPY t TO 'x.csv') FROM d",
        "ATTACH 'x.db' AS x",
        "DETACH x",
        "INSTALL httpfs",
        "FORCE INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET threads",
        "PRAGMA database_list",
        "EXPORT DATABASE 'x'",
        "IMPORT DATABASE 'x'",
        "CHECKPOINT",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "CREATE MACRO m(a) AS a",
        "CREATE SECRET s (TYPE s3)",
        "CREATE TEMP TABLE t (a int)",
        "CREATE FUNCTION f() AS 1",
        "ALTER DATABASE x SET ALIAS TO y",
    ],
)
def test_statement_that_leaves_the_lake_is_refused(sql: str) -> None:
    with pytest.raises(SqlError) as refused:
        parse_script(sql)

    assert refused.value.code in ("SQL_UNSUPPORTED", "SQL_SYNTAX")
    assert "line 1" in str(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT /* /* */ 1, getenv('x') /* */ */",
        "SELECT 1 -- x\r, getenv('x')",
        "SELECT e'\\', getenv('x') --'",
        "SELECT $$ ' $$, getenv('x'), $$ ' $$",
        "SELECT '\\', getenv('x') --'",
        'SELECT "a""", getenv(\'x\')',
        "SELECT `a``b`, getenv('x')",
        "SELECT U&'\\', getenv('x') --'",
    ],
)
def test_quotes_and_comments_hide_no_call(sql: str) -> None:
    """What stands inside a comment or a string here must do so in the engine too."""
    try:
        (select,) = parse_script(sql)
    except SqlError:
        return

    assert isinstance(select, Select)
    assert "getenv" not in said_by_the_engine(select.sql)


def said_by_the_engine(sql: str) -> str:
    """The first line of its refusal, or nothing: it has no function getenv to call."""
    with duckdb.connect() as engine:
        try:
            engine.sql(sql)
        except duckdb.Error as error:
            return str(error).splitlines()[0]
    return ""


def test_names_of_files_in_double_quotes_are_names_of_tables() -> None:
    (select,) = parse_script('FROM "x.parquet"')

    assert isinstance(select, Select)
    assert select.sql == 'FROM "__lakebed_1" AS "x.parquet"'
    assert select.tables[0].name.name == "x.parquet"


def test_placeholders_cannot_be_named_by_the_user() -> None:
    with pytest.raises(SqlError, match="reserved"):
        parse_script('WITH "__LAKEBED_1" AS (SELECT 1) SELECT * FROM t')


def test_catalogs_of_the_engine_are_no_tables_of_the_lake() -> None:
    (select,) = parse_script("FROM information_schema.tables, duckdb_settings, pg_catalog.pg_class")

    assert isinstance(select, Select)
    assert len(select.tables) == 3
    assert "information_schema" not in select.sql
