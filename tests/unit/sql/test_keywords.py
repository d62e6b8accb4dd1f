"""Results that need no engine are called as the engine calls them."""

from collections.abc import Iterator

import duckdb
import pytest

from lakebed.model.quoting import quoted
from lakebed.sql.keywords import written_name


@pytest.fixture
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as engine:
        yield engine


def shown(engine: duckdb.DuckDBPyConnection, name: str) -> str:
    column = quoted(name)
    found: str = engine.sql(f"SELECT min({column}) FROM (SELECT 1 AS {column})").columns[0]
    return found


def test_every_keyword_of_the_engine_is_quoted(engine: duckdb.DuckDBPyConnection) -> None:
    words = [
        word for (word,) in engine.sql("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    ]

    assert [w for w in words if shown(engine, w) != f"min({written_name(w)})"] == []


@pytest.mark.parametrize(
    "name",
    ["id", "Id", "_a", "a1", "1a", "a b", "a-b", "a$b", 'a"b', "über", "Name", "VALUE", "date"],
)
def test_other_names_are_quoted_where_the_engine_quotes_them(
    engine: duckdb.DuckDBPyConnection, name: str
) -> None:
    assert shown(engine, name) == f"min({written_name(name)})"
