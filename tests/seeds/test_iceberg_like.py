"""The points of the Iceberg-like features document (IL-…), for the part that is built."""

import sqlite3
import threading
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import lakebed


def test_il_01_the_database_is_the_catalog_and_keeps_every_schema(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("sales.orders", "id long")
        for name in ("a", "b"):
            table.alter().add_column(name, "string").commit()

    with lakebed.open(tmp_path / "lake") as lake:
        found = lake.table("sales.orders")

        assert lake.tables("sales") == ["sales.orders"]
        assert found.uuid == table_uuid(tmp_path / "lake")
        assert [f.name for f in found.schema.fields] == ["id", "a", "b"]
        shown = [found.scan(version=v).to_arrow().column_names for v in (0, 1, 2)]
        assert shown == [["id"], ["id", "a"], ["id", "a", "b"]]
        assert found.schema.id == StaticTable.from_metadata(found.location).schema().schema_id
        with pytest.raises(lakebed.TableNotFound):
            lake.table("sales.order")


def table_uuid(lake: Path) -> str:
    with sqlite3.connect(lake / "lakebed.db") as database:
        return str(database.execute("SELECT uuid FROM tables").fetchone()[0])


def test_il_02_every_part_of_the_catalog_is_a_row(lake: lakebed.Lake, tmp_path: Path) -> None:
    table = lake.create_table(
        "sales.orders", "id long, region string", partition_by=["region"], sort_by=["id"]
    )
    table.append([{"id": 1, "region": "eu"}, {"id": 2, "region": "us"}])
    table.alter().add_column("note", "string").commit()

    with sqlite3.connect(tmp_path / "lake" / "lakebed.db") as database:

        def count(noun: str) -> int:
            return int(database.execute(f"SELECT COUNT(*) FROM {noun}").fetchone()[0])

        nouns = ("lake", "namespaces", "tables", "table_schemas", "snapshots", "manifests")
        assert [count(n) for n in nouns] == [1, 1, 1, 2, 1, 1]
        assert [count(n) for n in ("files", "partition_specs", "sort_orders")] == [2, 1, 1]
        head, lists = database.execute(
            "SELECT t.head_version, s.manifest_list FROM tables t"
            " JOIN snapshots s ON s.table_id = t.table_id AND s.snapshot_id = t.snapshot_id"
        ).fetchone()
        stats = database.execute("SELECT MIN(LENGTH(stats)) FROM files").fetchone()[0]
    assert head == 2
    assert (Path(table.location) / lists).is_file()
    assert stats > 2, "a file has statistics"


def test_il_03_objects_lie_where_the_layout_says(lake: lakebed.Lake, tmp_path: Path) -> None:
    table = lake.create_table("sales.eu.orders", "id long, day date", partition_by=["day"])
    table.append(pa.table({"id": [1], "day": pa.array([20_000], pa.date32())}))

    root = tmp_path / "lake" / "warehouse" / "sales" / "eu" / "orders"

    assert Path(table.location) == root
    assert len(list(root.glob("metadata/*.metadata.json"))) == 2
    assert len(list(root.glob("metadata/snap-*.avro"))) == 1
    assert len(list(root.glob("data/day=2024-10-04/*.parquet"))) == 1


def is_mixed(seen: pa.Table) -> bool:
    return bool(seen.num_rows != 4 or len(set(seen["n"].to_pylist())) != 1)


def test_il_12_readers_see_whole_snapshots_only(lake: lakebed.Lake) -> None:
    """Every commit replaces four files by four others; nobody ever sees a mixture."""
    table = lake.create_table("a.t", "p long not null, n long not null", partition_by=["p"])
    table.append([{"p": p, "n": 0} for p in range(4)])
    wrong: list[object] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            ours = table.to_arrow()
            delta = deltalake.DeltaTable(table.location).to_pyarrow_table()
            iceberg = StaticTable.from_metadata(table.location).scan().to_arrow()
            wrong.extend(seen for seen in (ours, delta, iceberg) if is_mixed(seen))

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(1, 13):
        table.overwrite([{"p": p, "n": n} for p in range(4)])
    over.set()
    reader.join()

    assert wrong == []
    assert table.version == 13
