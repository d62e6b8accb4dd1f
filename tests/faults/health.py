"""What must hold of a lake whatever happened: the same rows for every reader, and a clean check."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import deltalake
import pyarrow as pa
from pyiceberg.table import StaticTable

import lakebed

HINTS = ("_last_checkpoint", "version-hint.text")


def lake_ids(lake: lakebed.Lake) -> dict[str, list[int]]:
    return {name: ids_of(lake.table(name).to_arrow()) for name in lake.tables()}


def ids_of(table: pa.Table) -> list[int]:
    return sorted(table.column("id").to_pylist())


def delta_ids(location: str) -> list[int]:
    table = deltalake.DeltaTable(location)
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return ids_of(table.to_pyarrow_table(columns=["id"]))
    query = deltalake.QueryBuilder().register("t", table).execute("SELECT id FROM t")
    return ids_of(pa.table(query.read_all()))


def iceberg_ids(location: str) -> list[int]:
    return ids_of(StaticTable.from_metadata(location).scan(selected_fields=("id",)).to_arrow())


def assert_healthy(lake: lakebed.Lake, expected: Mapping[str, Sequence[int]]) -> None:
    """Published, clean, gapless, and the `expected` ids of each table for every reader."""
    status = lake.publish()
    assert (status.lags, status.split_commits) == ((), ())
    report = lake.check()
    assert report.findings == []
    assert {note.code for note in report.notes} <= {"ORPHAN"}
    assert lake_ids(lake) == {name: sorted(ids) for name, ids in expected.items()}
    for name, ids in expected.items():
        table = lake.table(name)
        if "delta" in table.formats:
            assert delta_ids(table.location) == sorted(ids), name
        if "iceberg" in table.formats and table.files(version=table.version):
            assert iceberg_ids(table.location) == sorted(ids), name
        assert_gapless(table)


def assert_gapless(table: lakebed.Table) -> None:
    history = table.history(limit=1_000_000)
    assert [c.version for c in history] == list(range(table.version, -1, -1))
    times = [c.time_ms for c in reversed(history)]
    assert all(a < b for a, b in pairwise(times))


def digests(root: Path) -> dict[str, str]:
    """Every published and data file below a warehouse, hints aside: they may move on."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in HINTS and not path.name.startswith(".tmp-")
    }
