"""Whatever is asked of `lake.sql`: an answer or a LakebedError, and a refusal writes nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakebed
from lakebed import Lake, LakebedError
from tests.unit.sql.examples import STATEMENTS
from tests.unit.sql.queries import QUERIES

SETUP = (
    "CREATE SCHEMA sales",
    "CREATE TABLE sales.orders (id BIGINT, name TEXT, amount DOUBLE, ts TIMESTAMP)",
    "INSERT INTO sales.orders VALUES (1, 'a', 1.5, NULL), (2, NULL, NULL, '2026-01-01 00:00:00Z')",
    "CREATE TABLE sales.t (a INT, b TEXT, s STRUCT<x: INT>)",
    "INSERT INTO sales.t VALUES (1, 'x', NULL)",
    "CREATE VIEW sales.v AS SELECT id FROM sales.orders",
)
TABLES = ("sales.orders", "sales.t", "sales.v", "sales.nope", "orders", "sales.orders$history")
COLUMNS = ("id", "name", "amount", "ts", "a", "b", "s.x", "nope", "*", '"q"')
VALUES = (
    "1",
    "-7",
    "NULL",
    "'x'",
    "1.5",
    "1e400",
    "now()",
    "[1]",
    "{'x': 1}",
    "DATE '2026-01-01'",
    "?",
)
CONDITIONS = (
    "id = 1",
    "a > 0",
    "name LIKE '%'",
    "id // 0 = 1",
    "nope",
    "TRUE",
    "1",
    "id IN (FROM sales.t)",
)

_MERGE = (
    "MERGE INTO {table} t USING {other} o ON t.{column} = o.{column}"
    " WHEN MATCHED AND {condition} THEN UPDATE SET {column} = {value}"
    " WHEN NOT MATCHED THEN INSERT *"
)


@st.composite
def statements(draw: st.DrawFn) -> str:
    def one(choices: tuple[str, ...]) -> str:
        return draw(st.sampled_from(choices))

    table, column, value, condition = one(TABLES), one(COLUMNS), one(VALUES), one(CONDITIONS)
    shape = one(
        (
            "SELECT {column} FROM {table} WHERE {condition}",
            "SELECT {column}, count(*) FROM {table} GROUP BY {column} ORDER BY {value}",
            "SELECT {value} FROM {table} a JOIN {other} b ON a.{column} = b.{column}",
            "SELECT * FROM {table} VERSION AS OF {value}",
            "SELECT * FROM {table} TIMESTAMP AS OF {value}",
            "INSERT INTO {table} VALUES ({value}, {value2}, {value}, {value2})",
            "INSERT INTO {table} ({column}) VALUES ({value})",
            "INSERT INTO {table} SELECT * FROM {other}",
            "INSERT OVERWRITE {table} SELECT {column} FROM {other} WHERE {condition}",
            "UPDATE {table} SET {column} = {value} WHERE {condition}",
            "UPDATE {table} SET {column} = o.{column} FROM {other} AS o WHERE {condition}",
            "DELETE FROM {table} WHERE {condition}",
            "DELETE FROM {table} WHERE {column} = (SELECT {column} FROM {other})",
            _MERGE,
            "CREATE TABLE sales.made AS SELECT {column} FROM {table} WHERE {condition}",
            "CREATE OR REPLACE TABLE {table} AS SELECT {column}, {value} AS v FROM {other}",
            "CREATE OR REPLACE VIEW {table} AS SELECT {column} FROM {other}",
            "ALTER TABLE {table} ADD COLUMN {column} INT DEFAULT {value}",
            "ALTER TABLE {table} DROP COLUMN {column}",
            "ALTER TABLE {table} ADD CONSTRAINT c CHECK ({condition})",
            "CALL restore('{table}', {value})",
            "BEGIN; DELETE FROM {table}; INSERT INTO {other} ({column}) VALUES ({value}); COMMIT",
            "TRUNCATE TABLE {table}",
            "DESCRIBE {table}",
            "EXPLAIN SELECT {column} FROM {table} WHERE {condition}",
        )
    )
    return shape.format(
        table=table,
        other=one(TABLES),
        column=column,
        value=value,
        value2=one(VALUES),
        condition=condition,
    )


def versions(lake: Lake) -> dict[str, int]:
    return {name: lake.table(name).version for name in lake.tables()}


def data_files(folder: Path) -> set[str]:
    return {str(p) for p in (folder / "warehouse").rglob("*.parquet")}


def answers(lake: Lake, folder: Path, text: str) -> None:
    before, files = versions(lake), data_files(folder)
    refused = _refusal(lake, text)
    if refused is not None:
        assert refused.code != "ERROR"
        assert "__lakebed" not in refused.message
        if ";" not in text:  # the statements of a script before the wrong one stand
            assert versions(lake) == before, text
            assert data_files(folder) == files, text


def _refusal(lake: Lake, text: str) -> LakebedError | None:
    try:
        with lake.sql(text, [1] if "?" in text else None) as result:
            for _ in zip(result.to_batches(), range(20), strict=False):
                pass
    except LakebedError as error:
        return error
    return None


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, Path]]:
    folder = tmp_path_factory.mktemp("fuzz")
    with lakebed.open(str(folder), create=True) as opened:
        for text in SETUP:
            opened.sql(text)
        yield opened, folder


BOUNDED = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(text=statements())
@BOUNDED
def test_random_statements_are_answered_or_refused(place: tuple[Lake, Path], text: str) -> None:
    answers(*place, text)


@given(text=st.sampled_from([*STATEMENTS, *QUERIES]), cut=st.integers(0, 200))
@settings(BOUNDED, max_examples=80)
def test_known_statements_and_their_beginnings_are_answered_or_refused(
    place: tuple[Lake, Path], text: str, cut: int
) -> None:
    answers(*place, text if cut >= len(text) else text[:cut])
