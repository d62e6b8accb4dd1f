"""DELETE: three-valued logic, vectors or rewritten files, one commit or none."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.model.errors import InvalidExpression

SCHEMA = "id long not null, word string, n int"


def rows(*ids: int) -> list[dict[str, object]]:
    return [{"id": i, "word": None if i % 3 == 0 else f"w{i}", "n": i % 10} for i in ids]


@pytest.fixture
def table(disk: lakebed.Lake) -> lakebed.Table:
    table = disk.create_table("a.t", SCHEMA)
    table.append(rows(*range(100)))
    return table


def ids(table: lakebed.Table, **when: int) -> list[int]:
    return sorted(table.scan(**when).to_arrow()["id"].to_pylist())  # type: ignore[arg-type]


def data_files(table: lakebed.Table) -> set[str]:
    return {p.name for p in Path(table.location, "data").rglob("*.parquet")}


def test_rows_that_match_are_gone_and_no_data_is_rewritten(table: lakebed.Table) -> None:
    before = data_files(table)

    commit = table.delete("id < 10")

    assert ids(table) == list(range(10, 100))
    assert (commit.version, commit.operation, commit.changed) == (2, "delete", True)
    assert commit.summary["deleted_rows"] == 10
    assert (commit.summary["vectored_files"], commit.summary["rewritten_files"]) == (1, 0)
    assert data_files(table) == before
    assert ids(table, version=1) == list(range(100))
    assert table.row_count == 90


def test_rows_where_the_predicate_is_null_stay(table: lakebed.Table) -> None:
    """ST-20: the rows that a rewrite of `NOT predicate` would lose."""
    table.delete("word <> 'w1'")

    assert ids(table) == sorted([1, *range(0, 100, 3)])


def test_rows_where_the_predicate_is_null_stay_in_rewritten_files(table: lakebed.Table) -> None:
    commit = table.delete("word <> 'w1'", settings={"write.delete.mode": "copy-on-write"})

    assert ids(table) == sorted([1, *range(0, 100, 3)])
    assert (commit.summary["rewritten_files"], commit.summary["copied_rows"]) == (1, 35)


def test_a_condition_in_the_whole_language_of_the_engine(table: lakebed.Table) -> None:
    commit = table.delete("length(word) = 3 AND n + 1 > id % 7 AND id < 50")

    kept = {i for i in range(100) if i % 3 == 0 or i < 10 or not i % 10 + 1 > i % 7 or i >= 50}
    assert ids(table) == sorted(kept)
    assert commit.summary["deleted_rows"] == 100 - len(kept)


def test_null_in_a_condition_of_the_engine_keeps_the_row(table: lakebed.Table) -> None:
    table.delete("length(word) >= 0")

    assert ids(table) == list(range(0, 100, 3))


def test_nothing_that_matches_is_no_commit(table: lakebed.Table) -> None:
    for where in ("id = 1000", "id + 1 = 0", "word = NULL"):
        commit = table.delete(where, message="why")

        assert (commit.changed, commit.version, commit.summary["deleted_rows"]) == (False, 1, 0)
    assert [c.operation for c in table.history()] == ["append", "create"]


def test_a_file_whose_rows_are_all_gone_is_removed_unread(table: lakebed.Table) -> None:
    table.append(rows(*range(100, 120)))

    commit = table.delete("id >= 100")

    assert ids(table) == list(range(100))
    assert (commit.summary["removed_files"], commit.summary["scanned_files"]) == (1, 0)
    assert commit.summary["deleted_rows"] == 20


def test_a_file_whose_last_rows_go_is_removed(table: lakebed.Table) -> None:
    table.delete("n = 0 OR n = 5", settings={"write.rewrite-above": 1})
    commit = table.delete("n <> 0", settings={"write.rewrite-above": 1})

    assert (ids(table), table.files()) == ([], [])
    assert (commit.summary["removed_files"], commit.summary["deleted_rows"]) == (1, 80)


def test_vectors_of_one_file_unite(table: lakebed.Table) -> None:
    table.delete("id = 3")
    table.delete("id IN (3, 4)")
    commit = table.delete("abs(id) = 5")

    assert ids(table) == [0, 1, 2, *range(6, 100)]
    assert commit.summary["deleted_rows"] == 1
    assert (len(table.files()), table.row_count) == (1, 97)


def test_only_files_that_can_match_are_opened(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.many", SCHEMA)
    with disk.transaction() as tx:
        for start in range(0, 200, 10):
            tx.table("a.many").append(rows(*range(start, start + 10)))
    hidden = [f for f in table.files() if not f.path.endswith("none")]
    for file in hidden[1:]:
        Path(table.location, file.path).unlink()  # to open one would be an error

    commit = table.delete("id = 5")
    engine = table.delete("id = 7 AND length(word || 'x') >= 0")

    assert (commit.summary["scanned_files"], commit.summary["deleted_rows"]) == (1, 1)
    assert engine.summary["scanned_files"] == 1


def test_most_of_a_file_gone_writes_the_rest_anew(table: lakebed.Table) -> None:
    commit = table.delete("id >= 40")

    assert ids(table) == list(range(40))
    assert (commit.summary["rewritten_files"], commit.summary["vectored_files"]) == (1, 0)
    assert (commit.summary["copied_rows"], commit.summary["deleted_rows"]) == (40, 60)
    (file,) = table.files()
    assert file.record_count == 40


def test_a_large_file_keeps_its_vector(table: lakebed.Table) -> None:
    commit = table.delete("id >= 40", settings={"write.rewrite-max-bytes": 10})

    assert (commit.summary["rewritten_files"], commit.summary["vectored_files"]) == (0, 1)
    assert ids(table) == list(range(40))


def test_copy_on_write_by_property_of_the_table(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.cow", SCHEMA, properties={"write.delete.mode": "copy-on-write"})
    table.append(rows(*range(10)))

    commit = table.delete("id = 3")

    assert (commit.summary["rewritten_files"], commit.summary["copied_rows"]) == (1, 9)
    assert ids(table) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_table_that_may_not_be_upgraded_is_rewritten(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.v2", SCHEMA, properties={"lakebed.upgrade": "never"})
    table.append(rows(*range(10)))

    commit = table.delete("id = 3")
    table.update({"n": 0}, "id = 4")

    assert (commit.summary["rewritten_files"], commit.summary["vectored_files"]) == (1, 0)
    metadata = max(Path(table.location, "metadata").glob("*.metadata.json")).read_text()
    assert '"format-version":2' in metadata.replace(" ", "")


def test_rewritten_rows_of_a_v3_table_keep_their_ids(table: lakebed.Table) -> None:
    table.delete("id = 0")  # the upgrade
    table.delete("id >= 1 AND id < 95", settings={"write.delete.mode": "copy-on-write"})

    (file,) = table.files()
    stored = pq.read_table(Path(table.location, file.path))
    assert stored.column_names[-2:] == ["_row_id", "_last_updated_sequence_number"]
    lineage = [(r["id"], r["_row_id"]) for r in stored.to_pylist()]
    assert lineage == [(i, i) for i in range(95, 100)]
    assert set(stored["_last_updated_sequence_number"].to_pylist()) == {1}
    ids_of_fields = [int(f.metadata[b"PARQUET:field_id"]) for f in stored.schema][-2:]
    assert ids_of_fields == [2147483540, 2147483539]


def test_partitioned_and_nested_tables(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.p", "id long, p string, s struct<a: int>", partition_by=["p"])
    table.append([{"id": i, "p": "xy"[i % 2], "s": {"a": i} if i else None} for i in range(10)])

    first = table.delete("p = 'x' AND s.a > 4")
    whole = table.delete("p = 'y'")

    assert ids(table) == [0, 2, 4]
    assert (first.summary["scanned_files"], whole.summary["scanned_files"]) == (1, 0)


@pytest.mark.parametrize(
    "where",
    [
        "nope = 1",
        "length(nope) = 1",
        "id = ",
        "id = 1; DROP TABLE a.t",
        "id = 1) OR (1 = 1",
        "1) UNION ALL SELECT 0, 1 FROM (SELECT 1",
        "id IN (SELECT 1)",
        "sum(id) > 3",
        "row_number() OVER () = 1",
        "id + word",
        "id / 0 > 'x'",
        "read_csv('/etc/passwd') IS NULL",
        "$1 = id",
        "id AS x",
        "id + 1",  # the engine would take a number for TRUE
        "1",
        "*",
    ],
)
def test_bad_conditions_are_refused_and_nothing_is_written(
    table: lakebed.Table, where: str
) -> None:
    before = data_files(table)

    with pytest.raises(lakebed.LakebedError) as refused:
        table.delete(where)

    assert refused.value.hint
    assert (table.version, data_files(table), len(ids(table))) == (1, before, 100)


@pytest.mark.parametrize("where", [None, "", "  ", 5, b"id = 1"])
def test_a_condition_is_text(table: lakebed.Table, where: object) -> None:
    with pytest.raises(lakebed.InvalidInput):
        table.delete(where)  # type: ignore[arg-type]

    assert table.version == 1


def test_an_unknown_column_is_named_with_one_that_is_close(table: lakebed.Table) -> None:
    with pytest.raises(InvalidExpression, match="'wrod'") as refused:
        table.delete("wrod = 'x'")

    assert "word" in refused.value.hint


def test_a_request_is_answered_once(table: lakebed.Table) -> None:
    first = table.delete("id = 1", idempotency_key="k")
    again = table.delete("id = 1", idempotency_key="k")
    nothing = table.delete("id = 1", idempotency_key="n")
    table.append(rows(1))
    replayed = table.delete("id = 1", idempotency_key="n")

    assert (again.version, again.replayed) == (first.version, True)
    assert again.summary["deleted_rows"] == 1
    assert (nothing.changed, replayed.changed, replayed.replayed) == (False, False, True)
    assert 1 in ids(table)
    with pytest.raises(lakebed.CommitError, match="another request"):
        table.delete("id = 2", idempotency_key="k")


def test_an_application_transaction_counts_even_if_no_row_matches(table: lakebed.Table) -> None:
    table.delete("id = 1000", txn=("app", 7))
    table.append(rows(1000))
    replayed = table.delete("id = 1000", txn=("app", 7))

    assert replayed.replayed
    assert 1000 in ids(table)


def test_truncate_takes_every_row_and_no_file_is_read(table: lakebed.Table) -> None:
    for file in table.files():
        Path(table.location, file.path).unlink()

    commit = table.truncate()

    assert (table.row_count, commit.summary["deleted_rows"]) == (0, 100)
    assert table.truncate().changed is False


def test_an_overwrite_may_split_files(table: lakebed.Table) -> None:
    commit = table.overwrite(rows(5, 6), where="id BETWEEN 3 AND 8")

    assert ids(table) == [0, 1, 2, 5, 6, *range(9, 100)]
    assert commit.operation == "overwrite"


def test_an_overwrite_takes_any_condition_and_checks_its_rows(table: lakebed.Table) -> None:
    table.overwrite(rows(5), where="abs(id) < 10")
    before = data_files(table)

    with pytest.raises(lakebed.SchemaMismatch, match="condition"):
        table.overwrite(rows(5, 50), where="abs(id) < 10")

    assert ids(table) == [5, *range(10, 100)]
    assert data_files(table) == before


@pytest.mark.parametrize("condition", ["id % 10 = 3", "n - 3 = 0 AND id >= 0", "n + id % 10 = 6"])
def test_arithmetic_over_whole_numbers_finds_its_rows(table: lakebed.Table, condition: str) -> None:
    table.append([{"id": -7, "word": None, "n": None}])
    table.delete("id = 13")

    commit = table.delete(condition)

    assert commit.summary["deleted_rows"] == 9
    assert ids(table) == [-7, *(i for i in range(100) if i % 10 != 3)]


def test_arithmetic_starts_no_engine(tmp_path: Path) -> None:
    script = """
import sys, lakebed
with lakebed.open(sys.argv[1], create=True) as lake:
    table = lake.create_table("a.t", "id long")
    table.append([{"id": i} for i in range(100)])
    table.delete("id % 10 = 0")
    lake.sql("DELETE FROM a.t WHERE id + 1 < 5 AND id > 1")
    assert table.row_count == 88, table.row_count
assert "duckdb" not in sys.modules
"""

    subprocess.run([sys.executable, "-c", script, str(tmp_path / "lake")], check=True)


def test_a_sum_that_does_not_fit_is_refused_as_ever(table: lakebed.Table) -> None:
    table.append([{"id": 2**63 - 1, "word": None, "n": 2**31 - 1}])

    for condition in ("n + n > 5", "id * id > 5"):
        with pytest.raises(lakebed.LakebedError, match=r"(?i)overflow"):
            table.delete(condition)

    assert table.row_count == 101


def test_the_check_is_clean_after_deletes(disk: lakebed.Lake, table: lakebed.Table) -> None:
    table.delete("id = 1")
    table.delete("id >= 20")
    table.truncate()

    assert (disk.check().findings, disk.check().notes) == ([], [])
