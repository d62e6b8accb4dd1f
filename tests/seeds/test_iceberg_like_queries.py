"""The Iceberg-like document's points about evolution, snapshots, files and queries."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import lakebed
from lakebed.model.errors import VersionNotFound


@pytest.fixture
def table(lake: lakebed.Lake) -> lakebed.Table:
    table = lake.create_table(
        "s.t", "id long not null, day date, word string", partition_by=["month(day)"]
    )
    for month in (1, 2, 3):
        table.append([{"id": 10 * month + n, "day": date(2024, month, 1 + n)} for n in range(3)])
    return table


def test_il_04_columns_come_and_go_without_rewriting_data(table: lakebed.Table) -> None:
    files = {f.path: (Path(table.location) / f.path).stat().st_mtime_ns for f in table.files()}

    alter = table.alter().add_column("note", "string").drop_column("word")
    alter.rename_column("day", "date").commit()

    assert {
        f.path: (Path(table.location) / f.path).stat().st_mtime_ns for f in table.files()
    } == files
    shown = StaticTable.from_metadata(table.location).scan().to_arrow()
    assert shown.column_names == table.to_arrow().column_names == ["id", "date", "note"]
    assert min(shown["date"].to_pylist()) == date(2024, 1, 1)


def test_il_10_snapshots_are_listed_and_found_by_time(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    listed = lake.sql("SELECT * FROM s.t$snapshots ORDER BY version").to_arrow().to_pylist()

    known = [s.snapshot_id for s in StaticTable.from_metadata(table.location).snapshots()]
    assert [s["snapshot_id"] for s in listed] == known
    assert [s["parent_id"] for s in listed] == [None, *known[:-1]]
    for number, snapshot in enumerate(listed, 1):
        assert table.scan(timestamp=snapshot["time"]).to_arrow().num_rows == 3 * number


def test_il_11_files_are_listed_by_snapshot_and_by_partition(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    assert [len(table.files(version=v)) for v in range(4)] == [0, 1, 2, 3]
    partitions = lake.sql("SELECT * FROM s.t$partitions").to_arrow().to_pylist()
    of_month = lake.sql(
        "SELECT path FROM s.t$files WHERE partition = $1", [partitions[1]["partition"]]
    ).to_arrow()

    assert [(p["files"], p["rows"]) for p in partitions] == [(1, 3)] * 3
    assert len(of_month["path"].to_pylist()) == 1
    assert of_month["path"].to_pylist()[0] in {f.path for f in table.files()}


def test_il_13_time_travel_is_written_as_of(lake: lakebed.Lake, table: lakebed.Table) -> None:
    moment = table.history()[1].time.isoformat()

    rows = lake.sql(f"SELECT * FROM s.t TIMESTAMP AS OF '{moment}'").to_arrow()

    assert rows.num_rows == 6
    with pytest.raises(VersionNotFound, match="did not exist yet"):
        lake.sql("SELECT * FROM s.t TIMESTAMP AS OF '2024-01-01'").to_arrow()


def test_il_20_a_plan_is_shown_run_in_batches_and_run_at_a_snapshot(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    query = "SELECT id FROM s.t WHERE day < DATE '2024-02-01'"
    (told, *_) = lake.sql(f"EXPLAIN {query}").to_arrow()["plan"].to_pylist()
    stream = lake.sql(query).to_batches()
    snapshot = lake.sql("SELECT min(snapshot_id) AS id FROM s.t$snapshots WHERE version = 1")
    (row,) = snapshot.to_arrow().to_pylist()
    then = lake.sql(f"SELECT count(*) AS n FROM s.t VERSION AS OF {row['id']}").to_arrow()

    assert told == "s.t version 3: 1 of 3 files kept"
    assert isinstance(stream, pa.RecordBatchReader)
    assert sorted(i for batch in stream for i in batch["id"].to_pylist()) == [10, 11, 12]
    assert then.to_pylist() == [{"n": 3}]


def test_il_21_a_condition_on_the_source_column_prunes_hidden_partitions(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    for file in table.files():
        if "2024-02" not in file.path:
            (Path(table.location) / file.path).unlink()  # it would be an error to open them

    rows = lake.sql("SELECT id FROM s.t WHERE day = DATE '2024-02-02'").to_arrow()

    assert rows["id"].to_pylist() == [21]
