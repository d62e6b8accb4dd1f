"""`Scan.to_duckdb()`: a relation of the user's own connection over one version of a table."""

import uuid
from pathlib import Path

import duckdb
import pytest

import lakebed
from lakebed import InvalidInput


@pytest.mark.parametrize("place", [":memory:", "folder"])
def test_a_relation_of_ones_own_connection(place: str, tmp_path: Path) -> None:
    uri = place if place == ":memory:" else str(tmp_path / "lake")
    key = uuid.uuid4()
    with lakebed.open(uri, create=True) as lake, duckdb.connect() as connection:
        table = lake.create_table("s.t", "id long, name string, u uuid", formats=["iceberg"])
        table.append([{"id": n, "name": f"n{n}", "u": key.bytes} for n in range(100)])
        table.delete("id < 10")

        rows = table.scan().to_duckdb(connection)
        table.append([{"id": 1000, "name": "later", "u": None}])  # not of that version

        assert rows.filter("id % 2 = 0").aggregate("count(*), min(id)").fetchall() == [(45, 10)]
        assert rows.filter("id = 10").project("name, u").fetchall() == [("n10", key)]
        joined = "SELECT count(*) FROM rows JOIN range(20) r(id) USING (id)"
        assert connection.sql(joined).fetchall() == [(10,)]


def test_without_a_connection_it_is_of_the_default_one() -> None:
    with lakebed.open(":memory:") as lake:
        table = lake.create_table("s.t", "id long")
        table.append([{"id": 1}, {"id": 2}])

        rows = table.scan(where="id > 1").to_duckdb()

        assert rows.columns == ["id"]
        found = duckdb.sql("SELECT * FROM rows")
        assert found is not None
        assert found.fetchall() == [(2,)]


def test_a_relation_needs_a_column() -> None:
    with lakebed.open(":memory:") as lake:
        table = lake.create_table("s.t", "id long")
        with pytest.raises(InvalidInput, match="column"):
            table.scan(columns=[]).to_duckdb()
