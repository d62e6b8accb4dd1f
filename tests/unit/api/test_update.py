"""UPDATE: expressions of the engine, exact types, row ids that stay."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lakebed

SCHEMA = (
    "id long not null, n int, price decimal(6,2), f double, d date, at timestamp, word string,"
    " s struct<a: int, b: string>, tags list<string>"
)


def row(i: int) -> dict[str, object]:
    return {
        "id": i,
        "n": i,
        "price": Decimal(i),
        "f": i / 2,
        "d": date(2024, 1, 1 + i),
        "at": datetime(2024, 1, 1, i, tzinfo=UTC),
        "word": f"w{i}",
        "s": {"a": i, "b": "x"} if i else None,
        "tags": ["t"] * i,
    }


@pytest.fixture
def table(disk: lakebed.Lake) -> lakebed.Table:
    table = disk.create_table("a.t", SCHEMA)
    table.append([row(i) for i in range(10)])
    return table


def found(table: lakebed.Table, column: str) -> dict[int, object]:
    return {r["id"]: r[column] for r in table.to_arrow().to_pylist()}


def test_rows_that_match_change_and_the_others_do_not(table: lakebed.Table) -> None:
    commit = table.update({"n": "n * 100", "word": "upper(word) || n"}, "id BETWEEN 3 AND 4")

    assert found(table, "n") == {i: i * 100 if i in (3, 4) else i for i in range(10)}
    assert found(table, "word")[3] == "W33"  # expressions see the row as it was
    assert (commit.operation, commit.summary["updated_rows"]) == ("update", 2)
    assert (commit.summary["deleted_rows"], commit.summary["vectored_files"]) == (0, 1)
    assert [r["n"] for r in table.scan(version=1).to_arrow().to_pylist()] == list(range(10))


def test_without_a_condition_every_row_changes(table: lakebed.Table) -> None:
    commit = table.update({"n": None})

    assert set(found(table, "n").values()) == {None}
    assert (commit.summary["updated_rows"], commit.summary["removed_files"]) == (10, 1)


def test_null_conditions_change_nothing(table: lakebed.Table) -> None:
    commit = table.update({"n": "0"}, "s.a > 100 OR s.a IS NULL AND NULL")

    assert (commit.changed, table.version) == (False, 1)


def test_values_of_every_kind(table: lakebed.Table) -> None:
    table.update(
        {
            "price": "price * 2 + 0.5",
            "f": "1.25",
            "d": "'2030-05-06'",
            "at": datetime(2031, 1, 1, tzinfo=UTC),
            "word": "'it''s'",
            "tags": "list_append(tags, 'new')",
        },
        "id = 1",
    )

    (changed,) = (r for r in table.to_arrow().to_pylist() if r["id"] == 1)
    assert (changed["price"], changed["f"], changed["word"]) == (Decimal("2.50"), 1.25, "it's")
    assert (changed["d"], changed["at"].year) == (date(2030, 5, 6), 2031)
    assert changed["tags"] == ["t", "new"]


def test_members_of_a_struct_are_set_by_their_path(table: lakebed.Table) -> None:
    table.update({"s.a": "s.a + 1000"}, "id <= 2")

    assert found(table, "s")[0] == {"a": None, "b": None}
    assert found(table, "s")[2] == {"a": 1002, "b": "x"}


def test_partition_columns_move_rows(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.p", "id long, p string", partition_by=["p"])
    table.append([{"id": i, "p": "xy"[i % 2]} for i in range(6)])

    table.update({"p": "'z'"}, "id = 2")

    assert found(table, "p") == {0: "x", 1: "y", 2: "z", 3: "y", 4: "x", 5: "y"}
    assert {f.partition["p"] for f in table.files()} == {"x", "y", "z"}


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"n": "3000000000"}, "'n'"),  # does not fit
        ({"n": "1.5"}, "'n'"),
        ({"n": "word"}, "'n'"),
        ({"price": "price + 0.001"}, "'price'"),
        ({"price": "99999"}, "'price'"),
        ({"id": None}, "required"),
        ({"at": "TIMESTAMP '2024-01-01'"}, "'at'"),  # a zone is never guessed
        ({"nope": "1"}, "nope"),
        ({"s.z": "1"}, "s.z"),
        ({"tags.element": "'x'"}, "tags.element"),
        ({"s": "NULL", "s.a": "1"}, "member"),
        ({"n": "n +"}, "cannot be read"),
        ({"n": "1, word = 2"}, "n"),
        ({"n": "(SELECT 1)"}, "subquery"),
        ({"n": ["x"]}, "literal"),
        ({}, "no column"),
        ("n = 1", "no column"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(
    table: lakebed.Table, values: dict[str, object], error: str
) -> None:
    before = {p.name for p in Path(table.location).rglob("*")}

    with pytest.raises(lakebed.InvalidInput, match=error) as refused:
        table.update(values, "id > 0")

    assert refused.value.hint
    assert (table.version, {p.name for p in Path(table.location).rglob("*")}) == (1, before)


def test_a_check_holds_for_updates(disk: lakebed.Lake, table: lakebed.Table) -> None:
    table.alter().add_constraint("small", "n < 100").commit()

    with pytest.raises(lakebed.InvalidInput, match="small"):
        table.update({"n": "n + 95"})
    table.update({"n": "n + 10"})

    assert found(table, "n")[9] == 19


def test_rows_keep_their_ids_through_updates(table: lakebed.Table) -> None:
    table.delete("id = 9")  # from here on rows have ids
    table.update({"n": "n + 1"}, "id = 5")
    table.update({"n": "n + 1"}, "id = 5")
    table.update({"n": "n + 1"}, "id = 5", settings={"write.update.mode": "copy-on-write"})

    newest = max(table.files(), key=lambda f: f.added_version)
    stored = pq.read_table(Path(table.location, newest.path)).to_pylist()
    assert {(r["id"], r["_row_id"]) for r in stored} <= {(i, i) for i in range(10)}
    (changed,) = (r for r in stored if r["id"] == 5)
    assert (changed["_last_updated_sequence_number"], changed["n"]) == (None, 8)


def test_copy_on_write_leaves_one_file(table: lakebed.Table) -> None:
    commit = table.update({"n": 7}, "id = 5", settings={"write.update.mode": "copy-on-write"})

    assert (commit.summary["copied_rows"], commit.summary["rewritten_files"]) == (9, 1)
    assert (len(table.files()), found(table, "n")[5], table.row_count) == (1, 7, 10)


def test_the_check_is_clean_after_updates(disk: lakebed.Lake, table: lakebed.Table) -> None:
    table.update({"n": "n + 1"}, "id > 3")
    table.update({"word": "'x'"}, "id = 4")

    assert (disk.check().findings, disk.check().notes) == ([], [])
