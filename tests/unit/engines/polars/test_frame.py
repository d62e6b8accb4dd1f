"""Lazy frames read what is asked for, when it is asked for, under a lease."""

import gc
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars import col

import lakebed
from lakebed.engines.polars.frame import lazy_frame
from lakebed.model.errors import DataCorrupt, ObjectMissing, UnsupportedFeature


@pytest.fixture
def table(tmp_path: Path) -> Iterator[lakebed.Table]:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("s.t", "id long, at timestamp, note string")
        for first in (0, 1000, 2000):
            numbers = range(first, first + 1000)
            rows = [{"id": i, "at": i * 10**6, "note": f"note {i}" * 9} for i in numbers]
            table.append(pa.Table.from_pylist(rows, table.arrow_schema))
        yield table


def paths(table: lakebed.Table) -> list[Path]:
    return [Path(table.location, file.path) for file in table.files()]


def test_nothing_is_read_before_the_frame_is_collected(table: lakebed.Table) -> None:
    frame = table.scan().to_polars()
    for path in paths(table):
        path.unlink()

    assert frame.collect_schema().names() == ["id", "at", "note"]
    with pytest.raises(ObjectMissing, match="is missing"):
        frame.collect()


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_file_that_cannot_match_is_not_opened(table: lakebed.Table, engine: str) -> None:
    frame = table.scan().to_polars()
    first, _, third = paths(table)
    first.unlink()
    third.unlink()

    found = frame.filter(col("id").is_between(1990, 1995), col("note") != "").collect(engine=engine)  # type: ignore[call-overload]

    assert found["id"].to_list() == [1990, 1991, 1992, 1993, 1994, 1995]


def test_a_file_is_left_out_by_its_hidden_partition(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("s.t", "id long, k string", partition_by=["bucket(8, k)"])
        table.append([{"id": i, "k": f"k{i}"} for i in range(40)])
        frame = table.scan().to_polars()
        (keeping,) = table.scan(where="k = 'k7'").plan().files
        for path in paths(table):
            if not path.as_posix().endswith(keeping.file.path):
                path.unlink()

        assert frame.filter(col("k") == "k7").collect()["id"].to_list() == [7]


def test_columns_that_nobody_uses_are_not_read(table: lakebed.Table) -> None:
    for path in paths(table):
        damage(path, "note")

    found = table.scan().to_polars().filter(col("id") >= 2999).select("at").collect()

    assert found["at"].dt.epoch("s").to_list() == [2999]


def test_a_limit_reads_no_more_than_it_needs(table: lakebed.Table) -> None:
    for path in paths(table)[1:]:
        path.unlink()

    assert table.scan().to_polars().head(10).collect().height == 10


def test_conditions_of_scan_and_frame_both_count(table: lakebed.Table) -> None:
    frame = table.scan(where="id > 500", columns=["id"]).to_polars()

    assert frame.filter(col("id") < 503).collect()["id"].to_list() == [501, 502]


def test_every_collect_reads_the_version_of_the_scan(table: lakebed.Table) -> None:
    frame = table.scan().to_polars().select(pl.len())
    table.delete("id < 10")

    assert frame.collect().item() == 3000
    assert table.scan().to_polars().select(pl.len()).collect().item() == 2990


def test_a_lease_lives_while_rows_are_collected(table: lakebed.Table) -> None:
    scan = table.scan()
    events: list[str] = []

    @contextmanager
    def hold() -> Iterator[None]:
        events.append("begin")
        try:
            yield
        finally:
            events.append("end")

    frame = lazy_frame(scan.plan(), table._parts.storage, hold)
    assert events == []
    frame.collect()
    assert events == ["begin", "end"]
    frame.filter(col("id") > 5).head(3).collect()
    # Rows were left over: a thread of Polars lets go of them when it comes to it.
    for _ in range(100):
        gc.collect()
        if events[-1] == "end":
            break
        time.sleep(0.05)
    assert events == ["begin", "end"] * 2


def test_the_lease_is_for_the_version_that_is_read(table: lakebed.Table) -> None:
    leases = table._parts.leases
    hold = table.scan(version=1).read_by(lambda _plan, _storage, hold: hold)

    with hold() as keeper:
        assert keeper is not None
        keeper.touch()
        assert [lease.version for lease in leases.active(table._id)] == [1]
    assert leases.active(table._id) == []


def test_a_file_of_another_writer_is_read_by_the_reference(
    table: lakebed.Table, caplog: pytest.LogCaptureFixture
) -> None:
    """Milliseconds without the mark that says UTC, which Polars takes for another type."""
    second = paths(table)[1]
    rows = pq.read_table(second)
    kinds = [pa.field("id", pa.int64()), pa.field("at", pa.timestamp("ms")), rows.schema.field(2)]
    rewritten(second, rows.cast(pa.schema(kinds))).replace(second)

    with caplog.at_level(logging.INFO, "lakebed.engines"):
        found = table.scan().to_polars().collect()

    assert found.sort("id").equals(pl.DataFrame(table.to_arrow()).sort("id"))
    assert "read by Arrow instead" in caplog.text


def test_a_damaged_file_is_named(table: lakebed.Table) -> None:
    second = paths(table)[1]
    second.write_bytes(second.read_bytes()[:-20])

    with pytest.raises(DataCorrupt, match=second.name):
        table.scan().to_polars().collect()


def test_rows_of_a_transaction_are_read(table: lakebed.Table, tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake") as lake, lake.transaction() as tx:
        tx.table("s.t").append([{"id": 5000, "at": None, "note": None}])

        found = tx.table("s.t").scan().to_polars().filter(col("id") > 2998).collect()

    assert sorted(found["id"].to_list()) == [2999, 5000]


def test_a_frame_without_columns_is_refused(table: lakebed.Table) -> None:
    with pytest.raises(UnsupportedFeature, match="without columns"):
        table.scan(columns=[]).to_polars()


def test_frames_are_joined_and_collected_beside_each_other(table: lakebed.Table) -> None:
    plan, storage = table.scan().plan(), table._parts.storage
    frames = [lazy_frame(plan, storage, nullcontext).select("id") for _ in range(6)]

    joined = frames[0]
    for frame in frames[1:]:
        joined = joined.join(frame, on="id")

    assert joined.select(pl.len()).collect(engine="streaming").item() == 3000
    assert [f.height for f in pl.collect_all(frames)] == [3000] * 6


def damage(path: Path, column: str) -> None:
    """Overwrite the pages of one column."""
    metadata = pq.read_metadata(path)
    data = bytearray(path.read_bytes())
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            if chunk.path_in_schema == column:
                starts = (chunk.dictionary_page_offset, chunk.data_page_offset)
                start = min(each for each in starts if each)
                data[start : start + chunk.total_compressed_size] = (
                    b"\xff" * chunk.total_compressed_size
                )
    path.write_bytes(data)


def rewritten(path: Path, rows: pa.Table) -> Path:
    other = path.with_suffix(".other")
    pq.write_table(rows, other)
    return other
