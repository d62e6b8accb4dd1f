"""Queries see the tables of the lake and nothing of the host."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakebed import Lake, LakebedError

SECRET = "a-secret-of-the-host"
ATTEMPTS = (
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_csv_auto('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_parquet('{folder}/*.parquet')",
    "SELECT * FROM parquet_scan('{file}')",
    "SELECT * FROM parquet_metadata('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM '{file}'",
    'SELECT * FROM "{file}"',
    'SELECT * FROM s."{file}"',
    "SELECT * FROM '{folder}/*.csv'",
    "FROM 'https://example.com/x.csv'",
    "SELECT content FROM s.t, LATERAL read_text('{file}')",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "WITH x AS (FROM read_text('{file}')) FROM x",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('s.t')",
    "SELECT * FROM query_table(['frame'])",
    "SELECT getenv('HOME')",
    "SELECT 'HOME'.getenv()",
    "SELECT current_setting('temp_directory')",
    "SELECT getvariable('x')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_tables()",
    "SELECT * FROM pragma_database_list()",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_tables",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM sqlite_scan('{folder}/lake/lakebed.db', 'tables')",
    "SELECT * FROM frame",
    "SELECT * FROM s.frame",
    "SELECT * FROM memory.main.frame",
    "ATTACH '{file}' AS x",
    "ATTACH '{folder}/lake/lakebed.db' (TYPE sqlite)",
    "DETACH memory",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET GLOBAL temp_directory = '{folder}'",
    "RESET lock_configuration",
    "PRAGMA database_list",
    "PRAGMA table_info('x')",
    "CALL pragma_version()",
    "CALL duckdb_settings()",
    "COPY s.t TO '{folder}/out.csv'",
    "COPY s.t FROM '{file}'",
    "COPY (SELECT 1) TO '{folder}/out.parquet' (FORMAT parquet)",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}'",
    "CREATE SECRET x (TYPE s3)",
    "CREATE MACRO m() AS TABLE FROM read_text('{file}')",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE VIEW s.v AS SELECT * FROM read_text('{file}')",
    "CREATE TABLE s.x AS FROM read_text('{file}')",
    "INSERT INTO s.t (id, name) SELECT 9, content FROM read_text('{file}')",
    "UPDATE s.t SET name = (SELECT content FROM read_text('{file}'))",
    "DELETE FROM s.t WHERE name IN (SELECT content FROM read_text('{file}'))",
    "MERGE INTO s.t USING read_text('{file}') AS x ON t.name = x.content WHEN MATCHED THEN DELETE",
    "ALTER TABLE s.t ADD COLUMN x TEXT DEFAULT getenv('HOME')",
    "ALTER TABLE s.t ADD CONSTRAINT c CHECK (name <> getenv('HOME'))",
    "SELECT * FROM s.t TIMESTAMP AS OF getenv('HOME')",
    "EXPLAIN SELECT * FROM read_text('{file}')",
    "SELECT 1; SELECT * FROM read_text('{file}')",
    "SELECT nextval('x')",
    "SELECT write_log('x')",
    "CHECKPOINT",
    "VACUUM",
    "PREPARE p AS SELECT 1",
)


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_statement_that_reaches_for_the_host_is_refused(
    lake: Lake, tmp_path: Path, attempt: str
) -> None:
    frame = pa.table({"secret": [SECRET]})  # a local variable that an engine could find
    file = tmp_path / "secret.csv"
    file.write_text(f"secret\n{SECRET}\n")
    before = sorted(p.name for p in tmp_path.iterdir())

    with pytest.raises(LakebedError) as caught:
        lake.sql(attempt.format(file=file, folder=tmp_path)).to_arrow()

    assert SECRET not in str(caught.value) + caught.value.hint
    assert caught.value.code in {
        "SQL_UNSUPPORTED",
        "SQL_SYNTAX",
        "TABLE_NOT_FOUND",
        "NAMESPACE_NOT_FOUND",
        "FORBIDDEN",
        "INVALID_NAME",
    }
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert lake.tables() == ["s.t"]
    assert lake.table("s.t").version == 1
    assert frame.num_rows == 1


def test_variable_of_the_caller_is_no_table(lake: Lake) -> None:
    t = pa.table({"id": [99]})
    with lake.sql_session() as session:
        rows = session.sql("USE s; SELECT count(*) AS n FROM t WHERE id = 99").to_pylist()

    assert rows == [{"n": 0}]
    assert t.num_rows == 1


def test_parameters_are_values_never_text_of_the_statement(lake: Lake) -> None:
    evil = "x'; DROP TABLE s.t; --"
    lake.sql("UPDATE s.t SET name = $n WHERE id = 1", {"n": evil})
    lake.sql("INSERT INTO s.t (id, name) VALUES (?, ?)", [4, evil])
    lake.sql(
        "MERGE INTO s.t USING (SELECT $n AS n) x ON t.name = x.n AND t.id = 4"
        " WHEN MATCHED THEN UPDATE SET name = $n || '!'",
        {"n": evil},
    )

    rows = lake.sql("SELECT id, name FROM s.t WHERE name LIKE $n || '%' ORDER BY id", {"n": evil})
    assert rows.to_pylist() == [{"id": 1, "name": evil}, {"id": 4, "name": evil + "!"}]
    lake.sql("DELETE FROM s.t WHERE name = ?", [evil])
    assert lake.sql("SELECT count(*) AS n FROM s.t").to_pylist() == [{"n": 3}]
