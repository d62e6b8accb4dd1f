"""A lake in a folder for every test, as the documents draw it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.open(tmp_path / "lake", create=True) as opened:
        yield opened


@pytest.fixture
def orders(lake: lakebed.Lake) -> lakebed.Table:
    return lake.create_table("sales.orders", "id long not null, name string, amount double")
