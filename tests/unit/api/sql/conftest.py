"""A lake with one table of three orders."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lakebed.open(str(tmp_path / "lake"), create=True) as opened:
        opened.sql(
            "CREATE SCHEMA s; CREATE TABLE s.t (id BIGINT NOT NULL, name TEXT, ts TIMESTAMP)"
        )
        opened.sql("INSERT INTO s.t VALUES (1, 'a', NULL), (2, 'b', NULL), (3, NULL, NULL)")
        yield opened
