"""Every test of the command line works in a folder of its own."""

from pathlib import Path

import pytest

from tests.doors.cli.command import Lakebed


@pytest.fixture
def lakebed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lakebed:
    """A folder without a lake."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LAKEBED_LAKE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))
    return Lakebed(tmp_path)


@pytest.fixture
def lake(lakebed: Lakebed) -> Lakebed:
    """A folder that is a lake."""
    lakebed.ok("init", ".")
    return lakebed


@pytest.fixture
def orders(lake: Lakebed) -> Lakebed:
    """A lake with a table of three orders, in one commit after the creation."""
    lake.ok("table", "create", "sales.orders", "id long not null, name string, amount double")
    lake.write("orders.csv", "id,name,amount\n1,Ada,2.5\n2,,3\n3,Žofie,\n")
    lake.ok("append", "sales.orders", "orders.csv")
    return lake
