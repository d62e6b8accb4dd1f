"""Alterations of a table: columns, defaults, partitioning, sort order, constraints."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.model.errors import (
    CommitConflict,
    InvalidInput,
    InvalidSchema,
    NoChanges,
    SchemaMismatch,
    UnsupportedFeature,
)


def _rows(table: lakebed.Table) -> list[dict[str, object]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: int(row["id"]))


def _ids(table: lakebed.Table, where: str) -> list[int]:
    return sorted(table.scan(where=where).to_arrow()["id"].to_pylist())


# --- columns --------------------------------------------------------------------------------------


def test_nested_columns_change_without_rewriting_data(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, s struct<x: int, y: string>, l list<struct<p: int>>")
    table.append([{"id": 1, "s": {"x": 1, "y": "u"}, "l": [{"p": 5}]}])
    files = [f.path for f in table.files()]

    alter = table.alter().rename_column("s.x", "z").widen_column("l.element.p", "long")
    alter.add_column("l.element.q", "string", first=True).drop_column(("s", "y")).commit()
    table.append([{"id": 2, "s": {"z": 2}, "l": [{"p": 2**40, "q": "q"}]}])

    assert _rows(table) == [
        {"id": 1, "s": {"z": 1}, "l": [{"q": None, "p": 5}]},
        {"id": 2, "s": {"z": 2}, "l": [{"q": "q", "p": 2**40}]},
    ]
    assert [f.path for f in table.files()][:1] == files
    assert table.scan(version=1).to_arrow().to_pylist() == [
        {"id": 1, "s": {"x": 1, "y": "u"}, "l": [{"p": 5}]}
    ]


def test_columns_stand_where_they_are_put(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, b int")

    table.alter().add_column("a", "int", after="id").add_column("z", "int", first=True).commit()
    table.alter().move_column("z").move_column("id", before="b").commit()

    assert [f.name for f in table.schema.fields] == ["a", "id", "b", "z"]


def test_a_widened_column_takes_what_it_could_not_hold(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, n int, d decimal(5,2)", partition_by=["n"])
    table.append([{"id": 1, "n": 7, "d": Decimal("1.50")}])
    with pytest.raises(SchemaMismatch):
        table.append([{"id": 2, "n": 2**40}])

    table.alter().widen_column("n", "long").widen_column("d", "decimal(9,2)").commit()
    table.append([{"id": 2, "n": 2**40, "d": Decimal("1234567.25")}])

    assert (_ids(table, "n = 7"), _ids(table, "n > 7")) == ([1], [2])
    assert table.scan(where="n = 7").plan().pruned == 1
    assert (_ids(table, "d = 1.5"), _ids(table, "d > 1000")) == ([1], [2])


def test_rows_may_be_null_once_a_column_is_optional(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, n int not null", primary_key=["id"])

    table.alter().make_optional("n").commit()
    table.append([{"id": 1, "n": None}])

    assert _rows(table) == [{"id": 1, "n": None}]
    with pytest.raises(InvalidSchema, match="primary key"):
        table.alter().make_optional("id")
    with pytest.raises(NoChanges):
        table.alter().make_optional("n").commit()


def test_a_primary_key_needs_columns_that_are_not_null(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long not null, n int")

    with pytest.raises(InvalidSchema, match="may be NULL"):
        table.alter().set_primary_key(["n"])
    table.alter().set_primary_key(["id"]).commit()
    assert [table.schema.field(i).name for i in table.schema.primary_key] == ["id"]
    table.alter().set_primary_key([]).commit()
    assert table.schema.primary_key == ()


def test_names_dropped_in_one_transaction_stay_taken(lake: lakebed.Lake) -> None:
    """Files of every schema that a transaction goes through are read by it, and afterwards."""
    table = lake.create_table("s.t", "id long")
    with lake.transaction() as tx:
        mine = tx.table("s.t")
        mine.alter().add_column("x", "int").commit()
        mine.append([{"id": 1, "x": 1}])
        mine.alter().drop_column("x").commit()
        mine.alter().add_column("x", "string").commit()
        mine.append([{"id": 2, "x": "two"}])
        assert mine.scan(where="x is null").to_arrow()["id"].to_pylist() == [1]
    table.alter().drop_column("x").add_column("x", "int").commit()
    table.append([{"id": 3, "x": 3}])

    assert [row["x"] for row in _rows(table)] == [None, None, 3]
    assert lake.check().clean


def test_members_inside_maps_are_dropped_only_where_delta_does_not_show_them(
    lake: lakebed.Lake,
) -> None:
    text = "id long, m map<string, struct<v: int, w: int>>, s struct<x: int, n: map<int, int>>"
    both, iceberg = (
        lake.create_table("s.t", text),
        lake.create_table("s.u", text, formats="iceberg"),
    )

    with pytest.raises(UnsupportedFeature, match="inside a map"):
        both.alter().drop_column("m.value.v")
    iceberg.alter().drop_column("m.value.v").commit()
    with pytest.raises(UnsupportedFeature, match="inside a map"):
        iceberg.set_formats("delta,iceberg")

    both.alter().drop_column("m").drop_column("s.n").commit()
    assert [f.name for f in both.schema.fields] == ["id", "s"]


def test_a_column_may_not_take_the_name_of_a_partition_field(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, p string", partition_by=["p"])
    table.alter().rename_column("p", "place").commit()

    with pytest.raises(InvalidSchema, match="partition field"):
        table.alter().add_column("p", "int")
    table.alter().rename_column("place", "p").commit()


# --- defaults -------------------------------------------------------------------------------------


def test_rows_that_leave_a_column_out_get_its_default(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, n int, d date, s struct<x: int, y: string>")
    table.append([{"id": 1}])
    alter = table.alter().set_default("n", 5).set_default("d", "2024-01-31")
    alter.set_default("s.y", "why").commit()

    table.append([{"id": 2, "n": None, "s": {"x": 1}}, {"id": 3, "d": None, "s": {"y": None}}])
    table.append(pa.table({"id": [4]}))

    day = date(2024, 1, 31)
    assert _rows(table) == [
        {"id": 1, "n": None, "d": None, "s": None},
        {"id": 2, "n": None, "d": day, "s": {"x": 1, "y": "why"}},
        {"id": 3, "n": 5, "d": None, "s": {"x": None, "y": None}},
        {"id": 4, "n": 5, "d": day, "s": None},
    ]
    table.alter().drop_default("n").commit()
    table.append([{"id": 5}])
    assert _rows(table)[-1]["n"] is None


def test_a_required_column_with_a_default_may_be_left_out(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, n int not null")
    table.alter().set_default("n", 1).commit()

    table.append([{"id": 1}])

    assert _rows(table) == [{"id": 1, "n": 1}]
    with pytest.raises(SchemaMismatch, match="NULL"):
        table.append([{"id": 2, "n": None}])


def test_old_rows_read_the_default_of_a_column_added_with_one(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long", formats=["iceberg"])
    table.append([{"id": 1}])

    table.alter().add_column("n", "int", default=5).commit()
    table.append([{"id": 2}, {"id": 3, "n": None}, {"id": 4, "n": 9}])
    table.alter().set_default("n", 6).commit()
    table.append([{"id": 5}])

    assert [row["n"] for row in _rows(table)] == [5, 5, None, 9, 6]
    assert (_ids(table, "n = 5"), _ids(table, "n is null")) == ([1, 2], [3])
    assert _ids(table, "n > 5") == [4, 5]


def test_a_table_with_files_that_shows_delta_takes_no_column_with_a_default(
    lake: lakebed.Lake,
) -> None:
    table = lake.create_table("s.t", "id long")
    table.alter().add_column("early", "int", default=1).commit()
    table.append([{"id": 1}])

    with pytest.raises(UnsupportedFeature, match="Delta") as caught:
        table.alter().add_column("late", "int", default=1)

    assert "set_default" in caught.value.hint
    assert _rows(table) == [{"id": 1, "early": 1}]
    iceberg = lake.create_table("s.u", [{"id": 1}], formats=["iceberg"])
    iceberg.alter().add_column("n", "int", default=1).commit()
    with pytest.raises(UnsupportedFeature, match="Delta"):
        iceberg.set_formats(["delta", "iceberg"])


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("int", "x"),
        ("int", 2**40),
        ("int", 1.5),
        ("decimal(5,2)", Decimal("1.234")),
        ("double", float("nan")),
        ("list<int>", [1]),
        ("timestamptz_ns", datetime(2024, 1, 31, tzinfo=UTC)),
        ("date", date(2024, 1, 31)),
        ("timestamp", datetime(2024, 1, 31, tzinfo=UTC)),
    ],
)
def test_a_default_that_cannot_be_kept_true_is_refused(
    lake: lakebed.Lake, kind: str, default: object
) -> None:
    table = lake.create_table("s.t", [{"id": 1}], formats=["iceberg"])

    with pytest.raises((InvalidSchema, UnsupportedFeature)) as caught:
        table.alter().add_column("c", kind, default=default)

    assert caught.value.hint
    assert table.version == 0


def test_a_table_that_stays_on_v2_refuses_what_needs_v3(lake: lakebed.Lake) -> None:
    table = lake.create_table(
        "s.t", [{"id": 1}], formats=["iceberg"], properties={"lakebed.upgrade": "never"}
    )

    with pytest.raises(UnsupportedFeature, match=r"lakebed\.upgrade"):
        table.alter().add_column("n", "int", default=1).commit()

    assert table.version == 0
    table.set_properties({"lakebed.upgrade": "auto"})
    table.alter().add_column("n", "int", default=1).commit()


# --- merge_schema ---------------------------------------------------------------------------------


def test_rows_bring_their_columns_along_in_one_commit(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, n int, s struct<x: int>, l list<struct<p: float>>")
    table.append([{"id": 1, "n": 1, "s": {"x": 1}, "l": [{"p": 1.5}]}])
    rows = pa.table(
        {
            "id": [2],
            "N": pa.array([2**40]),
            "s": pa.array([{"y": "new"}]),
            "l": pa.array([[{"p": 0.1, "q": True}]]),
            "note": ["hello"],
        }
    )
    with pytest.raises(SchemaMismatch) as caught:
        table.append(rows)
    assert "merge_schema" in caught.value.hint

    commit = table.append(rows, merge_schema=True)

    assert (commit.version, commit.operation) == (2, "append")
    assert _rows(table) == [
        {"id": 1, "n": 1, "s": {"x": 1, "y": None}, "l": [{"p": 1.5, "q": None}], "note": None},
        {
            "id": 2,
            "n": 2**40,
            "s": {"x": None, "y": "new"},
            "l": [{"p": 0.1, "q": True}],
            "note": "hello",
        },
    ]


def test_dicts_bring_columns_and_members_but_no_wider_types(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id int, s struct<x: int>")

    table.append([{"id": 1, "s": {"x": 1, "y": "a"}, "z": 1.5}, {"id": 2}], merge_schema=True)

    assert [str(f.type) for f in table.schema.fields] == [
        "int",
        "struct<x: int, y: string>",
        "double",
    ]
    with pytest.raises(SchemaMismatch):
        table.append([{"id": 2**40}], merge_schema=True)
    assert table.append([{"id": 3}], merge_schema=True).version == 2
    assert len(table.to_arrow()) == 3


def test_what_cannot_be_merged_is_refused_and_nothing_is_written(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id int")

    with pytest.raises(SchemaMismatch):
        table.append(pa.table({"id": ["text"], "new": [1]}), merge_schema=True)
    with pytest.raises(InvalidInput):
        table.append(pa.table({"id": [1], "new": pa.nulls(1)}), merge_schema=True)

    assert (table.version, len(table.schema.fields)) == (0, 1)
    assert lake.check().clean


def test_rows_with_new_columns_do_not_follow_another_alteration(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id int")
    with lake.transaction() as tx:
        tx.table("s.t").append([{"id": 1, "x": 1}], merge_schema=True)
        table.alter().add_column("x", "string").commit()
        with pytest.raises(CommitConflict):
            tx.commit()
    table.append([{"id": 1, "x": "text"}])
    assert lake.check().clean


# --- partitioning and sort order ------------------------------------------------------------------


def test_old_files_keep_their_partitions_and_both_are_pruned(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, p string, n long", partition_by=["p"])
    table.append([{"id": 1, "p": "a", "n": 1}, {"id": 2, "p": "b", "n": 2}])

    table.alter().set_partitioning(["bucket(4, id)", "truncate(10, n)"]).commit()
    table.append([{"id": 3, "p": "a", "n": 13}, {"id": 4, "p": "b", "n": 25}])
    table.alter().set_partitioning([]).commit()
    table.append([{"id": 5, "p": "a", "n": 1}])

    assert [set(f.partition) for f in table.files()] == [
        {"p"},
        {"p"},
        {"id_bucket", "n_trunc"},
        {"id_bucket", "n_trunc"},
        set(),
    ]
    assert _ids(table, "p = 'a'") == [1, 3, 5]
    assert table.scan(where="p = 'b'").plan().pruned == 3
    assert _ids(table, "n between 10 and 19") == [3]
    assert table.scan(where="id = 4").plan().pruned == 4
    assert table.partitioning.fields == ()
    with pytest.raises(InvalidSchema, match="partitioned"):
        table.alter().drop_column("p")
    assert lake.check().clean


def test_an_overwrite_by_partition_sees_files_of_other_specs(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, p string, d date", partition_by=["p"])
    table.append([{"id": 1, "p": "a", "d": date(2024, 1, 1)}])
    table.append([{"id": 2, "p": "b", "d": date(2024, 2, 1)}])
    table.alter().set_partitioning(["month(d)"]).commit()
    table.append([{"id": 3, "p": "a", "d": date(2024, 1, 9)}])

    table.overwrite([{"id": 4, "p": "x", "d": date(2024, 1, 5)}], partitions=True)

    assert [row["id"] for row in _rows(table)] == [2, 4]
    mixed = [{"id": n, "p": "c", "d": date(2024, n, 1)} for n in (5, 6)]
    table.alter().set_partitioning([]).commit()
    table.append(mixed)
    table.alter().set_partitioning(["month(d)"]).commit()
    with pytest.raises(UnsupportedFeature, match="another partitioning"):
        table.overwrite([{"id": 9, "d": date(2024, 5, 5)}], partitions=True)
    table.overwrite([{"id": 8, "d": date(2024, 8, 5)}], partitions=True)
    assert [row["id"] for row in _rows(table)] == [2, 4, 5, 6, 8]
    assert lake.check().clean


def test_files_of_the_old_spec_may_follow_a_new_one(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, p string", partition_by=["p"])
    with lake.transaction() as tx:
        tx.table("s.t").append([{"id": 1, "p": "a"}])
        table.alter().set_partitioning(["bucket(4, id)"]).commit()

    assert [f.partition for f in table.files()] == [{"p": "a"}]
    assert lake.check().clean


def test_new_files_follow_the_new_sort_order(disk: lakebed.Lake, tmp_path: Path) -> None:
    table = disk.create_table("s.t", "id long, n long", sort_by=["id"])
    table.append([{"id": n, "n": -n} for n in (2, 1, 3)])
    table.alter().set_sort_order(["n"]).commit()

    table.append([{"id": n, "n": -n} for n in (2, 1, 3)])

    written = [pq.read_table(f"{table.location}/{f.path}") for f in table.files()]
    assert [w["id"].to_pylist() for w in written] == [[1, 2, 3], [3, 2, 1]]
    table.alter().set_sort_order([]).commit()
    assert table.sort_order.fields == ()
