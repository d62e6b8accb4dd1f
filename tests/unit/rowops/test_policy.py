"""When a file that loses rows is written anew."""

import pytest

from lakebed.model.files import DataFile, LiveFile
from lakebed.model.ids import FileId, SnapshotId, SpecId, Version
from lakebed.rowops.policy import Policy

FILE = LiveFile(
    FileId(1),
    DataFile("data/f.parquet", 1000, 100, SpecId(0), (), {}),
    Version(1),
    None,
    1,
    SnapshotId(1),
    None,
)


@pytest.mark.parametrize(
    ("policy", "gone", "rewrites"),
    [
        (Policy(False, 0.5, 1000), 1, False),
        (Policy(False, 0.5, 1000), 50, False),
        (Policy(False, 0.5, 1000), 51, True),
        (Policy(False, 0.5, 999), 51, False),  # too large
        (Policy(False, 1.0, 1000), 99, False),
        (Policy(False, 0.0, 1000), 1, True),
        (Policy(True, 1.0, 0), 1, True),
    ],
)
def test_a_file_is_rewritten_by_mode_or_when_most_of_it_is_gone(
    policy: Policy, gone: int, rewrites: bool
) -> None:
    assert policy.rewrites(FILE, gone) is rewrites
