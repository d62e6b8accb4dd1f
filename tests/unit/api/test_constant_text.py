"""A text that a file shares beside NULLs: DuckDB 2.0 reads such columns wrong if they are plain."""

from pathlib import Path
from uuid import UUID

import pytest

import lakebed

VALUES = {
    "string": "a",
    "binary": b"a",
    "uuid": UUID(int=1),
    "fixed(3)": b"abc",
    "long": 5,
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("rows", [2, 5, 2000])
def test_nulls_beside_one_value_are_found(kind: str, rows: int, tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("a.t", f"id long, v {kind}", formats=["iceberg"])
        table.append([{"id": n, "v": VALUES[kind] if n % 2 else None} for n in range(rows)])

        found = lake.sql("SELECT id, v FROM a.t WHERE v IS NULL ORDER BY id").to_pylist()

    assert found == [{"id": n, "v": None} for n in range(0, rows, 2)]
