"""SuperTable's points about changing rows and going back, with the holes its code had."""

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import lakebed
from lakebed.model.errors import AmbiguousMerge, VersionNotFound

pytestmark = pytest.mark.filterwarnings("ignore")  # PyIceberg's own, about v3
MODES = pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])


@pytest.fixture
def table(lake: lakebed.Lake) -> lakebed.Table:
    """Ten files of ten rows; `n` is NULL in every third."""
    table = lake.create_table("s.t", "id long not null, n long, word string", primary_key=["id"])
    for first in range(0, 100, 10):
        rows = [{"id": i, "n": None if i % 3 == 0 else i} for i in range(first, first + 10)]
        table.append(rows)
    return table


def settings(mode: str) -> dict[str, str]:
    return {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}


def ids(table: lakebed.Table, where: str | None = None) -> list[int]:
    return sorted(table.scan(where=where, columns=["id"]).to_arrow()["id"].to_pylist())


def stock_ids(table: lakebed.Table) -> list[list[int]]:
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.location))
    delta = pa.table(builder.execute("SELECT id FROM t").read_all())["id"].to_pylist()
    iceberg = StaticTable.from_metadata(table.location).scan().to_arrow()["id"].to_pylist()
    return [sorted(delta), sorted(iceberg)]


@MODES
def test_st_20_rows_stay_for_which_the_condition_is_null(table: lakebed.Table, mode: str) -> None:
    kept = [i for i in range(100) if i % 3 == 0 or i <= 50]

    commit = table.delete("n > 50", settings=settings(mode))

    assert ids(table) == kept
    assert stock_ids(table) == [kept, kept]
    assert commit.summary["deleted_rows"] == 100 - len(kept)


def test_st_20_a_file_without_rows_goes(table: lakebed.Table) -> None:
    table.delete("id >= 20 AND id < 30")

    assert (len(table.files()), ids(table, "id >= 15 AND id < 35")) == (
        9,
        [*range(15, 20), *range(30, 35)],
    )


@MODES
def test_st_21_an_update_reads_the_files_that_can_match_alone(
    table: lakebed.Table, mode: str
) -> None:
    for file in table.files()[1:]:
        (Path(table.location) / file.path).unlink()  # it would be an error to open them

    commit = table.update(
        {"word": "'w' || id", "n": "coalesce(n, 0) + 1"}, "id = 4", settings=settings(mode)
    )

    assert (commit.summary["updated_rows"], commit.summary["scanned_files"]) == (1, 1)
    (row,) = table.scan(where="id = 4").to_arrow().to_pylist()
    assert row == {"id": 4, "n": 5, "word": "w4"}


@MODES
def test_st_22_a_merge_obeys_its_condition_and_clauses_in_one_commit(
    table: lakebed.Table, mode: str
) -> None:
    source = [{"id": 1000 + i, "n": i, "word": f"s{i}"} for i in (1, 2, 4, 500)]
    version = table.version

    commit = (
        table.merge(source, "t.n = s.n")  # neither the first column nor the key
        .when_matched_delete("s.word = 's1'")
        .when_matched_update({"word": "s.word"}, "t.id < 4")
        .when_not_matched_insert_all()
        .execute(settings=settings(mode))
    )

    assert (commit.version, table.version) == (version + 1, version + 1)
    counts = ("inserted_rows", "updated_rows", "deleted_rows")
    assert [commit.summary[name] for name in counts] == [1, 1, 1]
    assert ids(table) == [0, *range(2, 100), 1500]
    words = {
        r["id"]: r["word"] for r in table.scan(where="word IS NOT NULL").to_arrow().to_pylist()
    }
    assert words == {2: "s2", 1500: "s500"}
    assert stock_ids(table) == [ids(table)] * 2


def test_st_22_a_merge_never_duplicates(table: lakebed.Table) -> None:
    twice: list[dict[str, Any]] = [{"id": 7, "n": 1, "word": "x"}, {"id": 7, "n": 2, "word": "y"}]
    with pytest.raises(AmbiguousMerge, match="7"):
        table.merge(twice, "t.id = s.id").when_matched_update_all().execute()

    for _ in range(3):
        table.upsert([{"id": i, "n": 0, "word": "u"} for i in range(95, 105)])

    assert ids(table) == list(range(105))


def test_st_23_merge_on_read_leaves_data_alone_and_newer_rows_in_place(
    table: lakebed.Table,
) -> None:
    before = {f.path for f in table.files()}

    table.delete("id = 4 AND n = 4 AND word IS NULL")
    table.append([{"id": 4, "n": 4}])  # deleted before it was there
    table.update({"word": "'new'"}, "id = 15")

    assert before < {f.path for f in table.files()}
    assert ids(table) == list(range(100))
    assert stock_ids(table) == [list(range(100))] * 2
    vectors = list(Path(table.location).glob("_deletes/*.puffin"))
    assert len(vectors) == 2


def test_st_40_a_table_is_read_at_a_snapshot_and_at_a_time(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    snapshots = lake.sql("SELECT * FROM s.t$snapshots ORDER BY version").to_arrow().to_pylist()
    third = snapshots[2]

    rows = lake.sql(f"SELECT id FROM s.t VERSION AS OF {third['snapshot_id']}").to_arrow()
    by_time = table.scan(timestamp=third["time"]).to_arrow()

    assert sorted(rows["id"].to_pylist()) == sorted(by_time["id"].to_pylist()) == list(range(30))
    text = f"SELECT count(*) AS n FROM s.t TIMESTAMP AS OF '{third['time'].isoformat()}'"
    assert lake.sql(text).to_arrow().to_pylist() == [{"n": 30}]
    with pytest.raises(VersionNotFound) as refused:
        table.scan(timestamp="2001-01-01").to_arrow()
    assert refused.value.hint is not None
    assert "first commit" in refused.value.hint


def test_st_41_going_back_is_a_commit_that_writes_no_data(table: lakebed.Table) -> None:
    table.delete("id >= 10")
    files = {p.name for p in Path(table.location).glob("data/**/*.parquet")}

    commit = table.restore(version=5)

    assert (commit.operation, ids(table)) == ("restore", list(range(50)))
    assert {p.name for p in Path(table.location).glob("data/**/*.parquet")} == files
    assert stock_ids(table) == [list(range(50))] * 2
    assert [c.operation for c in table.history(limit=2)] == ["restore", "delete"]
