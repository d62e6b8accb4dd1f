"""Every file of SQL beside this one, on a SQLite lake and on a PostgreSQL lake."""

from pathlib import Path

import pytest

import lakebed
from tests.sql.runner import run_file

FILES = sorted(Path(__file__).parent.glob("*.test"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_sql_on_sqlite(path: Path, tmp_path: Path) -> None:
    with lakebed.open(str(tmp_path / "lake"), create=True) as lake:
        assert run_file(lake, path) > 0
        assert lake.check().clean


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_sql_on_postgresql(path: Path, tmp_path: Path, postgres_url: str) -> None:
    with lakebed.open(postgres_url, warehouse=str(tmp_path / "warehouse"), create=True) as lake:
        assert run_file(lake, path) > 0
        assert lake.check().clean
