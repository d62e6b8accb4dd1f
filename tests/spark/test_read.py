"""Tables as DataFrames, each trap with a filter, by both readers and as `table.scan` has them."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakebed
from lakebed import Lake, Table
from lakebed.api.spark import Spark
from lakebed.core import holding
from lakebed.engines.arrow.metadata import METADATA
from lakebed.engines.spark.read import read
from lakebed.model.errors import InvalidInput, SparkError, TableNotFound, UnsupportedFeature
from tests.spark.same import assert_same, rows_of, rows_of_each

Rows = list[dict[str, Any]]
Steps = Callable[[Table], object]
READERS = ("iceberg", "parquet")


@dataclass(frozen=True)
class Case:
    """A table that is written, changed and written again."""

    name: str
    schema: str
    before: Rows
    change: Steps
    after: Rows
    filters: tuple[str, ...]
    columns: tuple[str, ...] = ()
    formats: str = "delta,iceberg"


CASES = (
    Case(
        "renamed",
        "id long, a string",
        [{"id": 1, "a": "x"}, {"id": 2, "a": None}],
        lambda t: t.alter().rename_column("a", "b").commit(),
        [{"id": 3, "b": "x"}, {"id": 4, "b": "y"}],
        ("b = 'x'", "b IS NULL", "b > 'x'"),
    ),
    Case(
        "names swapped",
        "id long, a int, b int",
        [{"id": 1, "a": 1, "b": 100}, {"id": 2, "a": 2, "b": 200}],
        lambda t: (
            t.alter()
            .rename_column("a", "c")
            .rename_column("b", "a")
            .rename_column("c", "b")
            .commit()
        ),
        [{"id": 3, "a": 1, "b": 300}],
        ("a = 1", "a = 100", "b = 1", "b > 150", "a > 50 AND b < 50"),
        ("b", "a"),
    ),
    Case(
        "dropped and added again",
        "id long, a int",
        [{"id": 1, "a": 1}, {"id": 2, "a": 2}],
        lambda t: (t.alter().drop_column("a").commit(), t.alter().add_column("a", "int").commit()),
        [{"id": 3, "a": 1}, {"id": 4, "a": None}],
        ("a IS NULL", "a = 1", "a IS NOT NULL", "a = 2"),
        ("a",),
    ),
    Case(
        "widened",
        "id long, i int, f float, d decimal(9,2), e decimal(20,2), b byte",
        [
            {"id": 1, "i": 10, "f": 0.1, "d": Decimal("1.50"), "e": Decimal("1.50"), "b": 1},
            {"id": 2},
            {"id": 3, "i": -1, "f": 1.5, "d": Decimal("-9.99"), "e": Decimal(7), "b": -128},
        ],
        lambda t: (
            t.alter()
            .widen_column("i", "long")
            .widen_column("f", "double")
            .widen_column("d", "decimal(18,2)")
            .widen_column("e", "decimal(38,2)")
            .widen_column("b", "int")
            .commit()
        ),
        [{"id": 4, "i": 2**40, "f": 1e300, "d": Decimal("1234567890123.50"), "b": 2**20}],
        (
            "i = 10",
            "i > 1000000",
            "i < 5000000000",
            "f = 0.1",
            "f < 1e200",
            "f > 0.1",
            "d = 1.50",
            "d < 99999999999999",
            "d > 100000000000",
            "e < 99999999999999999999999999999",
            "e >= 1.50",
            "b = 1",
            "b > 1000",
            "b < 1000",
            "i IN (10, 1099511627776)",
        ),
    ),
    Case(
        "added with a default",
        "id long",
        [{"id": 1}, {"id": 2}],
        lambda t: (
            t.alter().add_column("n", "int", default=7).commit(),
            t.alter().add_column("s", "string", default="it's").commit(),
        ),
        [{"id": 3, "n": 8, "s": "y"}, {"id": 4, "n": None, "s": None}],
        ("n = 7", "n IS NULL", "n > 7", "s = 'it''s'", "s IS NULL"),
        ("n",),
        formats="iceberg",
    ),
    Case(
        "nested defaults",
        "id long, s struct<a: int>, l list<struct<a: int>>, m map<string, struct<a: int>>",
        [
            {"id": 1, "s": {"a": 1}, "l": [{"a": 1}, None], "m": {"k": {"a": 1}}},
            {"id": 2, "s": None, "l": [], "m": {}},
            {"id": 3, "s": {"a": None}, "l": None, "m": None},
        ],
        lambda t: (
            t.alter()
            .add_column("s.n", "long", default=2**40)
            .add_column("l.element.n", "string", default="d")
            .add_column("m.value.n", "int", default=5)
            .commit()
        ),
        [{"id": 4, "s": {"a": 4, "n": 4}, "l": [{"a": 5, "n": "t"}], "m": None}],
        ("s.n = 4", "s.n = 1099511627776", "s.n IS NULL", "s.a = 1"),
        ("m", "l", "s"),
        formats="iceberg",
    ),
    Case(
        "nested members",
        "id long, s struct<a: int, b: struct<c: int>>, l list<struct<a: int>>, m map<string, int>",
        [
            {"id": 1, "s": {"a": 1, "b": {"c": 1}}, "l": [{"a": 1}], "m": {"k": 1}},
            {"id": 2, "s": None, "l": [], "m": {}},
            {"id": 3, "s": {"a": None, "b": None}, "l": None, "m": None},
        ],
        lambda t: (
            t.alter()
            .rename_column("s.a", "z")
            .add_column("s.a", "string")
            .rename_column("s.b.c", "cc")
            .widen_column("s.b.cc", "long")
            .add_column("l.element.x", "string")
            .rename_column("l.element.a", "aa")
            .widen_column("m.value", "long")
            .commit()
        ),
        [
            {
                "id": 4,
                "s": {"z": 4, "a": "4", "b": {"cc": 2**40}},
                "l": [{"aa": 5, "x": "t"}, None],
                "m": {"k": 2**40, "j": None},
            }
        ],
        ("s.z = 1", "s.a IS NULL", "s.a = '4'", "s.b.cc > 1", "s IS NULL", "l IS NULL"),
        ("s", "l", "m"),
    ),
)


@pytest.fixture
def sp(lake: Lake, spark: SparkSession) -> Spark:
    return lake.spark(spark)


def check(sp: Spark, table: Table, filters: Sequence[str], columns: Sequence[str] = ()) -> None:
    """By both readers: everything, each condition as `where=` and as a filter, some columns."""
    for reader in READERS:
        assert_same(sp.table(table.name, reader=reader), table.to_arrow())
        chosen = [sp.table(table.name, where=where, reader=reader) for where in filters]
        later = [sp.table(table.name, reader=reader).where(where) for where in filters]
        found = rows_of_each([*chosen, *later])
        for where, first, second in zip(filters, found, found[len(filters) :], strict=False):
            expected = rows_of(table.scan(where=where).to_arrow())
            assert first == second == expected, (reader, where)
        if columns:
            narrow = table.scan(columns=columns, where=filters[0]).to_arrow()
            few = sp.table(table.name, columns=columns, where=filters[0], reader=reader)
            assert_same(few, narrow)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_evolved_tables_read_alike(lake: Lake, sp: Spark, case: Case) -> None:
    table = lake.create_table("s.t", case.schema, formats=case.formats)
    table.append(case.before)
    case.change(table)
    table.append(case.after)

    check(sp, table, case.filters, case.columns)


def test_rows_of_deletion_vectors_are_left_out(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", "id long, v double")
    rows = pa.table({"id": range(3000), "v": [n / 7 for n in range(3000)]})
    table.append(rows, settings={"write.parquet.row-group-rows": 500})
    table.append([{"id": 5000, "v": 0.5}])
    table.delete("id % 5 = 0 AND id < 2900")
    table.delete("id = 2999")

    check(sp, table, ("id > 2990", "id = 5", "id = 6", "v < 1", "id >= 640 AND id < 700"), ("v",))
    for reader in READERS:
        assert sp.table("s.t", columns=[], reader=reader).count() == table.row_count


def test_evolved_rows_of_deletion_vectors_are_left_out(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", "id long", formats="iceberg")
    table.append([{"id": n} for n in range(100)])
    table.alter().add_column("n", "int", default=7).commit()
    table.append([{"id": 100 + n, "n": n} for n in range(10)])
    table.delete("id % 3 = 0")

    check(sp, table, ("n = 7", "id > 50 AND n = 7", "n < 7"), ("n",))


def test_places_of_rows_are_the_same_of_few_files_and_of_many(
    lake: Lake, sp: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("s.t", "id long")
    for first in (0, 10, 20):
        table.append([{"id": first + n} for n in range(10)])
    table.update({"id": "id + 100"}, "id = 3 OR id = 14")
    plan, storage = table.scan().plan(), lake._parts.storage

    def rows() -> Rows:
        found = read(sp.session, plan, storage, metadata=tuple(METADATA)).collect()
        return sorted((row.asDict() for row in found), key=lambda row: row["id"])

    few = rows()
    monkeypatch.setattr("lakebed.engines.spark.files._MOST_CHOSEN", 0)

    assert few == rows()
    assert [row["id"] for row in few][-2:] == [103, 114]
    assert len({(row["_file"], row["_pos"]) for row in few}) == 30
    assert {row["_row_id"] for row in few} == set(range(30))


FIRST = datetime.min  # noqa: DTZ901 - of no zone, as the column
LAST = datetime.max  # noqa: DTZ901 - of no zone, as the column
AWKWARD = ("a", "a=b", "__HIVE_DEFAULT_PARTITION__", "..", "a b/ü%", "%2e%2e", "[x]{y}*?", "12", "")


def test_partition_values_come_from_the_files(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", "id long, p string, day date", partition_by=["p", "day"])
    for number, value in enumerate((*AWKWARD, None)):
        table.append([{"id": number, "p": value, "day": None if number % 2 else date(2026, 11, 1)}])

    filters = ("p = 'a=b'", "p IS NULL", "p = '12'", "p > 'a'", "day IS NULL", "p = '[x]{y}*?'")
    check(sp, table, filters, ("p",))


def test_nan_is_the_greatest_number_to_every_filter(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", "id long, d double, f float, s struct<x: double>")
    rows: Rows = [
        {"id": n, "d": v, "f": v, "s": {"x": v}}
        for n, v in enumerate((1.0, math.nan, -math.inf, None, -0.0))
    ]
    table.append(rows)
    table.append([{"id": 9, "d": 2.0, "f": 2.0, "s": {"x": 2.0}}])

    expected = {"d > 5": 1, "f > 5": 1, "s.x > 5": 1, "d < 5": 4, "d = 0.0": 1, "f >= 2": 2}
    _count_all(sp, table, expected)


def test_both_zeros_are_one_number_to_every_filter(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", "id long, d double, f float, s struct<x: double>")
    for values in ((-0.0, -1.0), (0.0, 1.0), (-0.0, 3.0)):
        table.append([{"d": v, "f": v, "s": {"x": v}} for v in values])

    expected = {
        "d = 0.0": 3,
        "d = -0.0": 3,
        "d >= 0.0": 5,
        "d <= -0.0": 4,
        "d IN (0.0, 7)": 3,
        "d > -0.0": 2,
        "d < 0.0": 1,
        "f = 0": 3,
        "f >= 0": 5,
        "s.x = 0": 3,
        "d != 0": 3,
    }
    _count_all(sp, table, expected)


def _count_all(sp: Spark, table: Table, expected: dict[str, int]) -> None:
    """A later filter is the connector's own business: it keeps zeros apart."""
    for reader in READERS:
        chosen = [sp.table("s.t", where=where, reader=reader) for where in expected]
        if reader == "parquet":
            chosen += [sp.table("s.t", reader=reader).where(where) for where in expected]
        counted = [len(rows) for rows in rows_of_each(chosen)]
        assert counted == list(expected.values()) * (len(chosen) // len(expected)), reader
    for where, count in expected.items():
        assert table.scan(where=where).to_arrow().num_rows == count, where


def test_every_type_of_spark_reads_exactly(lake: Lake, sp: Spark) -> None:
    kinds: dict[str, tuple[str, list[Any]]] = {
        "bo": ("boolean", [True, False, None]),
        "by": ("byte", [-128, 127, None]),
        "sh": ("short", [-(2**15), 2**15 - 1, None]),
        "lo": ("long", [-(2**63), 2**63 - 1, None]),
        "da": ("date", [date.min, date.max, None]),
        "ti": (
            "timestamp",
            [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), None],
        ),
        "nt": ("timestamp_ntz", [FIRST, LAST, None]),
        "st": ("string", ["", "\U0001d11e", None]),
        "bi": ("binary", [b"", b"\xff" * 40, None]),
        "fi": ("fixed(4)", [b"abcd", b"\x00" * 4, None]),
        "uu": ("uuid", [b"uuid" * 4, b"uuidabcdefghijkl", None]),
        "de": ("decimal(38,10)", [Decimal("-9999999999999999999999999999.9999999999"), 1, None]),
        "us": ("list<uuid>", [[b"uuid" * 4, None], [], None]),
    }
    table = lake.create_table(
        "s.t", ", ".join(f"{n} {k}" for n, (k, _) in kinds.items()), formats="iceberg"
    )
    table.append([{n: values[row] for n, (_, values) in kinds.items()} for row in range(3)])

    filters = (
        "bo",
        "by = 127",
        "sh < 0",
        "lo = 9223372036854775807",
        "da = DATE '0001-01-01'",
        "ti > TIMESTAMP '2000-01-01 00:00:00'",
        "nt = TIMESTAMP '9999-12-31 23:59:59.999999'",
        "nt < TIMESTAMP '2000-01-01 00:00:00'",
        "st LIKE '_'",
        "de < 0",
        "bi IS NULL",
    )
    for reader in READERS:
        assert_same(sp.table("s.t", reader=reader), table.to_arrow())
        found = rows_of_each([sp.table("s.t", where=where, reader=reader) for where in filters])
        for where, rows in zip(filters, found, strict=True):
            assert rows == rows_of(table.scan(where=where).to_arrow()), where


