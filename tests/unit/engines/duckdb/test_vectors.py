"""Deleted rows stay out, whatever the sizes of files and of the pieces their bits come in."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.engines.duckdb import vectors
from tests.unit.engines.duckdb.plans import by_arrow, by_duckdb, local


@pytest.mark.parametrize("piece", [8, 64, 1 << 20])
@pytest.mark.parametrize("sizes", [[1], [5], [8, 9, 7], [64] * 5, [100, 3, 100, 1, 17, 16]])
def test_deleted_rows_stay_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int], piece: int
) -> None:
    monkeypatch.setattr(vectors, "_PIECE_BITS", piece)
    monkeypatch.setattr(vectors, "_MOST_PIECES", 4)
    chosen = random.Random(len(sizes) * piece)
    table = local(tmp_path, "a int")
    deleted = {}
    for number, size in enumerate(sizes):
        table.add([{"a": number * 1000 + n} for n in range(size)], row_group_rows=10)
        if number != 2:
            deleted[number] = sorted(chosen.sample(range(size), chosen.randint(0, size)))
    plan = table.plan(deleted=deleted)

    found = by_duckdb(table.storage, plan, metadata=("_file", "_pos"))

    wanted = by_arrow(table.storage, plan, ("_file", "_pos"))
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


def test_filters_and_skipped_row_groups_leave_positions_right(tmp_path: Path) -> None:
    table = local(tmp_path, "a int, b string")
    table.add([{"a": n // 100, "b": f"{n:06}"} for n in range(5_000)], row_group_rows=500)
    gone = list(range(0, 5_000, 7))
    plan = table.plan(deleted={0: gone})

    found = by_duckdb(table.storage, plan, "SELECT b FROM t WHERE a BETWEEN 20 AND 29")

    kept = [f"{n:06}" for n in range(2_000, 3_000) if n % 7]
    assert sorted(found["b"].to_pylist()) == kept


def test_limits_and_samples_count_rows_that_are_there(tmp_path: Path) -> None:
    table = local(tmp_path, "a int")
    table.add(pa.table({"a": pa.array(range(10_000), pa.int32())}))
    plan = table.plan(deleted={0: range(9_990)})

    limited = by_duckdb(table.storage, plan, "SELECT a FROM t LIMIT 20")

    assert sorted(limited["a"].to_pylist()) == list(range(9_990, 10_000))
    least = by_duckdb(table.storage, plan, "SELECT min(a) AS m, count(*) AS n FROM t")
    assert least.to_pylist() == [{"m": 9_990, "n": 10}]
