"""Spark follows rows that are deleted, updated, merged and evolved, on every branch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed import Lake, Table
from tests.interop.plain import plain_rows
from tests.interop.spark import Format, Row, spark_rows, spark_table
from tests.interop.test_deletion_vectors import STORIES, offered
from tests.interop.test_evolved_tables import CASES

FORMATS: tuple[Format, ...] = ("delta", "iceberg")
LINEAGE = ["id", "_row_id", "_last_updated_sequence_number"]
COPY = {f"write.{word}.mode": "copy-on-write" for word in ("delete", "update", "merge")}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lakebed.open(tmp_path / "lake", create=True) as opened:
        yield opened


@pytest.mark.parametrize("make", STORIES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("format_", FORMATS)
def test_spark_leaves_deleted_rows_out_at_every_version(
    lake: Lake, make: Any, format_: Format
) -> None:
    story = make(lake)

    for version, at in offered(story, format_).items():
        if format_ == "delta":
            rows = spark_rows("delta", at.location, version=version, columns=["id"])
        else:
            rows = spark_rows("iceberg", str(at.metadata_path), columns=["id"])
        assert len(rows) == len(story.ids[version]), version
        assert {row["id"] for row in rows} == story.ids[version], version


@pytest.mark.parametrize("format_", FORMATS)
def test_spark_filters_beside_deletion_vectors(lake: Lake, format_: Format) -> None:
    """Conditions leave files out by bounds; those of deleted rows still stand in them."""
    table = lake.create_table("s.t", "id long, n long")
    table.append([{"id": n, "n": n} for n in range(10)])
    table.append([{"id": n, "n": n} for n in range(10, 20)])
    table.delete("id IN (0, 9, 15)")

    for where, ids in (
        ("n = 9", []),
        ("n >= 8 AND n < 11", [8, 10]),
        ("n < 3", [1, 2]),
        ("n > 14", [16, 17, 18, 19]),
    ):
        found = spark_rows(format_, table.location, columns=["id"], where=where)
        assert sorted(row["id"] for row in found) == ids, where


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    lake = lakebed.open(tmp_path_factory.mktemp("evolved"), create=True)
    found = {}
    for case in CASES:
        options: dict[str, Any] = {"formats": case.formats, "partition_by": case.partition_by}
        table = lake.create_table(f"s.{case.name}", case.schema, **options)
        table.append(case.before)
        case.alter(table.alter()).commit()
        table.append(case.after)
        found[case.name] = table
    return found


@pytest.mark.parametrize(
    ("name", "format_"), [(case.name, format_) for case in CASES for format_ in case.formats]
)
def test_spark_reads_evolved_tables(evolved: dict[str, Table], name: str, format_: Format) -> None:
    case, table = next(c for c in CASES if c.name == name), evolved[name]

    assert plain_rows(spark_table(format_, table.location)) == plain_rows(table.to_arrow())
    for where in case.filters:
        found = spark_table(format_, table.location, where=where)
        assert plain_rows(found) == plain_rows(table.scan(where=where).to_arrow()), where


@pytest.mark.parametrize("settings", [{}, COPY], ids=["vectors", "copies"])
def test_merges_and_changes_are_read_by_spark(lake: Lake, settings: dict[str, str]) -> None:
    table = lake.create_table(
        "s.t", "id long, p string, n long", primary_key=["id"], partition_by=["p"]
    )
    table.append([{"id": n, "p": "ab"[n % 2], "n": n} for n in range(20)])
    table.update({"n": "n + 100", "p": "'c'"}, "id IN (3, 4)", settings=settings)
    merge = table.merge([{"id": n, "p": "d", "n": -n} for n in range(15, 25)], "t.id = s.id")
    merge.when_matched_update({"n": "s.n"}, condition="s.id <> 16").when_not_matched_insert_all()
    merge.execute(settings=settings)
    table.upsert([{"id": 5, "p": "b", "n": 55}, {"id": 30, "p": "e", "n": 30}], settings=settings)
    table.apply_changes(
        [
            {"id": 6, "p": None, "n": None, "_op": "DELETE"},
            {"id": 40, "p": "f", "n": 40, "_op": "INSERT"},
        ],
        settings=settings,
    )

    wanted = plain_rows(table.to_arrow())
    for format_ in FORMATS:
        assert plain_rows(spark_table(format_, table.location)) == wanted, format_
        found = spark_table(format_, table.location, where="p = 'c'")
        assert sorted(found["id"].to_pylist()) == [3, 4], format_
    assert lake.check().findings == []


def lineage(table: Table) -> dict[int, tuple[int, int]]:
    """The id and the last sequence number of each row, as Spark sees them."""
    rows: list[Row] = spark_rows("iceberg", table.location, columns=LINEAGE)
    found = {r["id"]: (r["_row_id"], r["_last_updated_sequence_number"]) for r in rows}
    assert len({row_id for row_id, _ in found.values()}) == len(rows)
    return found


@pytest.mark.parametrize("settings", [{}, COPY], ids=["vectors", "copies"])
def test_a_row_keeps_its_id_through_updates_and_rewrites(
    lake: Lake, settings: dict[str, str]
) -> None:
    table = lake.create_table("s.t", "id long, n long")
    table.append([{"id": n, "n": n} for n in range(10)])
    table.append([{"id": n, "n": n} for n in range(10, 20)])
    table.delete("id = 0")  # moves the table to v3
    before = lineage(table)

    table.update({"n": "n + 1"}, "id IN (1, 2, 15)", settings=settings)

    after = lineage(table)
    assert {key: row_id for key, (row_id, _) in after.items()} == {
        key: row_id for key, (row_id, _) in before.items()
    }
    touched = {key for key in after if after[key][1] != before[key][1]}
    assert touched == {1, 2, 15}
    assert {after[key][1] for key in touched} == {max(number for _, number in after.values())}

    table.delete("id = 3", settings=settings)

    assert lineage(table) == {key: value for key, value in after.items() if key != 3}


def test_rows_get_their_ids_when_the_table_moves_to_v3(lake: Lake) -> None:
    table = lake.create_table("s.t", "id long, p string", partition_by=["p"])
    for first in (0, 10, 20):
        table.append([{"id": n, "p": f"p{first}"} for n in range(first, first + 10)])

    table.delete("id = 5")

    moved = lineage(table)
    assert set(moved) == set(range(30)) - {5}
    table.append([{"id": 30, "p": "new"}])
    later = lineage(table)
    assert {key: later[key] for key in moved} == moved
    assert later[30][0] > max(row_id for row_id, _ in moved.values())


def test_spark_prunes_by_both_partitionings_of_a_table(lake: Lake) -> None:
    table = lake.create_table("s.t", "id long, p string, n long", partition_by=["p"])
    table.append([{"id": n, "p": "ab"[n % 2], "n": n} for n in range(10)])
    table.alter().set_partitioning(["bucket(4, n)", "truncate(1, p)"]).commit()
    table.append([{"id": n, "p": "abc"[n % 3], "n": n} for n in range(10, 20)])
    table.delete("n IN (3, 13)")
    table.update({"p": "'b'"}, "id = 2")

    for format_ in FORMATS:
        for where in (None, "p = 'b'", "n = 13", "n = 14", "p = 'c' AND n > 12", "id = 2"):
            wanted = plain_rows(table.scan(where=where).to_arrow())
            assert plain_rows(spark_table(format_, table.location, where=where)) == wanted, where


def test_spark_reads_branches_tags_and_old_snapshots(lake: Lake) -> None:
    table = lake.create_table("s.t", "id long, n long")
    table.append([{"id": n, "n": n} for n in range(3)])
    table.create_tag("first")
    table.create_branch("audit")
    table.append([{"id": 10, "n": 10}], branch="audit")
    table.update({"n": "n + 1"}, "id = 1", branch="audit")
    table.delete("id = 0")

    def read(ref: str) -> list[tuple[int, int]]:
        return sorted((r["id"], r["n"]) for r in spark_rows("iceberg", table.location, ref=ref))

    assert read("main") == [(1, 1), (2, 2)]
    assert read("first") == [(0, 0), (1, 1), (2, 2)]
    assert read("audit") == [(0, 0), (1, 2), (2, 2), (10, 10)]
    assert sorted(r["id"] for r in spark_rows("delta", table.location)) == [1, 2]

    table.restore(version=1)

    assert sorted(r["id"] for r in spark_rows("iceberg", table.location)) == [0, 1, 2]
    assert sorted(r["id"] for r in spark_rows("delta", table.location)) == [0, 1, 2]