@pytest.mark.parametrize("kind", ["time", "timestamp_ns", "timestamptz_ns"])
def test_types_that_spark_lacks_are_refused_by_name(lake: Lake, sp: Spark, kind: str) -> None:
    table = lake.create_table("s.t", f"id long, x {kind}", formats="iceberg")
    table.append([{"id": 1, "x": None}])

    with pytest.raises(UnsupportedFeature, match="'x'"):
        sp.table("s.t")
    assert sp.table("s.t", columns=["id"]).toArrow().to_pylist() == [{"id": 1}]


def test_empty_tables_have_their_columns(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", "id long, s struct<a: int>")
    check(sp, table, ("id = 1",), ("s",))

    table.append([{"id": 1, "s": {"a": 1}}])
    table.delete("id = 1")
    check(sp, table, ("id = 1",), ("s",))


def test_rows_are_counted_without_columns(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", "id long, v int")
    table.append([{"id": n, "v": n % 3} for n in range(10)])

    for reader in READERS:
        assert sp.table("s.t", reader=reader).count() == 10
        assert sp.table("s.t", columns=[], reader=reader).count() == 10
        assert sp.table("s.t", columns=[], where="v = 1", reader=reader).count() == 3


def test_every_version_reads_as_it_was(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", "id long, v string")
    table.append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    table.alter().rename_column("v", "w").commit()
    table.update({"w": "'c'"}, "id = 2")
    table.create_tag("then", version=1)
    table.delete("id = 1")

    for version in range(table.version + 1):
        expected = table.scan(version=version).to_arrow()
        for reader in READERS:
            assert_same(sp.table("s.t", version=version, reader=reader), expected)
    assert_same(sp.table("s.t", ref="then"), table.scan(ref="then").to_arrow())
    assert_same(sp.table("s.t@then"), table.scan(ref="then").to_arrow())
    moment = table.history()[1].time_ms
    assert_same(sp.table("s.t", timestamp=moment), table.scan(timestamp=moment).to_arrow())


def test_branches_are_read_from_their_files(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", "id long")
    table.append([{"id": 1}])
    table.create_branch("b")
    table.append([{"id": 2}], branch="b")

    assert_same(sp.table("s.t", ref="b"), table.scan(ref="b").to_arrow())
    with pytest.raises(SparkError, match="branches"):
        sp.table("s.t@b", reader="iceberg")


def test_what_waits_is_published_before_it_is_read(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", "id long")
    lake.set_setting("publish.mode", "background")
    table.append([{"id": 1}], publish="background")

    assert sp.table("s.t", reader="iceberg").count() == 1


def test_tables_without_iceberg_are_read_from_their_files(lake: Lake, sp: Spark) -> None:
    lake.create_table("s.t", "id long", formats="delta").append([{"id": 1}])

    assert sp.table("s.t").count() == 1
    with pytest.raises(SparkError, match="does not publish Iceberg"):
        sp.table("s.t", reader="iceberg")


def test_a_transaction_sees_what_it_staged(lake: Lake, sp: Spark) -> None:
    lake.create_table("s.t", "id long").append([{"id": 1}, {"id": 2}])

    with lake.transaction() as tx:
        tx.table("s.t").append([{"id": 3}])
        tx.table("s.t").delete("id = 1")
        seen = sp.table("s.t", transaction=tx, where="id < 9").toArrow().to_pylist()
        assert sorted(row["id"] for row in seen) == [2, 3]
        assert sp.table("s.t").count() == 2
        with pytest.raises(InvalidInput, match="one version"):
            sp.table("s.t", transaction=tx, version=0)


def test_files_that_cannot_match_are_never_opened(lake: Lake, sp: Spark, tmp_path: Path) -> None:
    table = lake.create_table("s.t", "id long, p string", partition_by=["p"])
    table.append([{"id": n, "p": p} for n, p in enumerate("aaabbb")])
    table.append([{"id": 100 + n, "p": "a"} for n in range(3)])
    for entry in table.files():
        if entry.partition["p"] == "b" or (entry.record_count == 3 and entry.added_version == 2):
            (Path(table.location.removeprefix("file://")) / entry.path).unlink()

    assert sp.table("s.t", where="p = 'a' AND id < 50", reader="parquet").count() == 3
    assert sp.table("s.t", where="p = 'a' AND id < 50", reader="iceberg").count() == 3
    # A later filter leaves files out only when the connector plans the read.
    assert sp.table("s.t", reader="iceberg").where("p = 'a' AND id < 50").count() == 3


def test_names_with_any_characters_read(lake: Lake, sp: Spark) -> None:
    table = lake.create_table("s.t", pa.schema([("a b", pa.int64()), ("c`d/é", pa.string())]))
    table.append([{"a b": 1, "c`d/é": "x"}, {"a b": 2, "c`d/é": "y"}])
    table.delete('"a b" = 2')

    for reader in READERS:
        assert_same(sp.table("s.t", reader=reader), table.to_arrow())
        found = sp.table("s.t", where='"a b" = 1', reader=reader)
        assert_same(found, table.scan(where='"a b" = 1').to_arrow())


def test_a_column_may_be_named_as_sparks_own(lake: Lake, sp: Spark) -> None:
    names = ["_metadata", "file", "about_there", "name"]
    table = lake.create_table("s.t", pa.schema([(name, pa.int64()) for name in names]))
    table.append([dict.fromkeys(names, n) for n in range(5)])
    table.delete("_metadata = 3")

    assert_same(sp.table("s.t", reader="parquet"), table.to_arrow())


def test_wrong_requests_are_refused(lake: Lake, sp: Spark) -> None:
    lake.create_table("s.orders", "id long")

    with pytest.raises(TableNotFound) as caught:
        sp.table("s.order")
    assert "s.orders" in caught.value.hint
    with pytest.raises(InvalidInput, match="no reader 'delta'"):
        sp.table("s.orders", reader="delta")
    with pytest.raises(InvalidInput, match="no column 'x'"):
        sp.table("s.orders", columns=["x"])
    with pytest.raises(InvalidInput, match="is no Spark session"):
        lake.spark("session")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="cannot have options"):
        lake.spark(sp.session, ui=True)


def test_versions_of_frames_are_held_until_the_lake_is_closed(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That they are given back before is shown by tests/spark/test_session.py, in a program of its
    own: here the frames of pytest keep DataFrames alive."""
    monkeypatch.setattr(holding, "AFTER_S", 0.0)
    monkeypatch.setattr(holding, "BEAT_S", 0.05)
    with lakebed.open(tmp_path, create=True) as lake:
        sp, table = lake.spark(spark), lake.create_table("s.t", "id long")
        for number in range(3):
            table.append([{"id": number}])
        made = [
            sp.table("s.t", version=1, reader="parquet").where("id = 0"),
            sp.table("s.t", version=2, reader="iceberg").selectExpr("id + 1 AS n"),
            sp.sql("SELECT id + 1 AS n FROM s.t WHERE id > 0"),
        ]
        deadline = time.monotonic() + 120
        while held(table) != [1, 2, 3]:
            assert time.monotonic() < deadline, held(table)
            time.sleep(0.05)
        assert all(frame.collect() for frame in made)
    with lakebed.open(tmp_path) as again:
        assert held(again.table("s.t")) == []


def held(table: Table) -> list[int]:
    return sorted(int(lease.version or 0) for lease in table._parts.leases.active(table._id))
