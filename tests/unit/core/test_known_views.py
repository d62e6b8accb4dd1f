"""What a commit hands to the publishers is what they would read of it."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.core.ledger import Ledger, VersionView

_ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, None], pa.int32()),
        "big": pa.array([2**62, -1, 0, None], pa.int64()),
        "part": pa.array([-0.0, float("nan"), 1.5, None], pa.float64()),
        "text": pa.array(["a" * 100, "", "ä", None]),
        "raw": pa.array([b"\xff" * 40, b"", b"\x00", None], pa.binary()),
        "price": pa.array(
            [Decimal("1.20"), Decimal("-3.00"), Decimal(0), None], pa.decimal128(9, 2)
        ),
        "day": pa.array([dt.date(1969, 12, 31), dt.date(2026, 1, 1), dt.date(1, 1, 1), None]),
        "at": pa.array([-1, 0, 1, None], pa.timestamp("us", tz="UTC")),
        "yes": pa.array([True, False, True, None]),
        "nested": pa.array([{"x": 1}, {"x": None}, None, {"x": 3}], pa.struct([("x", pa.int64())])),
    }
)


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[VersionView, VersionView]]:
    """Every view that a commit handed over, beside the one that the rows give."""
    found: list[tuple[VersionView, VersionView]] = []

    def remember(ledger: Ledger, view: VersionView) -> None:
        read = Ledger(ledger._store, ledger.table_id).view(view.commit.version)
        found.append((view, read))

    monkeypatch.setattr(Ledger, "remember", remember)
    return found


def test_a_view_of_a_commit_is_what_the_rows_say(
    tmp_path: Path, handed: list[tuple[VersionView, VersionView]]
) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("s.t", _ROWS.schema, partition_by=["day(at)"])
        table.append(_ROWS)
        table.append(_ROWS, message="again")
        table.delete("id = 2")  # upgrades to Iceberg v3: files of before get their row ids
        table.append(_ROWS)
        table.delete("id = 2 OR id = 3")
        table.delete("id IS NULL")
        table.update({"big": "7"}, "id = 1")
        table.delete("big = 7")
        other = lake.create_table("s.u", _ROWS.schema)
        other.append(_ROWS)
        other.create_branch("side")
        other.delete("id = 1", branch="side")  # the table is upgraded before main has a vector
        other.delete("id = 2")
        other.overwrite(_ROWS)
        with lake.transaction() as both:
            both.table("s.t").append(_ROWS)
            both.table("s.u").append(_ROWS)
            both.table("s.u").delete("id = 3")
    assert len(handed) >= 13
    assert any(view.added and view.removed for view, _ in handed)
    for view, read in handed:
        assert view == read


def test_versions_that_only_the_rows_can_tell_are_not_handed_over(
    tmp_path: Path, handed: list[tuple[VersionView, VersionView]]
) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("s.t", _ROWS.schema)
        table.append(_ROWS)
        before = len(handed)
        table.restore(version=0)
        table.create_branch("side")
        table.append(_ROWS, branch="side")
    assert len(handed) == before
