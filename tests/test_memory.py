"""Memory of row-level changes is bounded: large ones spill, whatever the size of the table."""

import subprocess
import sys
from pathlib import Path

import pytest

_CHANGES = """
import resource, sys
import pyarrow as pa
import pyarrow.compute as pc
import lakebed

folder, rows = sys.argv[1], int(sys.argv[2])
SETTINGS = {"query.memory-limit": "150MB"}
SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "n": pa.int64()})

def batches():
    for first in range(0, rows, 50_000):
        ids = pa.arange(first, min(rows, first + 50_000))
        names = pc.binary_join_element_wise(ids.cast(pa.string()), "x" * 60, "-")
        yield pa.record_batch([ids, names, pc.multiply(ids, 7)], schema=SCHEMA)

with lakebed.open(folder, create=True, settings=SETTINGS) as lake:
    table = lake.create_table("a.t", SCHEMA)
    table.append(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    done = [
        table.update({"n": "n + 1"}, "id % 2 = 0"),
        table.delete("n % 3 = 0"),
        table.merge(table.scan(), "t.id = s.id").when_matched_update({"name": "s.name || '!'"})
        .when_not_matched_insert_all().execute(),
    ]
    left = table.row_count
    assert [c.summary["updated_rows"] for c in done] == [(rows + 1) // 2, 0, left]
    changed = lake.sql("SELECT count(*) AS n FROM a.t WHERE name LIKE '%!'").to_arrow()
    assert changed.to_pylist() == [{"n": left}]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def _peak_mb(folder: Path, rows: int) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _CHANGES, str(folder), str(rows)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
def test_changes_of_every_row_take_no_more_memory_than_the_limit_allows(tmp_path: Path) -> None:
    few, many = (_peak_mb(tmp_path / str(rows), rows) for rows in (500_000, 2_000_000))

    # Four times the rows, and more than the engine may hold: it has filled its share by then.
    # Held whole, they would take two and a half times as much (four million take 1.6 times).
    assert many < 1.8 * few
