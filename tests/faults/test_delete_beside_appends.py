"""Changes of rows finish beside a steady stream of appends from other processes."""

import multiprocessing
import time
from pathlib import Path

import pytest

import lakebed
from tests.faults.conftest import Place
from tests.faults.health import assert_healthy

WRITERS = 2
MOST_S = 60.0


def append_until_told(uri: str, warehouse: str | None, folder: str, number: int) -> int:
    """How many rows this process appended, one per commit, as fast as it can."""
    stop, ready, count = Path(folder, "stop"), Path(folder, f"ready{number}"), 0
    deadline = time.monotonic() + MOST_S
    with lakebed.open(uri, warehouse=warehouse) as lake:
        table = lake.table("a.t")
        while not stop.exists() and time.monotonic() < deadline:
            table.append([{"id": (number + 1) * 100_000 + count, "n": 1}])
            count += 1
            ready.touch()
    return count


@pytest.mark.parametrize("isolation", ["write_serializable", "serializable"])
def test_a_delete_and_an_update_finish_beside_other_processes_appends(
    place: Place, tmp_path: Path, isolation: str
) -> None:
    with place.open(create=True) as lake:
        table = lake.create_table("a.t", "id long not null, n int")
        table.append([{"id": i, "n": 0} for i in range(1000)])
        warehouse = None if place.kind == "sqlite" else str(place.warehouse)

        with multiprocessing.get_context("spawn").Pool(WRITERS) as pool:
            jobs = [(place.uri, warehouse, str(tmp_path), n) for n in range(WRITERS)]
            writing = pool.starmap_async(append_until_told, jobs, chunksize=1)
            while not all((tmp_path / f"ready{n}").exists() for n in range(WRITERS)):
                assert not writing.ready(), writing.get()
                time.sleep(0.05)
            first = table.version
            deleted = table.delete("n = 0 AND id % 2 = 0", isolation=isolation)
            updated = table.update({"n": "n + 5"}, "n = 0", isolation=isolation)
            last = table.version
            (tmp_path / "stop").touch()
            counts = writing.get(MOST_S)

        assert deleted.summary["deleted_rows"] == updated.summary["updated_rows"] == 500
        assert last - first > 2, "nobody appended meanwhile"
        found = {row["id"]: row["n"] for row in table.to_arrow().to_pylist()}
        new = [(n + 1) * 100_000 + i for n, count in enumerate(counts) for i in range(count)]
        assert {i: n for i, n in found.items() if i < 1000} == dict.fromkeys(range(1, 1000, 2), 5)
        assert_healthy(lake, {"a.t": [*range(1, 1000, 2), *new]})
