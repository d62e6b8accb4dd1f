"""Positions collected per file, from batches in any order and of any integer width."""

import pyarrow as pa

from lakebed.model.files import DataFile, LiveFile
from lakebed.model.ids import FileId, SnapshotId, SpecId, Version
from lakebed.model.vectors import Positions
from lakebed.rowops.found import Found


def live(file_id: int) -> LiveFile:
    file = DataFile(f"data/{file_id}", 1, 100, SpecId(0), (), {})
    return LiveFile(FileId(file_id), file, Version(0), None, 1, SnapshotId(1), None)


def test_rows_of_several_files_in_several_batches() -> None:
    found = Found([live(7), live(9), live(-1)])

    found.add(pa.array([0, 2, 0], pa.int32()), pa.array([5, 1, 2], pa.int64()))
    found.add(pa.array([1, 0], pa.int64()), pa.array([0, 2**33], pa.int64()))
    found.add(pa.array([], pa.int32()), pa.array([], pa.int64()))

    assert found.by_file() == {
        FileId(7): Positions([2, 5, 2**33]),
        FileId(9): Positions([0]),
        FileId(-1): Positions([1]),
    }
    assert found.rows == 5


def test_slices_are_taken_at_their_offset() -> None:
    found = Found([live(1)])
    positions = pa.arange(0, 1000).slice(500, 3)

    found.add(pa.repeat(pa.scalar(0, pa.int32()), 3), positions)

    assert found.by_file() == {FileId(1): Positions([500, 501, 502])}
