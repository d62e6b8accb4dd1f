"""Partition values that do not fit folder names: every reader still gets the value."""

import warnings
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

import lakebed
from tests.interop.duckdb155 import asked_of_duckdb
from tests.interop.spark import spark_rows

AWKWARD = ["a", "a=b", "x" * 300, "__HIVE_DEFAULT_PARTITION__", "..", "a b/ü%", "%2e%2e", None]


@pytest.mark.parametrize("values", [AWKWARD, [*AWKWARD, ""], AWKWARD[::-1]])
def test_readers_get_awkward_partition_values_back(
    tmp_path: Path, values: list[str | None]
) -> None:
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("s.t", "id long not null, p string", partition_by=["p"])
    for number, value in enumerate(values):
        table.append([{"id": number, "p": value}])
    wanted = dict(enumerate(values))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Polars' own, about its Iceberg planner
        static = StaticTable.from_metadata(table.location)
        read = {
            "deltalake": DeltaTable(table.location).to_pyarrow_table().to_pylist(),
            "polars delta": pl.scan_delta(table.location).collect().to_dicts(),
            "pyiceberg": static.scan().to_arrow().to_pylist(),
            "polars iceberg": pl.scan_iceberg(static).collect().to_dicts(),
            "spark delta": spark_rows("delta", table.location),
            "spark iceberg": spark_rows("iceberg", table.location),
        }

    for reader, rows in read.items():
        assert {row["id"]: row["p"] for row in rows} == wanted, reader
    assert lake.check().findings == []


def test_polars_leaves_rows_out_that_were_deleted_in_awkward_partitions(tmp_path: Path) -> None:
    """It looks for a deletion vector by the path as it stands in the log, escapes and all."""
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("s.t", "id long not null, p string", partition_by=["p"])
    values = ["a b", "ž", "x'y", "a=b", "%", "+", "a/b", ":"]
    for number, value in enumerate(values):
        table.append([{"id": 10 * number + n, "p": value} for n in range(5)])

    table.delete("id % 10 = 2")

    found = pl.scan_delta(table.location).collect()["id"].to_list()
    assert sorted(found) == [10 * v + n for v in range(len(values)) for n in (0, 1, 3, 4)]


def test_duckdb_reads_partition_columns_behind_renamed_ones(tmp_path: Path) -> None:
    """In Delta a table with renamed columns is shown unpartitioned: DuckDB would read NULL."""
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("s.t", "id long, a long, p string", partition_by=["p"])
    table.append([{"id": 1, "a": 1, "p": "x"}, {"id": 2, "a": 2, "p": None}])

    table.alter().rename_column("a", "b").commit()
    table.append([{"id": 3, "b": 3, "p": "y"}])

    assert DeltaTable(table.location).metadata().partition_columns == []
    answers = asked_of_duckdb([f"SELECT * FROM delta_scan('{table.location}')"])
    assert answers == [
        {
            "rows": {
                "1": {"b": "1", "p": "'x'"},
                "2": {"b": "2", "p": "None"},
                "3": {"b": "3", "p": "'y'"},
            }
        }
    ]
