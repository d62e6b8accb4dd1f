"""Branches, tags, restores and fast-forwards as stock readers of both formats see them."""

from pathlib import Path

import deltalake
import orjson
import pytest
from pyiceberg.table import StaticTable

import lakebed
from lakebed import Table
from tests.interop.readers import (
    At,
    DeltaQuery,
    PolarsDelta,
    PolarsIceberg,
    PyIceberg,
    Reader,
    places,
)

READERS: list[Reader] = [DeltaQuery(), PolarsDelta(), PyIceberg(), PolarsIceberg()]


@pytest.fixture(autouse=True)
def _planner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars has no planner of its own installed here."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("s.t", "id long not null, p int", partition_by=["p"])
    table.append(rows(*range(6)))
    return table


def rows(*ids: int) -> list[dict[str, int]]:
    return [{"id": i, "p": i % 2} for i in ids]


def assert_head(table: Table, *ids: int) -> None:
    """All readers agree on the head of main."""
    at = head_of(table)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [*ids]
    for reader in READERS:
        found = sorted(reader.read(at)["id"].to_pylist())
        assert found == [*ids], type(reader).__name__


def head_of(table: Table) -> At:
    """Metadata files count publications, of which branches make their own."""
    folder = Path(table.location, "metadata")
    path = folder / f"{(folder / 'version-hint.text').read_text()}.metadata.json"
    snapshot = orjson.loads(path.read_bytes())["current-snapshot-id"]
    return At(table.location, table.version, snapshot, str(path))


def iceberg_ids(table: Table, ref: str) -> list[int]:
    opened = StaticTable.from_metadata(table.location)
    snapshot = opened.metadata.refs[ref].snapshot_id
    found: list[int] = opened.scan(snapshot_id=snapshot).to_arrow()["id"].to_pylist()
    return sorted(found)


def test_a_branch_is_audited_then_published(table: Table) -> None:
    table.create_branch("audit", min_snapshots=3)
    table.append(rows(10, 11), branch="audit")
    table.delete("id = 0", branch="audit")

    assert_head(table, 0, 1, 2, 3, 4, 5)
    assert iceberg_ids(table, "audit") == [1, 2, 3, 4, 5, 10, 11]
    before = deltalake.DeltaTable(table.location).version()

    table.fast_forward("main", to="audit")

    assert_head(table, 1, 2, 3, 4, 5, 10, 11)
    assert deltalake.DeltaTable(table.location).version() == before + 1
    shown = StaticTable.from_metadata(table.location).metadata
    assert shown.current_snapshot_id == shown.refs["audit"].snapshot_id
    assert shown.refs["audit"].min_snapshots_to_keep == 3


def test_branch_and_main_go_on_each_for_itself(table: Table) -> None:
    table.create_branch("b")
    table.append(rows(10), branch="b")
    table.append(rows(20))
    table.delete("id IN (1, 10)", branch="b")
    table.delete("id = 2")
    table.overwrite(rows(7), branch="b")

    assert_head(table, 0, 1, 3, 4, 5, 20)
    assert iceberg_ids(table, "b") == [7]
    table.restore(version=3, branch="b")
    assert iceberg_ids(table, "b") == [0, 2, 3, 4, 5]
    table.drop_branch("b")
    assert set(StaticTable.from_metadata(table.location).metadata.refs) == {"main"}
    assert_head(table, 0, 1, 3, 4, 5, 20)


def test_tags_are_shown_where_they_were_made(table: Table) -> None:
    table.create_tag("first", max_age=86_400_000)
    table.delete("id < 3")
    table.create_branch("b")
    table.append(rows(9), branch="b")
    table.create_tag("of-branch", ref="b")
    table.append(rows(8), branch="b")

    assert iceberg_ids(table, "first") == [0, 1, 2, 3, 4, 5]
    assert iceberg_ids(table, "of-branch") == [3, 4, 5, 9]
    refs = StaticTable.from_metadata(table.location).metadata.refs
    assert refs["first"].max_ref_age_ms == 86_400_000
    assert {name: str(ref.snapshot_ref_type) for name, ref in refs.items()} == {
        "main": "branch",
        "b": "branch",
        "first": "tag",
        "of-branch": "tag",
    }


def test_readers_agree_after_restores(table: Table) -> None:
    table.delete("id = 1")
    table.update({"id": "id + 100"}, "id = 2")
    table.overwrite(rows(51), where="p = 1")

    table.restore(version=2)
    assert_head(table, 0, 2, 3, 4, 5)
    table.restore(version=3)
    assert_head(table, 0, 3, 4, 5, 102)
    table.restore(version=1)
    assert_head(table, 0, 1, 2, 3, 4, 5)
    table.append(rows(60))
    assert_head(table, 0, 1, 2, 3, 4, 5, 60)
    for version, at in places(table).items():
        wanted = sorted(table.scan(version=version).to_arrow()["id"].to_pylist())
        for reader in (DeltaQuery(), PyIceberg()):
            assert sorted(reader.read(at)["id"].to_pylist()) == wanted, (version, reader)


def test_delta_history_names_the_operations(table: Table) -> None:
    table.create_branch("b")
    table.append(rows(10), branch="b")
    table.fast_forward("main", to="b")
    table.restore(version=1)

    history = deltalake.DeltaTable(table.location).history()

    assert [entry["version"] for entry in history] == [3, 2, 1, 0]
    assert "RESTORE" in history[0]["operation"].upper()
    lines = Path(table.location, "_delta_log", f"{2:020}.json").read_bytes().splitlines()
    adds = [orjson.loads(line)["add"] for line in lines if b'"add"' in line[:8]]
    assert len(adds) == 1
