"""A local warehouse, and what of it is synced."""

import os
from pathlib import Path

import pytest

from lakebed.storage.local import LocalStorage


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def storage(root: Path) -> LocalStorage:
    return LocalStorage(root)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Inodes in the order they are synced."""
    inodes: list[int] = []
    fsync = os.fsync

    def counted(handle: int) -> None:
        inodes.append(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", counted)
    return inodes
