"""A short soak: writers, a reader and followers beside each other, kills and checks at random."""

from pathlib import Path

import pytest

from benchmarks.soak import soak


@pytest.mark.slow
def test_a_lake_under_load_keeps_every_promise(tmp_path: Path) -> None:
    said = soak(str(tmp_path / "lake"), None, tmp_path, seconds=6)

    assert said[0].startswith("6 s, ")
    assert "0 kills" not in said[0]
    assert "the check is clean" in said[1]
