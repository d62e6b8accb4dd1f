"""Partition values that do not fit folder names: every reader still gets the value."""

import warnings
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

import lakebed
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
