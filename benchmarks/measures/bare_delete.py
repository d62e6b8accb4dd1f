"""What a small delete cannot do without, as bare calls: no checks, no plan, nothing encoded.

The rows are found in the Parquet file; one SQLite transaction keeps the change and a second one,
which need not wait for the disk, what was written; between them the six files of a commit in both
formats are made as durable as lakebed makes them, with bytes of their usual sizes.
"""

import os
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import numbers
from benchmarks.measure import Call, Case, Fact

_KEPT = ("states", "commits", "snapshots", "vectors", "intervals", "outbox", "heads")
_RECORDED = ("publications", "manifests", "lists")
# By folder and step: a list of manifests may name only what is there, metadata only a list.
_FILES = (
    ("_deletes", (365,)),
    ("_delta_log", (1_651,)),
    ("metadata", (3_330, 1_813)),
    ("metadata", (2_462, 42)),
)


class BareDelete:
    environment = "lakebed"
    owner = "bare calls"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        rows = numbers(case.sizes["rows"]).read_all()
        pq.write_table(rows, folder / "data.parquet", compression="zstd")
        for name in ("_delta_log", "metadata"):
            (folder / name).mkdir()
        with sqlite3.connect(folder / "rows.db") as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            for name in (*_KEPT, *_RECORDED):
                connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, body TEXT)")

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        connection = sqlite3.connect(folder / "rows.db", isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        # Made before the clock, as the first scalar of a process loads pandas where it is there.
        gone = pa.scalar(case.sizes["gone"], pa.int32())
        step = pa.scalar(case.sizes["rows"] // case.sizes["gone"], pa.int32())
        none = pa.scalar(0, pa.int32())

        def delete() -> int:
            with pa.OSFile(str(folder / "data.parquet")) as opened:
                source = pq.ParquetFile(opened, pre_buffer=False)
                (batch,) = source.iter_batches(columns=["id"], use_threads=False)
            ids = batch.column(0)
            if case.text.startswith("id <"):
                found = pc.indices_nonzero(pc.less(ids, gone))
            else:
                found = pc.indices_nonzero(pc.equal(pc.subtract(ids, _multiple(ids, step)), none))
            _keep(connection, _KEPT, str(found.to_pylist()))
            (folder / "_deletes").mkdir()
            for name, sizes in _FILES:
                _publish(folder / name, sizes)
            connection.execute("PRAGMA synchronous = NORMAL")
            _keep(connection, _RECORDED, "x" * 200)
            return len(found)

        def facts(found: object) -> dict[str, Fact]:
            assert isinstance(found, int)
            return {"rows": case.sizes["rows"] - found, "files_added": 0}

        return Call(delete, facts)


def _multiple(ids: pa.Array, step: pa.Scalar) -> pa.Array:
    return pc.multiply(pc.divide(ids, step), step)


def _keep(connection: sqlite3.Connection, tables: tuple[str, ...], body: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for name in tables:
        connection.execute(f"INSERT INTO {name} (body) VALUES (?)", (body,))  # noqa: S608 - ours
    connection.execute("COMMIT")


def _publish(folder: Path, sizes: tuple[int, ...]) -> None:
    """Nobody sees a file before it is whole, and none that is there is replaced."""
    for size in sizes:
        name = f"{size}-{os.urandom(4).hex()}"
        part = folder / f".tmp-{name}"
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(handle, b"x" * size)
        os.fsync(handle)
        os.close(handle)
        os.link(part, folder / name)
        part.unlink()
    handle = os.open(folder, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
