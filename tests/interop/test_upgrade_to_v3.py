"""A table moves to Iceberg v3 when a column needs it: its rows get their ids once."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import lakebed
from lakebed.formats.iceberg.read import read_snapshot
from lakebed.storage import open_storage


@pytest.mark.filterwarnings("ignore")  # PyIceberg's own, about v3
def test_adding_a_nanosecond_column_upgrades_and_every_row_keeps_one_id(tmp_path: Path) -> None:
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("s.t", "id long not null", formats=["iceberg"])
    for first in (0, 10, 20):
        table.append(pa.table({"id": list(range(first, first + 10))}))

    table.alter().add_column("at", "timestamp_ns").commit()
    table.append(pa.table({"id": [30], "at": pa.array([1], pa.timestamp("ns"))}))

    iceberg = StaticTable.from_metadata(table.location)
    assert iceberg.format_version == 3
    assert sorted(iceberg.scan().to_arrow()["id"].to_pylist()) == list(range(31))
    ours = read_snapshot(open_storage(str(tmp_path / "lake" / "warehouse")), "s/t")
    starts = sorted((f.entry.file.first_row_id, f.file.record_count) for f in ours.files.values())
    assert starts == [(0, 10), (10, 10), (20, 10), (30, 1)]
    assert ours.metadata["next-row-id"] == 31
    assert lake.check().findings == []
