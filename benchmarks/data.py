"""The rows that are measured: numbers of any amount made on the spot, and TPC-H from tpchgen."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure import ENVIRONMENTS

_BATCH_ROWS = 1_000_000
NUMBERS = pa.schema(
    [pa.field("id", pa.int32(), nullable=False), ("name", pa.string()), ("value", pa.int64())]
)
TPCH_TABLES = (
    "customer",
    "lineitem",
    "nation",
    "orders",
    "part",
    "partsupp",
    "region",
    "supplier",
)


def default_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lakebed" / "bench"


def numbers(rows: int) -> pa.RecordBatchReader:
    """id, name and value; 33 bytes a row as CSV, as in the stress test of posixlake."""
    return pa.RecordBatchReader.from_batches(NUMBERS, _numbers(rows))


def _numbers(rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows, _BATCH_ROWS):
        yield numbered(pa.arange(first, min(first + _BATCH_ROWS, rows)))


def numbered(ids: pa.Array, add: int = 0) -> pa.RecordBatch:
    names = pc.binary_join_element_wise("user", ids.cast(pa.string()), "_")
    values = pc.add(pc.multiply(ids, 10), add)
    return pa.RecordBatch.from_arrays([ids.cast(pa.int32()), names, values], schema=NUMBERS)


def make_tpch(data: Path, thousandths: int) -> Path:
    """The folder of TPC-H at that many thousandths of scale factor 1; made once."""
    folder = data / f"tpch-{thousandths}"
    if not folder.exists():
        half = folder.with_name(f"{folder.name}.unfinished")
        program = ENVIRONMENTS["peers"] / "bin" / "tpchgen-cli"
        command: list[str | Path] = [
            program,
            "parquet",
            "-s",
            str(thousandths / 1000),
            f"--output-dir={half}",
        ]
        subprocess.run(command, check=True, capture_output=True)
        half.rename(folder)
    return folder


def tpch(data: Path, thousandths: int, table: str) -> pa.RecordBatchReader:
    """With plain strings: not everybody takes views of strings."""
    file = pq.ParquetFile(make_tpch(data, thousandths) / f"{table}.parquet")
    plain = pa.string()
    fields = [
        pa.field(f.name, plain if f.type == pa.string_view() else f.type, f.nullable)
        for f in file.schema_arrow
    ]
    schema = pa.schema(fields)
    batches = (b.cast(schema) for b in file.iter_batches(_BATCH_ROWS))
    return pa.RecordBatchReader.from_batches(schema, batches)
