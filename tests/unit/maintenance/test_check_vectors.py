"""Damaged files of deletion vectors are found, and mended by publishing anew."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed

ROWS = 70_000
Damage = Callable[[Path], None]


def lose(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [lose, cut, flip])
@pytest.mark.parametrize(("kind", "format_"), [("bin", "delta"), ("puffin", "iceberg")])
def test_a_damaged_file_of_vectors_is_found_and_mended(
    tmp_path: Path, kind: str, format_: str, damage: Damage
) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        odd = [i % 2 for i in range(ROWS)]
        table = lake.create_table("s.t", pa.table({"id": range(ROWS), "odd": odd}))
        table.delete("odd = 1")
        assert lake.check().clean
        (path,) = Path(table.location, "_deletes").glob(f"*.{kind}")
        good = path.read_bytes()
        damage(path)

        found = lake.check().findings

        assert {(f.path, f.format) for f in found} == {(f"_deletes/{path.name}", format_)}
        report = lake.check(repair=True)
        assert (report.repaired, report.findings) == (["s.t"], [])
        assert path.read_bytes() == good
        assert table.row_count == ROWS // 2


def test_other_vectors_than_those_of_the_rows_are_found(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("s.t", pa.table({"id": range(10)}))
        table.delete("id = 3")
        log = Path(table.location, "_delta_log", f"{1:020}.json")
        other = lake.create_table("s.u", pa.table({"id": range(10)}))
        other.delete("id = 4")
        theirs = Path(other.location, "_delta_log", f"{1:020}.json")
        vectors = [line.split('"pathOrInlineDv":"')[1].split('"')[0] for line in _adds(log, theirs)]
        log.write_text(log.read_text().replace(vectors[0], vectors[1]))

        messages = {f.message for f in lake.check("s.t").findings}

        assert "delta deletes other rows of a file than the rows do at version 1" in messages


def _adds(*logs: Path) -> list[str]:
    lines = [line for log in logs for line in log.read_text().splitlines()]
    return [line for line in lines if line.startswith('{"add"')]
