"""Files changed or deleted by hand: a typed error, a finding, a repair of what can be mended."""

import threading
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import lakebed
from lakebed.model.errors import DataCorrupt, ObjectMissing

Damage = Callable[[Path], object]


@pytest.fixture
def table(disk: lakebed.Lake) -> lakebed.Table:
    """Three versions with a file each, a checkpoint, and a version that removes them all."""
    table = disk.create_table(
        "a.t", "id long", properties={"publish.delta.checkpoint-interval": "2"}
    )
    for n in range(3):
        table.append([{"id": n}])
    table.overwrite([{"id": 100}, {"id": 101}])
    disk.publish()
    return table


def newest(table: lakebed.Table) -> Path:
    return Path(table.location) / table.files()[0].path


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def cut_in_the_middle(path: Path) -> None:
    """The same size, other bytes."""
    data = path.read_bytes()
    path.write_bytes(data[:8] + bytes(len(data) - 16) + data[-8:])


def findings(lake: lakebed.Lake) -> set[tuple[str, str | None]]:
    return {(f.code, f.format) for f in lake.check().findings}


@pytest.mark.parametrize(
    ("damage", "error", "code"),
    [
        (Path.unlink, ObjectMissing, "DATA_FILE_MISSING"),
        (truncate, DataCorrupt, "DATA_FILE_DIFFERS"),
        (cut_in_the_middle, DataCorrupt, "DATA_FILE_DIFFERS"),
        (lambda path: path.write_bytes(b""), DataCorrupt, "DATA_FILE_DIFFERS"),
        (lambda path: path.write_bytes(b"text"), DataCorrupt, "DATA_FILE_DIFFERS"),
    ],
    ids=["deleted", "truncated", "overwritten", "emptied", "text"],
)
def test_a_lost_data_file_is_named_and_other_versions_are_read(
    disk: lakebed.Lake,
    table: lakebed.Table,
    damage: Damage,
    error: type[lakebed.LakebedError],
    code: str,
) -> None:
    path = newest(table)
    damage(path)

    with pytest.raises(error, match=path.name) as lost:
        table.to_arrow()
    with pytest.raises(error):
        list(table.scan().to_batches())

    assert (lost.value.context["path"], bool(lost.value.hint)) == (table.files()[0].path, True)
    assert sorted(table.scan(version=3).to_arrow()["id"].to_pylist()) == [0, 1, 2]
    assert table.scan(where="id = 5").to_arrow().num_rows == 0  # pruned, so not missed
    assert findings(disk) == {(code, None)}
    report = disk.check(repair=True)
    assert ([f.code for f in report.findings], report.repaired) == ([code], [])


def test_a_lost_file_of_an_old_version_is_a_finding_and_the_newest_is_read(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    old = table.files(version=1)[0].path
    (Path(table.location) / old).unlink()

    assert table.to_arrow().num_rows == 2
    assert [(f.code, f.path) for f in disk.check().findings] == [("DATA_FILE_MISSING", old)]
    with pytest.raises(ObjectMissing):
        table.scan(version=1).to_arrow()


def test_a_data_file_with_other_rows_of_the_same_size_is_found(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    table.overwrite([{"id": n * n} for n in range(1000)])
    path = newest(table)
    size = path.stat().st_size

    write_one_row(path, padding=0)
    for padding in range(size - path.stat().st_size - 8, size):
        write_one_row(path, padding=padding)
        if path.stat().st_size >= size:
            break

    assert path.stat().st_size == size
    (found,) = disk.check().findings
    assert (found.code, found.message) == (
        "DATA_FILE_DIFFERS",
        "a data file holds 1 rows, not 1000",
    )


def write_one_row(path: Path, *, padding: int) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64())})
    with pq.ParquetWriter(path, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"x": "x" * padding})


PUBLISHED: list[tuple[str, str, Damage]] = [
    ("delta", "_delta_log/00000000000000000004.json", Path.unlink),
    ("delta", "_delta_log/00000000000000000001.json", Path.unlink),
    ("delta", "_delta_log/00000000000000000004.json", truncate),
    ("delta", "_delta_log/00000000000000000002.json", lambda path: path.write_bytes(b"{}")),
    ("delta", "_delta_log/*.checkpoint.parquet", Path.unlink),
    ("iceberg", "metadata/version-hint.text", lambda path: path.write_bytes(b"00003-nope")),
    ("iceberg", "metadata/version-hint.text", Path.unlink),
    ("iceberg", "metadata/*.metadata.json", Path.unlink),
    ("iceberg", "metadata/*.metadata.json", truncate),
    ("iceberg", "metadata/snap-*.avro", Path.unlink),
    ("iceberg", "metadata/*-m*.avro", Path.unlink),
]


def last_match(table: lakebed.Table, pattern: str) -> Path:
    found = sorted(Path(table.location).glob(pattern), key=lambda p: (p.stat().st_mtime_ns, p.name))
    assert found, (pattern, sorted(p.name for p in Path(table.location, "metadata").iterdir()))
    return found[-1]


@pytest.mark.parametrize(
    ("format", "pattern", "damage"), PUBLISHED, ids=lambda each: getattr(each, "__name__", each)
)
def test_a_damaged_published_file_is_found_and_mended(
    disk: lakebed.Lake, table: lakebed.Table, format: str, pattern: str, damage: Damage
) -> None:
    damage(last_match(table, pattern))
    before = table.version

    found = disk.check().findings
    assert {f.format for f in found} == {format}
    assert table.to_arrow()["id"].to_pylist() == [100, 101]  # the rows never needed it

    report = disk.check(repair=True)
    assert (report.findings, report.repaired) == ([], ["a.t"])
    assert table.version == before + 1
    assert table.history()[0].operation == "repair"
    assert ids_of_readers(table) == ([100, 101], [100, 101])
    assert disk.check().clean
    assert table.append([{"id": 102}]).published
    assert ids_of_readers(table) == ([100, 101, 102], [100, 101, 102])


def ids_of_readers(table: lakebed.Table) -> tuple[list[int], list[int]]:
    delta = deltalake.DeltaTable(table.location).to_pyarrow_table()
    iceberg = StaticTable.from_metadata(table.location).scan().to_arrow()
    return sorted(delta["id"].to_pylist()), sorted(iceberg["id"].to_pylist())


def test_a_repair_mends_what_is_published_and_leaves_lost_rows_a_finding(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    newest(table).unlink()
    last_match(table, "_delta_log/00000000000000000004.json").unlink()

    report = disk.check(repair=True)

    assert [f.code for f in report.findings] == ["DATA_FILE_MISSING"]
    assert report.repaired == ["a.t"]


def test_a_file_nobody_knows_is_a_note(disk: lakebed.Lake, table: lakebed.Table) -> None:
    stray = Path(table.location, "data", "stray.parquet")
    stray.write_bytes(b"x")

    report = disk.check()

    assert report.clean
    assert [(n.code, n.path) for n in report.notes] == [("ORPHAN", "data/stray.parquet")]


def test_a_check_beside_a_writer_finds_nothing_wrong(disk: lakebed.Lake) -> None:
    """Files are published, and checkpoints written in the background, while the check looks."""
    table = disk.create_table(
        "a.t", "id long", properties={"publish.delta.checkpoint-interval": "2"}
    )
    done = threading.Event()

    def write() -> None:
        for n in range(150):
            table.append([{"id": n}])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    looks = []
    while not done.is_set():
        looks.append(disk.check().findings)
    writer.join()

    assert len(looks) > 3
    assert [found for found in looks if found] == []
    assert table.scan().to_arrow().num_rows == 150
