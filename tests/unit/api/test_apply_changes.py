"""Change streams: INSERT, UPDATE and DELETE rows in one commit, the last of each key."""

import pyarrow as pa
import pytest

import lakebed


@pytest.fixture
def table(disk: lakebed.Lake) -> lakebed.Table:
    table = disk.create_table("a.t", "id long, name string not null, n int", primary_key=["id"])
    table.append([{"id": i, "name": f"n{i}", "n": i} for i in range(5)])
    return table


def rows(table: lakebed.Table) -> dict[int, tuple[str, int | None]]:
    listed = table.to_arrow().to_pylist()
    found = {r["id"]: (r["name"], r["n"]) for r in listed}
    assert len(found) == len(listed)
    return found


START: dict[int, tuple[str, int | None]] = {i: (f"n{i}", i) for i in range(5)}


def test_all_operations_are_one_commit(table: lakebed.Table) -> None:
    commit = table.apply_changes(
        [
            {"_op": "INSERT", "id": 10, "name": "ten", "n": 10},
            {"_op": "update", "id": 1, "name": "one", "n": None},
            {"_op": "D", "id": 2},
            {"_op": " i ", "id": 11, "name": "eleven", "n": 11},
        ],
        key="id",
    )

    expected = START | {10: ("ten", 10), 1: ("one", None), 11: ("eleven", 11)}
    del expected[2]
    assert rows(table) == expected
    counts = commit.summary
    assert (counts["inserted_rows"], counts["updated_rows"], counts["deleted_rows"]) == (2, 1, 1)
    assert table.version == 2


def test_the_last_change_of_a_key_counts(table: lakebed.Table) -> None:
    table.apply_changes(
        [
            {"_op": "I", "id": 10, "name": "a", "n": 1},
            {"_op": "U", "id": 10, "name": "b", "n": 2},
            {"_op": "D", "id": 1},
            {"_op": "I", "id": 1, "name": "back", "n": 1},
            {"_op": "U", "id": 2, "name": "gone", "n": 1},
            {"_op": "D", "id": 2},
            {"_op": "I", "id": 12, "name": "never", "n": 1},
            {"_op": "D", "id": 12},
        ]
    )

    expected = START | {10: ("b", 2), 1: ("back", 1)}
    del expected[2]
    assert rows(table) == expected


def test_a_stream_that_comes_twice_changes_nothing_more(table: lakebed.Table) -> None:
    stream = [
        {"_op": "I", "id": 0, "name": "there before", "n": 1},
        {"_op": "U", "id": 50, "name": "not there before", "n": 1},
        {"_op": "D", "id": 99},
    ]

    table.apply_changes(stream)
    once = rows(table)
    table.apply_changes(stream)

    assert rows(table) == once == START | {0: ("there before", 1), 50: ("not there before", 1)}


def test_columns_the_rows_do_not_have_keep_their_values(table: lakebed.Table) -> None:
    table.apply_changes([{"_op": "U", "id": 1, "name": "one"}])
    table.apply_changes(pa.table({"what": ["delete"], "ID": [4]}), key=["id"], op_column="what")

    expected = START | {1: ("one", 1)}
    del expected[4]
    assert rows(table) == expected


def test_more_rows_than_a_batch_are_all_applied(table: lakebed.Table) -> None:
    """PL-51: what took the first batch of 1,024 rows and dropped the rest."""
    changes = [{"_op": "I", "id": i, "name": "x", "n": 1} for i in range(30_000)]

    commit = table.apply_changes(iter(changes))

    assert table.row_count == 30_000
    assert (commit.summary["inserted_rows"], commit.summary["updated_rows"]) == (29_995, 5)


