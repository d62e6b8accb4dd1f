"""Transactions that create and alter tables; formats turned off with publications waiting."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

import lakebed


@pytest.fixture
def lake(tmp_path: Path) -> lakebed.Lake:
    return lakebed.open(tmp_path / "lake", create=True)


def test_tables_are_created_filled_and_altered_in_one_commit(lake: lakebed.Lake) -> None:
    orders = lake.create_table("s.orders", "id long")

    with lake.transaction(message="all at once") as tx:
        tx.create_table("s.lines", "id long, item string").append([{"id": 1, "item": "tea"}])
        tx.create_table("s.people", [{"name": "Ada"}])
        tx.table("s.orders").alter().add_column("note", "string").commit()
        tx.table("s.orders").append([{"id": 1, "note": "first"}])

    assert {name: c.version for name, c in tx.commits.items()} == {
        "s.orders": 1,
        "s.lines": 0,
        "s.people": 0,
    }
    assert len({c.transaction_id for c in tx.commits.values()}) == 1
    assert orders.to_arrow().to_pylist() == [{"id": 1, "note": "first"}]
    assert lake.table("s.lines").to_arrow().num_rows == 1
    assert DeltaTable(orders.location).to_pyarrow_table().to_pylist() == [
        {"id": 1, "note": "first"}
    ]
    assert lake.check().clean


def test_a_transaction_that_fails_creates_no_table(lake: lakebed.Lake) -> None:
    tx = lake.transaction()
    tx.create_table("s.a", "id long").append([{"id": 1}])
    second = tx.create_table("s.b", "id long")
    with pytest.raises(lakebed.SchemaMismatch), tx:
        second.append([{"id": "one"}])

    assert lake.tables() == []
    assert list(Path(lake.warehouse.removeprefix("file://")).rglob("*.parquet")) == []


def test_turning_a_format_off_forgets_what_was_stopped(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long")
    foreign = Path(table.location) / "_delta_log" / f"{1:020}.json"
    foreign.write_text("{}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not table.append([{"id": 1}]).published
    assert lake.status().stopped

    table.set_formats("iceberg")

    assert not lake.status().stopped
    assert lake.check().clean
    assert foreign.read_text() == "{}"
    foreign.unlink()
    table.set_formats("delta,iceberg")
    assert DeltaTable(table.location).to_pyarrow_table().num_rows == 1


def test_two_alterations_made_at_the_same_time_both_count(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long")
    first = table.alter().add_column("x", "string")
    second = table.alter().add_column("y", "long")

    first.commit()
    second.commit()

    assert [f.name for f in table.schema.fields] == ["id", "x", "y"]
    assert len({f.id for f in table.schema.fields}) == 3
    with pytest.raises(lakebed.InvalidInput):
        table.alter().add_column("X", "int")


def test_what_is_read_and_then_written_is_checked_when_serializable(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", [{"n": 1}])
    one, two = (lake.transaction(isolation="serializable") for _ in range(2))
    for tx in (one, two):
        seen = tx.table("s.t").scan().to_arrow().num_rows
        tx.table("s.t").append([{"n": seen + 1}])

    one.commit()
    with pytest.raises(lakebed.CommitConflict):
        two.commit()

    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 2]


def test_iceberg_turned_on_after_the_table_was_emptied_shows_nothing(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", [{"id": 1}, {"id": 2}])
    table.set_formats("delta")
    table.overwrite([])

    table.set_formats("delta,iceberg")

    assert StaticTable.from_metadata(table.location).scan().to_arrow().num_rows == 0
    table.append([{"id": 9}])
    rows = StaticTable.from_metadata(table.location).scan().to_arrow()["id"].to_pylist()
    assert rows == [9]
    assert lake.check().clean


def test_a_transaction_sees_all_its_tables_at_one_moment(lake: lakebed.Lake) -> None:
    for name in ("s.a", "s.b"):
        lake.create_table(name, [{"n": 1}])
    reader = lake.transaction()
    before = reader.table("s.a").scan().to_arrow().num_rows

    with lake.transaction() as writer:
        writer.table("s.a").append([{"n": 2}])
        writer.table("s.b").append([{"n": 2}])

    assert before == reader.table("s.b").scan().to_arrow().num_rows == 1
    reader.table("s.b").append([{"n": 3}])
    reader.commit()
    assert lake.table("s.b").row_count == 3


def test_a_block_that_only_reads_ends_quietly(lake: lakebed.Lake) -> None:
    lake.create_table("s.t", [{"n": 1}])

    with lake.transaction() as tx:
        assert tx.table("s.t").scan().to_arrow().num_rows == 1

    assert tx.commits == {}
    with pytest.raises(lakebed.NoChanges), lake.transaction():
        pass


def test_partitions_overwritten_at_the_same_time_do_not_conflict(lake: lakebed.Lake) -> None:
    rows = [{"p": "a", "n": 1}, {"p": "b", "n": 1}]
    table = lake.create_table("s.t", "p string, n long", partition_by=["p"])
    table.append(rows)
    one, two = lake.transaction(), lake.transaction()
    one.table("s.t").overwrite([{"p": "a", "n": 2}], partitions=True)
    two.table("s.t").overwrite([{"p": "b", "n": 2}], partitions=True)

    one.commit()
    two.commit()

    assert {(r["p"], r["n"]) for r in table.to_arrow().to_pylist()} == {("a", 2), ("b", 2)}


def test_a_call_has_settings_of_its_own(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long")

    table.append([{"id": 1}], settings={"write.parquet.compression-codec": "gzip"})
    table.append([{"id": 2}])

    codecs = [
        pq.ParquetFile(Path(table.location) / f.path).metadata.row_group(0).column(0).compression
        for f in table.files()
    ]
    assert codecs == ["GZIP", "ZSTD"]
    for bad in ({"commit.retries": 1}, {"nonsense": 1}, {"write.parquet.compression-codec": "x"}):
        with pytest.raises(lakebed.InvalidInput):
            table.append([{"id": 3}], settings=bad)
    assert table.row_count == 2


def test_a_purge_deletes_the_tables_own_folder_only(lake: lakebed.Lake) -> None:
    photo = Path(lake.warehouse.removeprefix("file://")) / "raw" / "photos" / "wedding.jpg"
    photo.parent.mkdir(parents=True)
    photo.write_bytes(b"dear")
    folder = Path(lake.create_table("raw.photos", [{"n": 1}]).location)
    assert folder != photo.parent

    lake.drop_table("raw.photos", purge=True)

    assert photo.read_bytes() == b"dear"
    assert not folder.exists()


def test_two_lakes_on_one_warehouse_do_not_share_a_folder(tmp_path: Path) -> None:
    lakes = [
        lakebed.open(tmp_path / name, create=True, warehouse=tmp_path / "shared")
        for name in ("one", "two")
    ]
    tables = [lake.create_table("s.t", [{"lake": n}]) for n, lake in enumerate(lakes)]
    assert tables[0].location != tables[1].location

    lakes[1].drop_table("s.t", purge=True)

    assert tables[0].to_arrow().to_pylist() == [{"lake": 0}]
    assert lakes[0].check().clean


def test_a_table_that_was_not_created_gives_its_folder_back(lake: lakebed.Lake) -> None:
    with pytest.raises(lakebed.SchemaMismatch), lake.transaction() as tx:
        tx.create_table("s.t", "id long").append([{"id": "x"}])

    table = lake.create_table("s.t", "id long")

    assert Path(table.location).name == "t"


def test_an_overwrite_is_planned_again_on_the_new_head_and_leaves_no_file(
    lake: lakebed.Lake,
) -> None:
    table = lake.create_table("s.t", "p string, n long", partition_by=["p"])
    table.append([{"p": "a", "n": 1}])

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist([{"p": "a", "n": 5}])
        # Meanwhile a file comes in that the condition matches only in part.
        with lake.transaction(isolation="serializable") as tx:
            tx.table("s.t").overwrite([{"p": "a", "n": 5}, {"p": "a", "n": 50}])

    commit = table.overwrite(rows(), where="p = 'a' and n < 10", isolation="serializable")

    assert sorted(table.to_arrow()["n"].to_pylist()) == [5, 50]
    assert (commit.summary["deleted_rows"], commit.summary["inserted_rows"]) == (1, 1)
    assert [n for n in lake.check().notes if n.code == "ORPHAN"] == []
