"""Every test at the Python door has a lake of its own, and no settings of whoever runs it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed


@pytest.fixture(autouse=True)
def _no_settings_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("LAKEBED_") and name != "LAKEBED_TEST_POSTGRES":
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))


@pytest.fixture
def lake() -> Iterator[lakebed.Lake]:
    """In memory."""
    with lakebed.open(":memory:") as lake:
        yield lake


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[lakebed.Lake]:
    """In a folder."""
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        yield lake