def test_a_million_rows_are_one_commit(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.big", "id long, v double", primary_key=["id"])
    half = 500_000
    table.append(pa.table({"id": pa.arange(0, half), "v": pa.repeat(0.5, half)}))
    operations = pa.array(["D", "U", "I", "U"]).take(
        pa.array([0, 1, 2, 3], pa.int32()).take(pa.array([i % 4 for i in range(2 * half)]))
    )

    commit = table.apply_changes(
        pa.table({"_op": operations, "id": pa.arange(0, 2 * half), "v": pa.repeat(1.5, 2 * half)})
    )

    counts = commit.summary
    assert (counts["inserted_rows"], counts["updated_rows"]) == (half * 3 // 4, half * 3 // 4)
    assert counts["deleted_rows"] == half // 4
    assert (table.row_count, table.version) == (half * 3 // 2, 2)
    assert len(table.scan(where="v = 0.5").to_arrow()) == 0


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([{"id": 1, "name": "x"}], "no column '_op'"),
        ([{"_op": "I", "id": 9, "name": "x"}, {"_op": "upsert", "id": 1}], "row 2: 'upsert'"),
        ([{"_op": None, "id": 1, "name": "x"}], "row 1: None"),
        ([{"_op": "D", "id": None}], "row 1: NULL"),
        ([{"_op": "D", "name": "x"}], "'id' is missing"),
        ([{"_op": "I", "id": 9}], "'name'"),
        ([{"_op": "I", "id": 9, "name": None}], "'name'"),
        ([{"_op": "I", "id": 9, "name": "x", "more": 1}], "'more'"),
        ([{"_op": "I", "id": "nine", "name": "x"}], "row 1"),
    ],
)
def test_bad_streams_are_refused_and_nothing_is_written(
    table: lakebed.Table, changes: list[dict[str, object]], error: str
) -> None:
    with pytest.raises(lakebed.InvalidInput, match=error) as refused:
        table.apply_changes(changes)

    assert refused.value.hint
    assert (table.version, rows(table)) == (1, START)


def test_bad_keys_are_refused(disk: lakebed.Lake, table: lakebed.Table) -> None:
    plain = disk.create_table("a.plain", [{"id": 1}])

    with pytest.raises(lakebed.InvalidInput, match="no primary key"):
        plain.apply_changes([{"_op": "D", "id": 1}])
    with pytest.raises(lakebed.InvalidInput, match="'nope'"):
        table.apply_changes([{"_op": "D", "id": 1}], key="nope")
    with pytest.raises(lakebed.InvalidInput, match="no column"):
        table.apply_changes([{"_op": "D", "id": 1}], key=[])
    with pytest.raises(lakebed.InvalidInput, match="column of the table"):
        table.apply_changes([{"_op": "D", "id": 1}], op_column="name")

    assert (plain.version, table.version) == (0, 1)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (
            [{"_op": "U", "id": 1, "n": 9}, {"_op": "U", "id": 2, "name": "q"}],
            "row 1 has no 'name'",
        ),
        (
            [{"_op": "U", "id": 1, "name": "x", "n": 9}, {"_op": "u", "id": 2}],
            "row 2 has no 'name'",
        ),
        ([{"_op": "U", "id": 1, "name": "x"}, {"_op": "I", "name": "q"}], "row 2 has no 'id'"),
        ([{"_op": "U", "id": 1, "name": "x"}, {"_op": "D", "name": "q"}], "row 2 has no 'id'"),
        (
            [*({"_op": "U", "id": i, "n": 1} for i in range(20_000)), {"_op": "U", "id": 2}],
            "row 20001 has no 'n'",
        ),
    ],
)
def test_an_update_that_lacks_a_column_of_other_rows_is_refused(
    table: lakebed.Table, changes: list[dict[str, object]], error: str
) -> None:
    with pytest.raises(lakebed.SchemaMismatch, match=error) as refused:
        table.apply_changes(iter(changes))

    assert (refused.value.hint or "").startswith("give every row the same columns")
    assert (table.version, rows(table)) == (1, START)


@pytest.fixture
def defaulted(disk: lakebed.Lake) -> lakebed.Table:
    disk.create_namespace("d")
    disk.sql("CREATE TABLE d.t (id BIGINT, a INT, b STRING, c INT DEFAULT 7, PRIMARY KEY (id))")
    table = disk.table("d.t")
    table.append([{"id": i, "a": i, "b": "old", "c": 9} for i in (1, 2, 3)])
    return table


def listed(table: lakebed.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(r.values()) for r in table.to_arrow().to_pylist())


@pytest.mark.parametrize(
    "changes",
    [
        [("I", 5)],
        [("D", 1), ("I", 5)],
        [("D", 1), ("U", 5)],
        [("I", 1), ("U", 5)],
        [("U", 1), ("D", 2), ("U", 3), ("U", 5)],
    ],
)
def test_nothing_is_left_of_a_row_that_is_inserted_anew(
    defaulted: lakebed.Table, changes: list[tuple[str, int]]
) -> None:
    defaulted.apply_changes([{"_op": op, "id": 2, "a": a} for op, a in changes])

    assert listed(defaulted) == [(1, 1, "old", 9), (2, 5, None, 7), (3, 3, "old", 9)]


def test_updates_keep_the_columns_they_do_not_have(defaulted: lakebed.Table) -> None:
    commit = defaulted.apply_changes(
        [{"_op": "U", "id": 2, "a": 4}, {"_op": "U", "id": 2, "a": 5}, {"_op": "I", "id": 3}]
    )

    assert listed(defaulted) == [(1, 1, "old", 9), (2, 5, "old", 9), (3, None, None, 7)]
    assert (commit.summary["updated_rows"], commit.summary["inserted_rows"]) == (2, 0)


def test_an_insert_without_a_required_column_is_refused(table: lakebed.Table) -> None:
    with pytest.raises(lakebed.SchemaMismatch, match="'name'"):
        table.apply_changes([{"_op": "D", "id": 1}, {"_op": "I", "id": 1, "n": 5}])

    assert (table.version, rows(table)) == (1, START)
