"""Streams in and out: nothing half written, memory bounded, leases held, pruned files unopened."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.core.lease import AFTER_S
from lakebed.storage.base import Storage
from lakebed.storage.memory import MemoryStorage


def batches(count: int, rows: int) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        first = number * rows
        yield pa.record_batch({"id": pa.array(range(first, first + rows), pa.int64())})


def data_files(storage: Storage) -> list[str]:
    return [s.path for s in storage.list("") if s.path.endswith(".parquet") and "/data/" in s.path]


def test_a_bad_value_in_row_1000000_of_a_stream_writes_nothing(lake: lakebed.Lake) -> None:
    table = lake.create_table(
        "a.t", "id long not null", properties={"write.target-file-size-bytes": "1024"}
    )

    def stream() -> Iterator[pa.RecordBatch]:
        yield from batches(9, 100_000)
        ids = list(range(900_000, 1_000_000))
        yield pa.record_batch({"id": pa.array([*ids[:-1], None], pa.int64())})
        raise AssertionError("nobody should ask for more")

    with pytest.raises(lakebed.SchemaMismatch, match="row 1000000") as refused:
        table.append(stream())

    assert refused.value.context["row"] == 999_999
    assert refused.value.context["column"] == "id"
    assert (table.version, data_files(lake._parts.storage)) == (0, [])


def test_a_stream_that_breaks_writes_nothing(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.t", "id long")

    def stream() -> Iterator[pa.RecordBatch]:
        yield from batches(2, 10)
        raise ConnectionError("the source went away")

    with pytest.raises(ConnectionError, match="went away"):
        table.append(stream())

    assert (table.version, data_files(lake._parts.storage)) == (0, [])
    assert table.append([{"id": 1}]).version == 1


def test_a_stream_of_batches_of_other_columns_is_refused(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.t", "id long")
    stream = [*batches(1, 10), pa.record_batch({"bogus": [1]})]

    with pytest.raises(lakebed.SchemaMismatch, match="bogus"):
        table.append(iter(stream))

    assert (table.version, data_files(lake._parts.storage)) == (0, [])


def test_a_long_read_holds_a_lease_until_it_ends(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.t", [{"id": 1}])
    table.append([{"id": 2}])
    leases = lake._parts.leases

    reader = table.scan(version=1).to_batches()
    assert leases.active(table._id) == []
    reader.read_next_batch()

    assert [(lease.kind, lease.version) for lease in leases.active(table._id)] == [("read", 1)]
    list(reader)
    assert leases.active(table._id) == []


def test_a_read_given_up_gives_its_lease_back(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.t", [{"id": 1}])
    table.append([{"id": 2}])

    reader = table.scan().to_batches()
    reader.read_next_batch()
    del reader

    assert lake._parts.leases.active(table._id) == []


def test_a_short_read_takes_no_lease(lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("a.t", [{"id": 1}])
    taken: list[object] = []
    monkeypatch.setattr("lakebed.core.lease.leases.put_lease", lambda *a, **k: taken.append(a))

    table.to_arrow()
    table.append([{"id": 2}])

    assert (taken, AFTER_S > 1) == ([], True)


def test_pruned_files_are_never_opened(lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("a.t", "id long, p string", partition_by=["p"])
    for n in range(4):
        table.append([{"id": 10 * n, "p": f"p{n}"}, {"id": 10 * n + 1, "p": f"p{n}"}])
    opened: list[str] = []
    real = MemoryStorage.open_input

    def open_input(
        self: MemoryStorage, path: str, *, size_bytes: int | None = None
    ) -> pa.NativeFile:
        opened.append(path)
        return real(self, path, size_bytes=size_bytes)

    monkeypatch.setattr(MemoryStorage, "open_input", open_input)

    for where, files, found in (
        ("p = 'p2'", 1, 2),  # by partition
        ("id >= 30", 1, 2),  # by statistics
        ("id in (1, 11)", 2, 2),
        ("id = 5", 0, 0),
        ("id > 1000", 0, 0),
        ("p is null", 0, 0),
    ):
        opened.clear()
        scan = table.scan(where=where)
        assert scan.to_arrow().num_rows == found, where
        assert len(opened) == files, where
        assert scan.plan().pruned == 4 - files


def test_a_scan_is_one_version_whatever_is_committed_meanwhile(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.t", [{"id": 1}])
    table.append([{"id": 2}])

    reader = table.scan().to_batches()
    first = reader.read_next_batch()
    table.overwrite([{"id": 9}])

    assert first["id"].to_pylist() + [r for b in reader for r in b["id"].to_pylist()] == [1, 2]
    assert table.to_arrow()["id"].to_pylist() == [9]


MEMORY = """
import os, resource, sys
import pyarrow as pa
import lakebed

def stream():
    for n in range(100):
        ids = range(n * 100, n * 100 + 100)
        blobs = [os.urandom(20_000) for _ in ids]
        yield pa.record_batch({"id": pa.array(ids), "blob": blobs})

with lakebed.open(sys.argv[1], create=True) as lake:
    table = lake.create_table("a.t", "id long, blob binary",
                              properties={"write.target-file-size-bytes": "16MiB"})
    table.append([{"id": -1, "blob": b"x"}])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table.append(stream())
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = sum(batch.num_rows for batch in table.scan().to_batches())
    read = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(rows, (after - before) // 1024, (read - before) // 1024, pa.total_allocated_bytes())
"""


@pytest.mark.slow
def test_a_streamed_append_and_scan_need_bounded_memory(tmp_path: Path) -> None:
    """200 MB in and out; a row group and a batch are what may be held."""
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path / "lake")],
        capture_output=True,
        check=True,
        text=True,
    )

    rows, written_mb, read_mb, left = map(int, run.stdout.split())
    assert rows == 10_001
    assert written_mb < 120, run.stdout
    assert read_mb < 200, run.stdout
    assert left < 10_000_000
