"""Branches and tags as Iceberg's refs: other readers see each of them, and Delta shows main."""

from pathlib import Path
from typing import Any

import deltalake
import orjson
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import lakebed
from lakebed import Lake, Table
from tests.interop.duckdb155 import asked_of_duckdb

pytestmark = pytest.mark.filterwarnings("ignore")  # the readers' own, about v3


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lakebed.open(tmp_path / "lake", create=True)


def create(lake: Lake, *ids: int, **options: Any) -> Table:
    table = lake.create_table("s.t", "id long", **options)
    append(table, *ids)
    return table


def append(table: Table, *ids: int, **options: Any) -> None:
    table.append(pa.table({"id": list(ids)}), **options)


def metadata(table: Table) -> dict[str, Any]:
    folder = Path(table.location, "metadata")
    path = folder / f"{(folder / 'version-hint.text').read_text()}.metadata.json"
    found: dict[str, Any] = orjson.loads(path.read_bytes())
    return found


def shown(table: Table) -> dict[str, list[int]]:
    """The ids of every ref as PyIceberg, Polars and DuckDB read them."""
    iceberg = StaticTable.from_metadata(table.location)
    found = {}
    for name, ref in metadata(table)["refs"].items():
        at = ref["snapshot-id"]
        rows = sorted(iceberg.scan(snapshot_id=at).to_arrow()["id"].to_pylist())
        frame = pl.scan_iceberg(iceberg, snapshot_id=at).collect()
        assert sorted(frame["id"].to_list()) == rows
        found[name] = rows
    assert duckdb_ids(table) == found
    return found


def duckdb_ids(table: Table) -> dict[str, list[int]]:
    refs = {name: ref["snapshot-id"] for name, ref in metadata(table)["refs"].items()}
    source = f"SELECT id FROM iceberg_scan('{table.location}', snapshot_from_id="
    answers = asked_of_duckdb([f"{source}{at})" for at in refs.values()])
    return {n: sorted(map(int, a["rows"])) for n, a in zip(refs, answers, strict=True)}


def delta_ids(table: Table) -> list[int]:
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.location))
    rows = pa.table(builder.execute("SELECT id FROM t").read_all())
    return sorted(rows["id"].to_pylist())


def test_refs_show_what_they_name_and_delta_shows_main(lake: Lake) -> None:
    table = create(lake, 1, 2, 3)
    table.create_branch("audit", max_age=86_400_000, min_snapshots=5, max_snapshot_age=1000)
    table.create_tag("first", max_age=7)
    append(table, 10, branch="audit")
    table.delete("id = 2", branch="audit")
    append(table, 20)

    assert shown(table) == {"main": [1, 2, 3, 20], "audit": [1, 3, 10], "first": [1, 2, 3]}
    assert delta_ids(table) == [1, 2, 3, 20]
    refs = metadata(table)["refs"]
    assert {k: v for k, v in refs["audit"].items() if k != "snapshot-id"} == {
        "type": "branch",
        "max-ref-age-ms": 86_400_000,
        "min-snapshots-to-keep": 5,
        "max-snapshot-age-ms": 1000,
    }
    assert {k: v for k, v in refs["first"].items() if k != "snapshot-id"} == {
        "type": "tag",
        "max-ref-age-ms": 7,
    }
    assert lake.check().findings == []


def test_main_takes_a_branch_with_its_snapshot_and_goes_on(lake: Lake) -> None:
    table = create(lake, *range(10))
    table.create_branch("etl")
    append(table, 10, 11, branch="etl")
    table.delete("id IN (3, 10)", branch="etl")
    before = metadata(table)

    table.fast_forward("main", to="etl")

    taken = metadata(table)
    assert taken["current-snapshot-id"] == before["refs"]["etl"]["snapshot-id"]
    assert taken["last-sequence-number"] == before["last-sequence-number"]
    assert taken["snapshot-log"][-1]["snapshot-id"] == taken["current-snapshot-id"]
    expected = [0, 1, 2, 4, 5, 6, 7, 8, 9, 11]
    assert shown(table) == {"main": expected, "etl": expected}
    assert delta_ids(table) == expected

    table.set_properties({"owner": "ada"})
    append(table, 20)
    table.delete("id IN (0, 20)")
    append(table, 30, branch="etl")
    assert shown(table) == {"main": expected[1:], "etl": [*expected, 30]}
    times = [e["timestamp-ms"] for e in metadata(table)["snapshot-log"]]
    assert times == sorted(times)
    assert lake.check().findings == []


