"""DataFrames written into tables: by name, exactly, checked on the way; their files are ours."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakebed
from lakebed.api.lake import Lake
from lakebed.api.spark import Spark
from lakebed.api.table import Table
from lakebed.engines.spark import layout
from lakebed.model.errors import (
    ConstraintViolated,
    InvalidInput,
    LakebedError,
    SchemaMismatch,
    UnsupportedFeature,
)


@pytest.fixture
def sp(lake: Lake, spark: SparkSession) -> Spark:
    return lake.spark(spark)


def frame(sp: Spark, rows: list[tuple[Any, ...]], schema: str) -> DataFrame:
    return sp.session.createDataFrame(rows, schema)


def rows_of(table: Table) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])


ALL_TYPES = (
    "id long not null, b boolean, y byte, s short, i int, f float, d double, m decimal(20,4),"
    " day date, at timestamp, local timestamp_ntz, t string, raw binary"
)
ALL_VALUES = {
    "id": 1,
    "b": True,
    "y": -128,
    "s": 32767,
    "i": -5,
    "f": 0.5,
    "d": 1e300,
    "m": Decimal("12345678901.1234"),
    "day": date(1, 1, 1),
    "at": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "local": datetime(1969, 12, 31, 23, 59, 59, 1),  # noqa: DTZ001 - it has no zone
    "t": "ä\n\"'😀",
    "raw": b"\x00\xff",
}


def test_every_flat_type_is_kept_and_others_read_it(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", ALL_TYPES)
    given = lake.create_table("a.given", ALL_TYPES)
    given.append([ALL_VALUES, {"id": 2}])

    sp.append(sp.table("a.given"), "a.t")

    assert rows_of(table) == rows_of(given)
    delta = DeltaTable(table.location).to_pyarrow_table().to_pylist()
    assert sorted(delta, key=lambda row: row["id"]) == rows_of(given)
    metadata = max(Path(table.location, "metadata").glob("*.metadata.json"))
    iceberg = StaticTable.from_metadata(str(metadata)).scan().to_arrow().to_pylist()
    assert sorted(iceberg, key=lambda row: row["id"]) == rows_of(given)


def test_nested_types_and_uuids_are_kept(lake: Lake, sp: Spark) -> None:
    schema = (
        "id long, u uuid, o struct<a int, `b c` struct<x string not null>>,"
        " l list<struct<p double>>, m map<string, list<long>>, f fixed(3)"
    )
    row = {
        "id": 1,
        "u": UUID(int=7),
        "o": {"a": 1, "b c": {"x": "y"}},
        "l": [{"p": 1.5}, None, {"p": float("inf")}],
        "m": [("k", [1, None]), ("e", [])],
        "f": b"abc",
    }
    given = lake.create_table("a.given", schema, formats=["iceberg"])
    given.append([row, {"id": 2}])
    table = lake.create_table("a.t", schema, formats=["iceberg"])

    sp.append(sp.table("a.given"), "a.t")

    assert rows_of(table) == rows_of(given)


def test_files_have_ids_names_and_types_of_ours(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id long not null, o struct<p int>, at timestamp, t string")
    table.alter().rename_column("t", "tt").add_column("t", "string").commit()
    sp.append(
        frame(
            sp,
            [(1, (2,), datetime(2024, 1, 1, tzinfo=UTC), "x", "y")],
            "id long, o struct<p:int>, at timestamp, tt string, t string",
        ),
        "a.t",
    )
    table.append(
        [{"id": 2, "o": {"p": 3}, "at": datetime(2024, 1, 1, tzinfo=UTC), "tt": "x", "t": "y"}]
    )

    by_spark, by_us = (
        pq.read_metadata(Path(table.location) / file.path)
        for file in sorted(table.files(), key=lambda file: file.added_version)
    )

    def columns(metadata: Any) -> list[str]:
        text = str(metadata.schema).splitlines()[2:]
        return [line.strip() for line in text if line.strip()]

    assert columns(by_spark) == columns(by_us)
    assert by_spark.row_group(0).column(0).compression == "ZSTD"
    assert not list(Path(table.location, "data").rglob("*.crc"))
    assert not list(Path(table.location, "data").rglob("_*"))


def test_nan_never_leaves_rows_out(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id long, x double, y float, z double")
    nan = float("nan")
    sp.append(
        frame(sp, [(1, nan, 1.0, 1.0), (2, 1.0, nan, 2.0)], "id long, x double, y float, z double"),
        "a.t",
    )

    stats = [file.file.stats for file in table.scan().plan().files]
    z = table.schema.find(("z",))
    assert z is not None
    assert all(s[z.id].nan_count == 0 and s[z.id].upper is not None for s in stats)
    for column, expected in (("x", [1]), ("y", [2]), ("z", [])):
        for source in (
            lake.sql(f"SELECT id FROM a.t WHERE {column} > 5").to_pylist(),
            table.scan(where=f"{column} > 5").to_arrow().select(["id"]).to_pylist(),
            [r.asDict() for r in sp.table("a.t", where=f"{column} > 5").select("id").collect()],
        ):
            assert [row["id"] for row in source] == expected
    assert math.isnan(rows_of(table)[0]["x"])


@pytest.mark.parametrize("rows", [2, 5, 40])
def test_one_text_beside_nulls_is_found(rows: int, lake: Lake, sp: Spark) -> None:
    """DuckDB 2.0 may read plain columns of one text wrong: tests/unit/api/test_constant_text.py."""
    lake.create_table("a.t", "id long, v string, once string, raw binary", formats=["iceberg"])
    given = [
        (n, "a" if n % 2 else None, "x" if n == 1 else None, b"a" if n % 2 else None)
        for n in range(rows)
    ]
    sp.append(frame(sp, given, "id long, v string, once string, raw binary").coalesce(1), "a.t")

    for column in ("v", "once", "raw"):
        found = lake.sql(f"SELECT id FROM a.t WHERE {column} IS NULL ORDER BY id").to_pylist()
        where = [n for n, *values in given if values[("v", "once", "raw").index(column)] is None]
        assert [row["id"] for row in found] == where


def test_columns_are_matched_by_name_and_left_out_ones_get_defaults(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id long, n int, t string")
    table.alter().add_column("d", "int", default=7).commit()

    sp.append(frame(sp, [("x", 1)], "T string, id int"), "a.t")

    assert rows_of(table) == [{"id": 1, "n": None, "t": "x", "d": 7}]


REFUSED = [
    ("id long, other int", (1, 2), "other"),
    ("n int", (1,), "id"),
    ("id string", ("1",), "id"),
    ("id long, n long", (1, 2**40), "n"),
    ("id long, m double", (1, 0.5), "m"),
    ("id long, day timestamp", (1, datetime(2024, 1, 1, tzinfo=UTC)), "day"),
    ("id long, m decimal(10,3)", (1, Decimal("1.001")), "m"),
    ("id long, x string", (1, "1.5"), "x"),
]


@pytest.mark.parametrize(("schema", "row", "column"), REFUSED, ids=lambda v: str(v)[:30])
def test_rows_that_do_not_fit_are_refused_and_nothing_is_committed(
    schema: str, row: tuple[Any, ...], column: str, lake: Lake, sp: Spark
) -> None:
    table = lake.create_table("a.t", "id long not null, n int, m decimal(10,2), day date, x double")

    with pytest.raises(SchemaMismatch) as refused:
        sp.append(frame(sp, [row], schema), "a.t")

    assert column in str(refused.value)
    assert table.version == 0
    assert not list(Path(table.location, "data").rglob("*.parquet"))


@pytest.mark.parametrize("partition_by", [[], ["n"]])
def test_null_in_a_required_column_is_refused(
    partition_by: list[str], lake: Lake, sp: Spark
) -> None:
    table = lake.create_table("a.t", "id long not null, n int", partition_by=partition_by)

    with pytest.raises(SchemaMismatch, match=r"'id'.*required") as refused:
        sp.append(frame(sp, [(1, 1), (None, 2)], "id long, n int"), "a.t")

    assert refused.value.context["column"] == "id"
    assert table.version == 0


def test_constraints_hold_and_null_passes(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id long, n int", constraints={"small": "n < 10"})
    sp.append(frame(sp, [(1, 1), (2, None)], "id long, n int"), "a.t")

    with pytest.raises(ConstraintViolated, match="small") as violated:
        sp.append(frame(sp, [(3, 10)], "id long, n int"), "a.t")
    with pytest.raises(ConstraintViolated, match="small"):
        sp.update("a.t", {"n": "n + 9"}, "id = 1")

    assert violated.value.context["constraint"] == "small"
    assert table.row_count == 2


def test_a_constraint_that_spark_has_no_words_for_is_refused(lake: Lake, sp: Spark) -> None:
    lake.create_table(
        "a.t",
        "id long, t string",
        constraints={"c": "regexp_matches(t, '^a')"},
        formats=["iceberg"],
    )

    with pytest.raises(UnsupportedFeature, match="'c'"):
        sp.append(frame(sp, [(1, "a")], "id long, t string"), "a.t")


def test_constraints_on_times_are_not_left_to_another_time_zone(lake: Lake, sp: Spark) -> None:
    table = lake.create_table(
        "a.t", "id long, at timestamp", constraints={"late": "at >= '2024-01-01 00:00:00'"}
    )
    rows = frame(sp, [(1, datetime(2023, 12, 31, 20, tzinfo=UTC))], "id long, at timestamp")
    sp.session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")  # where it is 2024 by then

    with pytest.raises(UnsupportedFeature, match=r"'late'.*time zone"):
        sp.append(rows, "a.t")
    sp.session.conf.set("spark.sql.session.timeZone", "UTC")
    with pytest.raises(ConstraintViolated, match="late"):
        sp.append(rows, "a.t")

    assert table.version == 0


def test_an_empty_frame_commits_a_version_without_files(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id long")

    sp.append(frame(sp, [], "id long"), "a.t")

    assert table.files() == []


def test_merge_schema_adds_columns_and_widens(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id int")

    sp.append(frame(sp, [(2**40, "x")], "id long, t string"), "a.t", merge_schema=True)

    assert rows_of(table) == [{"id": 2**40, "t": "x"}]
    assert str(table.schema.fields[0].type) == "long"


def test_unicode_names_work(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("ä b.tä", 'id long, `größe " x` double', partition_by=["id"])

    sp.append(frame(sp, [(1, 2.0)], 'id long, `größe " x` double'), "ä b.tä")
    sp.update("ä b.tä", {'größe " x': '`größe " x` + 1'}, "id = 1")

    assert rows_of(table) == [{"id": 1, 'größe " x': 3.0}]


@pytest.mark.parametrize("partition_by", [[], ["truncate(500, id)"]])
def test_sorted_tables_get_sorted_files(partition_by: list[str], lake: Lake, sp: Spark) -> None:
    table = lake.create_table(
        "a.t", "id long, n int", sort_by=["n desc"], partition_by=partition_by
    )

    sp.append(sp.session.range(1000).select("id", (F.col("id") % 7).cast("int").alias("n")), "a.t")

    assert len(table.files()) == 2 if partition_by else 1
    for live in table.scan().plan().files:
        assert live.file.sort_order_id == table.sort_order.id
        read = pq.read_table(Path(table.location) / live.file.path).column(1).to_pylist()
        assert read == sorted(read, reverse=True)


def test_a_small_frame_makes_one_file_whatever_it_comes_from(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id long")
    by_python = frame(sp, [(n,) for n in range(10)], "id long")
    assert by_python.rdd.getNumPartitions() == 2

    for small in (by_python, sp.session.range(0, 10, numPartitions=4)):
        sp.append(small, "a.t")
    sp.update("a.t", {"id": "id + 100"}, "id < 5")

    added = [file.added_version for file in table.files()]
    assert sorted(added) == [3, 3, 3]  # two files with a vector, and one of new rows
    assert table.scan(where="id >= 100").plan().files[0].file.record_count == 10


def test_a_large_frame_of_few_partitions_makes_few_files(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id long, n int", partition_by=["n"])
    made = sp.session.range(0, 10_000, numPartitions=8)

    sp.append(made.select("id", (F.col("id") % 3).cast("int").alias("n")), "a.t")

    assert len(table.files()) == 3


@pytest.mark.parametrize("kind", ["string", "array<string>"])  # by Spark's writer, and by ours
def test_what_a_filter_leaves_of_a_large_frame_makes_few_files(
    kind: str, lake: Lake, sp: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "_SMALL_BYTES", 0)  # as if there were many rows before the filter
    table = lake.create_table("a.t", f"id long, x double, t {kind}", sort_by=["id desc"])
    rows = sp.session.range(0, 8_000, 1, 8).where("id % 100 = 7").withColumn("x", F.rand(1))
    text = F.array(F.lit("ä")) if kind != "string" else F.lit("ä")

    sp.append(rows.withColumn("t", text), "a.t")

    assert [file.record_count for file in table.files()] == [80]
    found = table.to_arrow().to_pylist()
    assert [row["id"] for row in found] == list(range(7, 8_000, 100))[::-1]
    assert {str(row["t"]) for row in found} == {"ä" if kind == "string" else "['ä']"}
    written = list(Path(table.location.removeprefix("file://")).rglob("*.parquet"))
    assert len(written) == 1
    assert lake.check().clean


def test_overwrites_replace_all_partitions_or_matches(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id long, p string", partition_by=["p"])
    sp.append(frame(sp, [(1, "a"), (2, "b"), (3, None)], "id long, p string"), "a.t")

    sp.overwrite(frame(sp, [(9, "b"), (8, None)], "id long, p string"), "a.t", partitions=True)
    assert [r["id"] for r in rows_of(table)] == [1, 8, 9]
    sp.overwrite(frame(sp, [(4, "b")], "id long, p string"), "a.t", where="p = 'b'")
    assert [r["id"] for r in rows_of(table)] == [1, 4, 8]
    with pytest.raises(SchemaMismatch, match="overwrite"):
        sp.overwrite(frame(sp, [(5, "c")], "id long, p string"), "a.t", where="p = 'b'")
    sp.overwrite(frame(sp, [(6, "c")], "id long, p string"), "a.t")
    assert [r["id"] for r in rows_of(table)] == [6]


def test_a_transaction_stages_and_sees_what_spark_writes(lake: Lake, sp: Spark) -> None:
    lake.create_table("a.t", "id long")
    lake.create_table("a.u", "id long")
    with lake.transaction() as tx:
        assert sp.append(sp.session.range(5), "a.t", transaction=tx) is None
        sp.delete("a.t", "id = 0", transaction=tx)
        sp.append(sp.table("a.t", transaction=tx), "a.u", transaction=tx)
        assert lake.table("a.t").row_count == 0
    assert [r["id"] for r in rows_of(lake.table("a.u"))] == [1, 2, 3, 4]
    assert lake.table("a.t").version == lake.table("a.u").version == 1


def test_idempotency_and_application_numbers_are_kept(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id long")
    first = sp.append(sp.session.range(2), "a.t", idempotency_key="k", message="why")
    again = sp.append(sp.session.range(2), "a.t", idempotency_key="k", message="why")
    sp.append(sp.session.range(3), "a.t", txn=("app", 1))
    sp.append(sp.session.range(3), "a.t", txn=("app", 1))

    assert first is not None
    assert again is not None
    assert (again.version, again.replayed, first.message) == (first.version, True, "why")
    assert table.row_count == 5


def test_a_branch_is_written_alone(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("a.t", "id long")
    table.append([{"id": 1}])
    table.create_branch("dev")

    sp.append(sp.session.range(5, 6), "a.t", branch="dev")
    sp.delete("a.t@dev", "id = 1")

    assert [r["id"] for r in rows_of(table)] == [1]
    assert [r["id"] for r in rows_of(lake.table("a.t@dev"))] == [5]


def test_what_is_no_dataframe_and_lakes_in_memory_are_refused(lake: Lake, sp: Spark) -> None:
    lake.create_table("a.t", "id long")
    with pytest.raises(InvalidInput, match="DataFrame"):
        sp.append([{"id": 1}], "a.t")
    with lakebed.open(":memory:") as memory:
        memory.create_table("a.t", "id long")
        with pytest.raises(LakebedError, match="memory"):
            memory.spark(sp.session).append(sp.session.range(1), "a.t")


AWKWARD = "i int, s short, b boolean, k string, d date, at timestamp, l timestamp_ntz"
AWKWARD_ROWS: list[tuple[Any, ...]] = [
    (-1, -32768, True, "", date(1, 1, 1), "0001-01-01 00:00:00"),
    (0, 32767, False, None, date(1969, 12, 31), "1969-12-31 23:59:59.999999"),
    (2**31 - 1, None, None, "x" * 300, date(9999, 12, 31), "9999-12-31 23:59:59.999999"),
    (-11, 7, True, "a=b/c %41", None, None),
    (-10, 7, True, "😀ß", date(2024, 2, 29), "2024-02-29 13:00:00"),
    (None, 8, False, "😀SS", date(2024, 2, 1), "2024-02-29 13:59:59.999999"),
    (-9, 8, False, "__HIVE_DEFAULT_PARTITION__", date(2024, 3, 1), "2024-02-29 14:00:00"),
]
PARTED = [
    ["k", "b"],
    ["truncate(2, k)", "bucket(4, i)"],
    ["year(d)", "truncate(10, i)", "s"],
    ["month(at)", "d"],
    ["hour(l)", "day(at)"],
    ["at", "l"],
]


def test_sparks_own_writer_parts_rows_as_the_embedded_engine_does(
    lake: Lake, sp: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakebed.engines.spark.write.write_in_workers", None)
    plain = "id long, i int, s short, b boolean, k string, d date, at string"
    rows = [(n, *row) for n, row in enumerate(AWKWARD_ROWS)]
    given = frame(sp, rows, plain).selectExpr(
        "id",
        "i",
        "s",
        "b",
        "k",
        "d",
        "cast(at AS timestamp) AS at",
        "cast(at AS timestamp_ntz) AS l",
    )
    source = lake.create_table("a.given", f"id long, {AWKWARD}", formats=["iceberg"])
    sp.append(given, "a.given")

    for number, terms in enumerate(PARTED):
        tables = [
            lake.create_table(f"a.{name}{number}", f"id long, {AWKWARD}", partition_by=terms)
            for name in ("spark", "embedded")
        ]
        sp.append(given, f"a.spark{number}")
        tables[1].append(source.scan())

        assert rows_of(tables[0]) == rows_of(source)
        found, wanted = (
            sorted(
                (f.path.rpartition("/")[0], repr(f.partition), f.record_count) for f in t.files()
            )
            for t in tables
        )
        assert found == wanted, terms
    assert not lake.check().findings
