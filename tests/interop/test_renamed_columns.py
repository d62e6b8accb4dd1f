"""Columns renamed, swapped, dropped, added again: readers follow the column, not the name."""

import warnings
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import lakebed
from lakebed.model.errors import InvalidSchema
from tests.interop.spark import Format, spark_rows

Row = dict[str, object]


def _deltalake(location: str) -> list[Row]:
    """deltalake's SQL; its Arrow reader refuses mapped columns."""
    builder = QueryBuilder().register("t", DeltaTable(location))
    return [dict(r) for r in pl.DataFrame(builder.execute("SELECT * FROM t")).to_dicts()]


def _pyiceberg(location: str) -> list[Row]:
    rows: list[Row] = StaticTable.from_metadata(location).scan().to_arrow().to_pylist()
    return rows


def _polars_iceberg(location: str) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, about planners
        return pl.scan_iceberg(StaticTable.from_metadata(location)).collect().to_dicts()


def _spark_delta(location: str) -> list[Row]:
    return spark_rows("delta", location)


def _spark_iceberg(location: str) -> list[Row]:
    return spark_rows("iceberg", location)


READERS = [_deltalake, _pyiceberg, _polars_iceberg, _spark_delta, _spark_iceberg]


@pytest.fixture
def table(tmp_path: Path) -> lakebed.Table:
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("s.t", "id long, a string, b string, gone long")
    table.append([{"id": 1, "a": "a1", "b": "b1", "gone": 1}])
    alter = table.alter().rename_column("a", "x").rename_column("b", "a").rename_column("x", "b")
    alter.drop_column("gone").add_column("gone", "string").commit()
    table.append([{"id": 2, "a": "a2", "b": "b2", "gone": "text"}])
    assert lake.check().clean
    return table


WANTED = [
    {"id": 1, "b": "a1", "a": "b1", "gone": None},
    {"id": 2, "b": "b2", "a": "a2", "gone": "text"},
]


def test_the_lake_follows_columns_through_swaps_and_returns(table: lakebed.Table) -> None:
    rows = sorted(table.to_arrow().to_pylist(), key=lambda r: int(r["id"]))

    assert rows == WANTED
    assert table.scan(where="a = 'b1'").to_arrow()["id"].to_pylist() == [1]
    assert table.scan(where="gone is null", columns=["id"]).to_arrow()["id"].to_pylist() == [1]
    before = table.scan(version=1).to_arrow().to_pylist()
    assert before == [{"id": 1, "a": "a1", "b": "b1", "gone": 1}]


@pytest.mark.parametrize("read", READERS)
def test_readers_follow_columns_too(table: lakebed.Table, read: Callable[[str], list[Row]]) -> None:
    rows = sorted(read(table.location), key=lambda r: int(str(r["id"])))

    assert rows == WANTED


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_spark_filters_follow_columns_too(table: lakebed.Table, format_: Format) -> None:
    """By name they would find other files, or none: Spark's own Parquet reader does."""

    def ids(where: str) -> list[int]:
        found = spark_rows(format_, table.location, columns=["id"], where=where)
        return sorted(row["id"] for row in found)

    assert ids("a = 'b1'") == ids("gone IS NULL") == [1]
    assert ids("b = 'b2'") == ids("gone = 'text'") == [2]
    assert spark_rows("delta", table.location, version=1) == [
        {"id": 1, "a": "a1", "b": "b1", "gone": 1}
    ]


def test_columns_that_a_table_is_built_on_stay(tmp_path: Path) -> None:
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table(
        "s.t", "id long, p string, s long", primary_key=["id"], partition_by=["p"], sort_by=["s"]
    )

    for name in ("id", "p", "s", "nope"):
        with pytest.raises(InvalidSchema):
            table.alter().drop_column(name)
    with pytest.raises(InvalidSchema):
        table.alter().rename_column("p", "ID")
    table.alter().rename_column("p", "place").commit()
    table.append([{"id": 1, "place": "x", "s": 1}])

    assert _pyiceberg(table.location) == _deltalake(table.location) == table.to_arrow().to_pylist()
    assert [f.partition for f in table.files()] == [{"p": "x"}]
    assert lake.check().clean


def test_a_table_left_with_its_partition_columns_alone_is_still_read(tmp_path: Path) -> None:
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("s.t", "p string, n long", partition_by=["p"])
    table.append([{"p": "a", "n": 1}, {"p": "b", "n": 2}])

    table.alter().drop_column("n").commit()

    for read in READERS:
        assert sorted(str(row["p"]) for row in read(table.location)) == ["a", "b"]
    assert lake.check().clean
