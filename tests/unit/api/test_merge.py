"""MERGE: clauses in order, one commit, no duplicates, a row matched twice is an error."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lakebed
from lakebed.model.errors import AmbiguousMerge

SCHEMA = "id long not null, word string, n int"


@pytest.fixture
def table(disk: lakebed.Lake) -> lakebed.Table:
    table = disk.create_table("a.t", SCHEMA)
    table.append([{"id": i, "word": f"w{i}", "n": i} for i in range(10)])
    return table


def rows(table: Any) -> dict[int, tuple[str | None, int | None]]:
    listed = table.scan().to_arrow().to_pylist()
    found = {r["id"]: (r["word"], r["n"]) for r in listed}
    assert len(found) == len(listed), "a row is there twice"
    return found


START: dict[int, tuple[str | None, int | None]] = {i: (f"w{i}", i) for i in range(10)}


def source(*ids: int) -> list[dict[str, object]]:
    return [{"id": i, "word": f"new{i}", "n": i * 100} for i in ids]


def test_matched_rows_are_updated_and_others_inserted_once(table: lakebed.Table) -> None:
    """ST-22: what joined on a fixed column and appended the whole source."""
    commit = (
        table.merge(source(3, 20), "t.id = s.id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(message="why")
    )

    assert rows(table) == START | {3: ("new3", 300), 20: ("new20", 2000)}
    assert (commit.version, commit.operation, commit.message) == (2, "merge", "why")
    counts = commit.summary
    assert (counts["inserted_rows"], counts["updated_rows"], counts["deleted_rows"]) == (1, 1, 0)
    assert [c.operation for c in table.history()] == ["merge", "append", "create"]


def test_the_first_clause_whose_condition_is_true_acts(table: lakebed.Table) -> None:
    commit = (
        table.merge(source(1, 2, 3, 4, 20, 30, 40), "t.id = s.id")
        .when_matched_delete("s.id = 1")
        .when_matched_update({"n": "t.n + s.n"}, "s.id <= 2 OR NULL")
        .when_matched_update({"word": "'three'"}, "t.id = 3")
        .when_not_matched_insert({"id": "s.id", "n": "-1"}, "s.id = 20")
        .when_not_matched_insert_all("s.id < 40")
        .execute()
    )

    expected = START | {
        2: ("w2", 202),
        3: ("three", 3),
        20: (None, -1),
        30: ("new30", 3000),
    }
    del expected[1]
    assert rows(table) == expected
    counts = commit.summary
    assert (counts["inserted_rows"], counts["updated_rows"], counts["deleted_rows"]) == (2, 2, 1)


def test_rows_that_no_source_row_matches(table: lakebed.Table) -> None:
    commit = (
        table.merge(source(0, 1, 2), "t.id = s.id")
        .when_not_matched_by_source_delete("t.id >= 8")
        .when_not_matched_by_source_update({"word": "t.word || '!'"}, "n > 6")
        .execute()
    )

    expected = START | {7: ("w7!", 7)}
    del expected[8], expected[9]
    assert rows(table) == expected
    assert (commit.summary["updated_rows"], commit.summary["deleted_rows"]) == (1, 2)


def test_a_row_matched_twice_is_an_error_that_names_the_key(table: lakebed.Table) -> None:
    twice = [*source(3, 5), *source(3)]

    with pytest.raises(AmbiguousMerge, match="id = 3") as refused:
        table.merge(twice, "t.id = s.id").when_matched_update_all().execute()
    with pytest.raises(AmbiguousMerge):
        table.merge(twice, "t.id = s.id").when_matched_delete().execute()

    assert refused.value.context["rows"] == (0, 2)
    assert (table.version, rows(table)) == (1, START)


def test_two_matches_of_which_one_acts_are_no_error(table: lakebed.Table) -> None:
    twice = [*source(3), {"id": 3, "word": "act", "n": 1}]

    table.merge(twice, "t.id = s.id").when_matched_update_all("s.word = 'act'").execute()

    assert rows(table) == START | {3: ("act", 1)}


def test_nulls_match_nothing(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.nulls", "id long, n int")
    table.append([{"id": None, "n": 1}, {"id": 1, "n": 1}])

    commit = (
        table.merge([{"id": None, "n": 5}, {"id": 1, "n": 5}], "t.id = s.id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )

    found = sorted((r["id"] or 0, r["n"]) for r in table.to_arrow().to_pylist())
    assert found == [(0, 1), (0, 5), (1, 5)]
    assert (commit.summary["updated_rows"], commit.summary["inserted_rows"]) == (1, 1)


def test_any_condition_joins(table: lakebed.Table) -> None:
    ranges = pa.table({"low": [2, 6], "high": [3, 7], "tag": ["a", "b"]})

    table.merge(
        ranges, "old.n BETWEEN r.low AND r.high", target_alias="old", source_alias="r"
    ).when_matched_update({"word": "r.tag"}).execute()

    tags = {2: ("a", 2), 3: ("a", 3), 6: ("b", 6), 7: ("b", 7)}
    assert rows(table) == START | tags


@pytest.mark.parametrize("kind", ["arrow", "reader", "pandas", "polars", "lazy", "dicts", "items"])
def test_sources_of_every_kind(table: lakebed.Table, kind: str) -> None:
    arrow = pa.Table.from_pylist(source(3, 20), pa.schema(table.arrow_schema))
    made: dict[str, Any] = {
        "arrow": arrow,
        "reader": arrow.to_reader(),
        "pandas": pd.DataFrame(source(3, 20)),
        "polars": pl.DataFrame(source(3, 20)).with_columns(pl.col("n").cast(pl.Int32)),
        "lazy": pl.LazyFrame(source(3, 20)),
        "dicts": source(3, 20),
        "items": iter(source(3, 20)),
    }

    merge = table.merge(made[kind], "t.id = s.id").when_matched_update_all()
    merge.when_not_matched_insert_all().execute()

    assert rows(table) == START | {3: ("new3", 300), 20: ("new20", 2000)}


def test_a_table_and_a_scan_are_sources(disk: lakebed.Lake, table: lakebed.Table) -> None:
    other = disk.create_table("a.other", SCHEMA)
    other.append(source(3, 4, 20))

    table.merge(other.scan(where="id <> 4"), "t.id = s.id").when_matched_update_all().execute()
    table.merge(other, "t.id = s.id").when_not_matched_insert_all().execute()

    assert rows(table) == START | {3: ("new3", 300), 20: ("new20", 2000)}


def test_a_table_merged_with_itself(table: lakebed.Table) -> None:
    table.merge(table, "t.id = s.id + 1").when_matched_update({"n": "t.n + s.n"}).execute()

    assert rows(table) == {i: (f"w{i}", i + max(0, i - 1)) for i in range(10)}


def test_inserts_alone_touch_no_file(table: lakebed.Table) -> None:
    commit = table.merge(source(3, 20), "t.id = s.id").when_not_matched_insert_all().execute()

    assert rows(table) == START | {20: ("new20", 2000)}
    counts = commit.summary
    assert (counts["vectored_files"], counts["rewritten_files"]) == (0, 0)


def test_only_files_with_keys_of_the_source_are_opened(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.many", SCHEMA)
    with disk.transaction() as tx:
        for start in range(0, 200, 10):
            new = [{"id": i, "word": "w", "n": i} for i in range(start, start + 10)]
            tx.table("a.many").append(new)
    keep = ("00", "19")
    lowest = {f.path: n for n, f in enumerate(table.files())}
    for path, number in lowest.items():
        if f"{number:02}" not in keep:
            Path(table.location, path).unlink()

    commit = table.merge(source(5, 195), "t.id = s.id").when_matched_update_all().execute()

    assert (commit.summary["scanned_files"], commit.summary["updated_rows"]) == (2, 2)


def test_a_condition_on_the_table_leaves_files_out(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.p", "id long, p string", partition_by=["p"])
    table.append([{"id": i, "p": "xyz"[i % 3]} for i in range(9)])

    commit = (
        table.merge([{"k": 1}, {"k": 2}], "t.p = 'y' AND t.id + 0 = s.k")
        .when_matched_delete()
        .execute()
    )

    assert (commit.summary["scanned_files"], commit.summary["deleted_rows"]) == (1, 1)


def test_merging_into_an_empty_table_and_from_no_rows(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.empty", SCHEMA)

    def merged(given: object) -> lakebed.Commit:
        merge = table.merge(given, "t.id = s.id").when_matched_update_all()
        return merge.when_not_matched_insert_all().execute()

    assert merged([]).changed is False
    assert merged(source(1, 2)).summary["inserted_rows"] == 2
    assert merged([]).changed is False
    assert rows(table) == {1: ("new1", 100), 2: ("new2", 200)}


def test_copy_on_write_and_lineage(table: lakebed.Table) -> None:
    table.delete("id = 9")  # Iceberg v3 from here on
    commit = (
        table.merge(source(3, 20), "t.id = s.id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(settings={"write.merge.mode": "copy-on-write"})
    )

    expected = START | {3: ("new3", 300), 20: ("new20", 2000)}
    del expected[9]
    assert (rows(table), len(table.files())) == (expected, 1)
    assert (commit.summary["copied_rows"], commit.summary["rewritten_files"]) == (8, 1)


def test_columns_must_be_the_same_for_all(table: lakebed.Table) -> None:
    with pytest.raises(lakebed.SchemaMismatch, match="lacks word"):
        table.merge([{"id": 1, "n": 1}], "t.id = s.id").when_matched_update_all().execute()
    merge = table.merge([row | {"extra": 1} for row in source(1)], "t.id = s.id")
    with pytest.raises(lakebed.SchemaMismatch, match="extra beside"):
        merge.when_not_matched_insert_all().execute()

    assert table.version == 1


@pytest.mark.parametrize(
    ("on", "clause", "values"),
    [
        ("t.id = s.nope", "s.id = 1", {"n": "1"}),
        ("t.id = ", None, {"n": "1"}),
        ("t.id = s.id", "s.id =", {"n": "1"}),
        ("t.id = s.id", "x.id = 1", {"n": "1"}),
        ("t.id = s.id", None, {"n": "'text'"}),
        ("t.id = s.id", None, {"n": "3000000000"}),
        ("t.id = s.id", None, {"nope": "1"}),
        ("t.id = s.id) OR (TRUE", None, {"n": "1"}),
        ("id = id", None, {"n": "1"}),
        ("t.id", None, {"n": "1"}),
        ("t.id = s.id", "s.n", {"n": "1"}),
        ("t.id = s.id", "EXISTS (SELECT 1)", {"n": "1"}),
    ],
)
def test_bad_merges_are_refused_and_nothing_is_written(
    table: lakebed.Table, on: str, clause: str | None, values: dict[str, object]
) -> None:
    before = {p.name for p in Path(table.location).rglob("*")}

    with pytest.raises(lakebed.LakebedError) as refused:
        table.merge(source(1), on).when_matched_update(values, clause).execute()

    assert refused.value.hint
    assert (table.version, {p.name for p in Path(table.location).rglob("*")}) == (1, before)


def test_bad_arguments(table: lakebed.Table) -> None:
    with pytest.raises(lakebed.InvalidInput, match="no clause"):
        table.merge(source(1), "t.id = s.id").execute()
    with pytest.raises(lakebed.InvalidInput, match="alias"):
        table.merge(source(1), "t.id = s.id", source_alias="T")
    with pytest.raises(lakebed.InvalidInput, match="ON"):
        table.merge(source(1), "")
    with pytest.raises(lakebed.InvalidInput):
        table.merge("file.csv", "t.id = s.id").when_matched_delete().execute()
    with pytest.raises(lakebed.InvalidInput, match="differ only in case"):
        table.merge(pa.table({"id": [1], "ID": [2]}), "t.id = s.id").when_matched_delete().execute()

    assert table.version == 1


def test_a_source_that_fails_half_way_writes_nothing(table: lakebed.Table) -> None:
    def broken() -> Any:
        yield from source(1, 2)
        raise RuntimeError("the line went dead")

    with pytest.raises(RuntimeError, match="went dead"):
        table.merge(broken(), "t.id = s.id").when_matched_update_all().execute()

    assert (table.version, rows(table)) == (1, START)


def test_merges_are_replayed(table: lakebed.Table) -> None:
    def merged() -> lakebed.Commit:
        merge = table.merge(source(20), "t.id = s.id").when_not_matched_insert_all()
        return merge.execute(idempotency_key="k")

    first, again = merged(), merged()

    assert (again.version, again.replayed) == (first.version, True)
    assert again.summary["inserted_rows"] == 1


def test_a_merge_that_meets_another_is_planned_again(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    """Both insert the key 20: the second must find it there."""

    def racing() -> Any:
        merge = table.merge(source(20), "t.id = s.id").when_not_matched_insert_all()
        merge.execute()
        yield from source(20)

    # The source is read before the table is planned; so race at the commit instead.
    with disk.transaction() as tx:
        staged = tx.table("a.t")
        merge = staged.merge(source(20), "t.id = s.id").when_not_matched_insert_all()
        merge.execute()
        table.merge(racing(), "t.id = s.id").when_matched_update_all().execute()
        with pytest.raises(lakebed.CommitConflict):
            tx.commit()

    assert rows(table) == START | {20: ("new20", 2000)}
    assert not [p for p in Path(table.location).rglob("*.parquet") if _orphan(table, p)]


def _orphan(table: lakebed.Table, path: Path) -> bool:
    known = {f.path for v in range(table.version + 1) for f in table.files(version=v)}
    return path.relative_to(table.location).as_posix() not in known


def test_the_check_is_clean_after_merges(disk: lakebed.Lake, table: lakebed.Table) -> None:
    for start in (0, 5, 8):
        merge = table.merge(source(*range(start, start + 5)), "t.id = s.id")
        merge.when_matched_update_all("s.id % 2 = 0").when_matched_delete()
        merge.when_not_matched_insert_all().execute()

    assert (disk.check().findings, disk.check().notes) == ([], [])


@pytest.mark.parametrize(
    "name", ["_source", "_clause", "_lakebed_row", "_lakebed_from", "_LAKEBED_PAIR", "_lakebed_old"]
)
def test_any_column_name_may_be_merged(disk: lakebed.Lake, name: str) -> None:
    table = disk.create_table("a.named", f"id long, {name} int, n int")
    table.append([{"id": i, name: i, "n": i} for i in (1, 2, 3)])

    merge = table.merge([{"id": i, name: i * 10, "n": 0} for i in (1, 4)], "t.id = s.id")
    merge.when_matched_update({"n": f"t.{name} + s.{name}"}, f"s.{name} > t.{name}")
    merge.when_not_matched_insert_all(f"s.{name} > 0")
    merge.when_not_matched_by_source_update({name: f"{name} + 5"}, f"t.{name} = 3").execute()
    only_source = table.merge([{"key": 2, f"{name}_": 8}], "t.id = s.key")
    only_source.when_matched_update({"n": f"{name} + {name}_"}).execute()

    found = sorted(tuple(r.values()) for r in table.to_arrow().to_pylist())
    assert found == [(1, 1, 11), (2, 2, 10), (3, 8, 3), (4, 40, 0)]


def test_the_rows_of_an_ambiguous_merge_are_named_whatever_the_columns(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.named", "id long, _lakebed_row int")
    table.append([{"id": 1, "_lakebed_row": 1}])

    twice = table.merge([{"id": 1, "_lakebed_row": n} for n in (5, 6)], "t.id = s.id")
    with pytest.raises(AmbiguousMerge, match=r"rows 1 and 2 .* id = 1"):
        twice.when_matched_update_all().execute()
