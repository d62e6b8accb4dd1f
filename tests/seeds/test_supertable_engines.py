"""SuperTable's points about query engines: providers that answer, and that leave files out."""

from datetime import date
from pathlib import Path

import polars as pl
import pytest

import lakebed
from tests.interop.spark import spark_rows


@pytest.fixture
def table(lake: lakebed.Lake) -> lakebed.Table:
    """Five months of four rows, of which one was deleted."""
    table = lake.create_table("s.t", "id long not null, day date", partition_by=["month(day)"])
    for month in range(1, 6):
        table.append([{"id": 10 * month + n, "day": date(2024, month, 10 + n)} for n in range(4)])
    table.delete("id % 10 = 3")
    return table


ALL = [10 * month + n for month in range(1, 6) for n in range(3)]


def keep_month(table: lakebed.Table, month: int) -> None:
    """It is an error to open any other file."""
    for file in table.files():
        if f"2024-0{month}" not in file.path:
            (Path(table.location) / file.path).unlink()


def test_st_30_datafusion_reads_the_lakes_tables(lake: lakebed.Lake, table: lakebed.Table) -> None:
    lake.create_table("s.names", [{"id": 21, "name": "x"}])

    query = "SELECT t.id, n.name FROM s.t t LEFT JOIN s.names n ON n.id = t.id ORDER BY t.id"
    rows = lake.datafusion().sql(query).to_arrow_table().to_pylist()

    assert [row["id"] for row in rows] == ALL
    assert [row["name"] for row in rows if row["name"]] == ["x"]


@pytest.mark.parametrize("engine", ["arrow", "sql", "polars", "datafusion"])
def test_st_31_files_that_cannot_match_are_left_out(
    lake: lakebed.Lake, table: lakebed.Table, engine: str
) -> None:
    where = "day >= DATE '2024-03-01' AND day < DATE '2024-04-01'"
    scan = table.scan(where=where)
    assert (len(scan.plan().files), scan.plan().pruned) == (1, 4)
    keep_month(table, 3)

    match engine:
        case "arrow":
            found = scan.to_arrow()
        case "sql":
            found = lake.sql(f"SELECT * FROM s.t WHERE {where}").to_arrow()
        case "polars":
            month = pl.col("day").is_between(date(2024, 3, 1), date(2024, 3, 31))
            found = table.scan().to_polars().filter(month).collect().to_arrow()
        case _:
            found = lake.datafusion().sql(f"SELECT * FROM s.t WHERE {where}").to_arrow_table()

    assert sorted(found["id"].to_pylist()) == [30, 31, 32]


def test_st_32_no_provider_returns_nothing(lake: lakebed.Lake, table: lakebed.Table) -> None:
    found = {
        "arrow": table.to_arrow(),
        "sql": lake.sql("SELECT * FROM s.t").to_arrow(),
        "polars": table.scan().to_polars().collect().to_arrow(),
        "datafusion": lake.datafusion().sql("SELECT * FROM s.t").to_arrow_table(),
    }

    assert {name: sorted(rows["id"].to_pylist()) for name, rows in found.items()} == dict.fromkeys(
        found, ALL
    )


def test_st_33_polars_is_lazy_and_reads_what_it_uses(table: lakebed.Table) -> None:
    frame = table.scan().to_polars()
    assert isinstance(frame, pl.LazyFrame)
    keep_month(table, 2)

    found = frame.filter(pl.col("id").is_between(20, 25)).select("id").collect()

    assert sorted(found["id"].to_list()) == [20, 21, 22]


@pytest.mark.interop
def test_st_34_spark_reads_rows_and_older_versions(table: lakebed.Table) -> None:
    found = {
        "delta": spark_rows("delta", table.location),
        "iceberg": spark_rows("iceberg", table.location),
    }
    before = spark_rows("delta", table.location, version=1)

    for rows in found.values():
        assert sorted(row["id"] for row in rows) == ALL
    assert sorted(row["id"] for row in before) == [10, 11, 12, 13]