def test_a_dropped_branch_leaves_the_metadata_and_a_tag_keeps_its_snapshot(lake: Lake) -> None:
    table = create(lake, 1, properties={"publish.iceberg.keep": "2"})
    table.create_tag("old")
    table.create_branch("gone")
    append(table, 2, branch="gone")
    for n in range(3, 7):
        append(table, n)
    made = metadata(table)
    assert shown(table) == {"main": [1, 3, 4, 5, 6], "gone": [1, 2], "old": [1]}

    table.drop_branch("gone")

    left = metadata(table)
    assert shown(table) == {"main": [1, 3, 4, 5, 6], "old": [1]}
    assert len(left["snapshots"]) == 3  # two of main and the tag's
    assert left["last-sequence-number"] == made["last-sequence-number"]


def test_a_branch_of_a_branch_and_of_an_old_version(lake: Lake) -> None:
    table = create(lake, 1)
    append(table, 2)
    append(table, 3)
    table.create_branch("old", version=2)
    append(table, 10, branch="old")
    table.create_branch("twig", ref="old")
    append(table, 20, branch="twig")
    table.delete("id = 1", branch="twig")
    table.create_branch("untouched", ref="twig")
    append(table, 30, branch="untouched")

    assert shown(table) == {
        "main": [1, 2, 3],
        "old": [1, 2, 10],
        "twig": [2, 10, 20],
        "untouched": [2, 10, 20, 30],
    }
    assert lake.check().findings == []


def test_a_branch_written_while_iceberg_was_off_is_shown_whole_later(lake: Lake) -> None:
    table = create(lake, 1, 2)
    table.create_branch("b")
    append(table, 3, branch="b")
    table.set_formats("delta")
    append(table, 4, branch="b")
    table.set_formats("delta,iceberg")
    append(table, 5, branch="b")

    assert shown(table) == {"main": [1, 2], "b": [1, 2, 3, 4, 5]}
    assert lake.check().findings == []


def test_main_takes_a_branch_that_iceberg_never_saw(lake: Lake) -> None:
    table = create(lake, 1, 2, formats=["delta"])
    table.set_formats("delta,iceberg")
    table.create_branch("b")
    table.set_formats("delta")
    append(table, 3, branch="b")
    table.fast_forward("main", to="b")
    table.set_formats("delta,iceberg")
    append(table, 4)

    assert shown(table)["main"] == [1, 2, 3, 4]
    assert lake.check().findings == []


def test_a_branch_begins_on_an_empty_table(lake: Lake) -> None:
    table = lake.create_table("s.t", "id long")
    table.create_branch("b")
    assert metadata(table)["refs"] == {}

    append(table, 1, branch="b")

    assert shown(table) == {"b": [1]}
    assert "current-snapshot-id" not in metadata(table)
    table.fast_forward("main", to="b")
    assert shown(table) == {"main": [1], "b": [1]}
    assert lake.check().findings == []


def test_damage_of_a_branch_is_found_and_mended(lake: Lake) -> None:
    table = create(lake, 1, 2)
    table.create_branch("b")
    append(table, 3, 4, branch="b")
    table.delete("id = 4", branch="b")
    (puffin,) = Path(table.location, "_deletes").glob("*.puffin")
    good = puffin.read_bytes()
    puffin.write_bytes(good[:-3])
    assert {f.path for f in lake.check().findings} == {f"_deletes/{puffin.name}"}

    report = lake.check(repair=True)

    assert report.repaired == ["s.t"]
    assert report.findings == []
    assert puffin.read_bytes() == good
    assert shown(table) == {"main": [1, 2], "b": [1, 2, 3]}


@pytest.mark.parametrize("change", ["append", "delete"])
def test_a_branch_that_begins_with_a_commit_of_no_rows_keeps_its_files(
    lake: Lake, change: str
) -> None:
    table = create(lake, 1, 2)
    table.create_branch("audit")
    table.overwrite([], where="id = 99", branch="audit")

    if change == "append":
        append(table, 3, branch="audit")
    else:
        table.delete("id = 1", branch="audit", settings={"write.delete.mode": "copy-on-write"})

    assert shown(table) == {"main": [1, 2], "audit": [1, 2, 3] if change == "append" else [2]}
    assert lake.check().findings == []
