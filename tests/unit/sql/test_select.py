"""Queries keep their text and their answer when lake tables become placeholder relations."""

import re
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from lakebed.engines.arrow.evaluate import matches
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.sql.parse import parse_script
from lakebed.sql.query import Reference, Select, readable
from lakebed.sql.where import where_of
from tests.unit.sql import queries, tpch

SCHEMAS = {
    f"{namespace}.{name}": new_schema(parse_schema(columns))
    for namespace, tables in (("s", queries.TABLES), ("tpch", tpch.TABLES))
    for name, columns in tables.items()
}
PLACEHOLDER = re.compile(r'"__lakebed_\d+"( AS "[^"]*")?')


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE SCHEMA s; CREATE SCHEMA tpch")
        for name, rows in queries.ROWS.items():
            empty = to_arrow(SCHEMAS[f"s.{name}"]).empty_table()
            connection.register("empty", empty)
            connection.execute(f"CREATE TABLE s.{name} AS FROM empty")
            connection.execute(f"INSERT INTO s.{name} VALUES {rows}")
        for name, columns in tpch.TABLES.items():
            connection.execute(f"CREATE TABLE tpch.{name} ({columns})")
        yield connection


def read(sql: str) -> Select:
    (statement,) = parse_script(sql)
    assert isinstance(statement, Select)
    return statement


def pruned(engine: duckdb.DuckDBPyConnection, table: Reference, *, narrow: bool) -> pa.Table:
    """Only the rows and columns that the reference says are needed."""
    schema = SCHEMAS[str(table.name)]
    rows = engine.sql(f"FROM {table.name}").to_arrow_table().combine_chunks()
    rows = rows.cast(to_arrow(schema))
    kept = pa.Table.from_batches(
        [
            batch.filter(matches(where_of(table.where, schema, {}), batch))
            for batch in rows.to_batches()
        ],
        rows.schema,
    )
    if not narrow or table.columns is None:
        return kept
    needed = [name for name in kept.column_names if name.casefold() in table.columns]
    return kept.select(needed or kept.column_names[:1])


def answer(
    engine: duckdb.DuckDBPyConnection, sql: str, tables: tuple[Reference, ...] = ()
) -> tuple[list[str], list[str]]:
    result = engine.sql(sql).to_arrow_table()
    names = [readable(name, tables) for name in result.column_names]
    columns = [column.to_pylist() for column in result.columns]
    return names, sorted(repr(row) for row in zip(*columns, strict=True))


@pytest.mark.parametrize("sql", queries.QUERIES)
def test_query_gives_the_same_answer_from_pruned_tables(
    engine: duckdb.DuckDBPyConnection, sql: str
) -> None:
    select = read(sql)
    for table in select.tables:
        engine.register(table.placeholder, pruned(engine, table, narrow=True))

    assert answer(engine, select.sql, select.tables) == answer(engine, sql)


@pytest.mark.parametrize("sql", [*queries.QUERIES, *queries.CHANGING, *tpch.QUERIES.values()])
def test_query_keeps_its_text_but_for_the_tables(sql: str) -> None:
    select = read(sql)
    kept = re.sub(r"--[^\n]*|/\*.*\*/", lambda m: " " * len(m.group()), sql).rstrip()
    for table in reversed(select.tables):
        kept = kept[: table.span.start] + "?" + kept[table.span.end :]
    written = PLACEHOLDER.sub("?", select.sql)

    if select.sql.startswith("SELECT * FROM (") and not sql.startswith("SELECT * FROM ("):
        written = written.removeprefix("SELECT * FROM (").removesuffix(")")
    qualified = re.compile(r'(?:"?s"?\.)?"?\b(orders|customers)\b"?\.')
    assert qualified.sub("!", written).strip() == qualified.sub("!", kept).strip()


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_tpch_query_is_understood_and_can_be_planned(
    engine: duckdb.DuckDBPyConnection, number: int
) -> None:
    select = read(tpch.QUERIES[number])
    for table in select.tables:
        engine.register(table.placeholder, pruned(engine, table, narrow=True))

    assert answer(engine, select.sql, select.tables) == answer(engine, tpch.QUERIES[number])


def schema_of(table: Reference) -> Schema:
    return SCHEMAS[str(table.name)]


@pytest.mark.parametrize(
    ("number", "table", "columns"),
    [
        (1, "lineitem", {"l_shipdate"}),
        (3, "orders", {"o_orderdate"}),
        (3, "lineitem", {"l_shipdate"}),
        (3, "customer", {"c_mktsegment"}),
        (4, "orders", {"o_orderdate"}),
        (5, "orders", {"o_orderdate"}),
        (5, "region", {"r_name"}),
        (6, "lineitem", {"l_shipdate", "l_quantity"}),
        (12, "lineitem", {"l_receiptdate", "l_shipmode"}),
        (14, "lineitem", {"l_shipdate"}),
        (15, "lineitem", {"l_shipdate"}),
        (16, "part", {"p_brand", "p_type", "p_size"}),
        (20, "lineitem", {"l_shipdate"}),
    ],
)
def test_tpch_query_prunes_by_its_unqualified_columns(
    number: int, table: str, columns: set[str]
) -> None:
    select = read(tpch.QUERIES[number])
    found = next(t for t in select.tables if t.name.name == table)

    where = where_of(found.where, schema_of(found), {})

    assert {name for name in tpch_columns(table) if f"'{name}'" in repr(where)} == columns


def tpch_columns(table: str) -> list[str]:
    return [field.name for field in SCHEMAS[f"tpch.{table}"].fields]
