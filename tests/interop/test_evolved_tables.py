"""Evolved tables through other readers: widened, nested, defaulted, repartitioned, constrained.

Each reader is asked for the whole table and for rows that match; it must agree with us or refuse.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import lakebed
from lakebed.formats.delta.read import read_snapshot
from lakebed.storage import open_storage
from tests.interop.duckdb155 import asked_of_duckdb
from tests.interop.expected import EVOLVED
from tests.interop.plain import plain_rows

Rows = list[dict[str, Any]]
BOTH = ("delta", "iceberg")


@dataclass(frozen=True)
class Case:
    """A table that is written, altered and written again; `filters` are asked of every reader."""

    name: str
    schema: str
    before: Rows
    alter: Callable[[Any], Any]
    after: Rows
    filters: tuple[str, ...] = ()
    formats: tuple[str, ...] = BOTH
    partition_by: tuple[str, ...] = ()
    refuses: dict[str, str] = field(default_factory=dict)  # reader: what its refusal says


WIDENED, MAPPED = EVOLVED["type widening"], EVOLVED["column mapping"]

CASES = (
    Case(
        "widened",
        "id long, i int, f float, d decimal(9,2), b byte",
        [{"id": 1, "i": 10, "f": 1.5, "d": Decimal("1.50"), "b": 1}, {"id": 2}],
        lambda a: (
            a.widen_column("i", "long")
            .widen_column("f", "double")
            .widen_column("d", "decimal(18,2)")
            .widen_column("b", "int")
        ),
        [{"id": 3, "i": 2**40, "f": 1e300, "d": Decimal("1234567890123.50"), "b": 2**20}],
        ("i = 10", "i > 1000000", "f = 1.5", "d = 1.50", "d > 100000000000", "b = 1", "b > 1000"),
        refuses=WIDENED,
    ),
    Case(
        "widened_partitions",
        "id long, i int, d decimal(9,2), k int",
        [{"id": 1, "i": 10, "d": Decimal("1.50"), "k": 1}, {"id": 2}],
        lambda a: (
            a.widen_column("i", "long").widen_column("d", "decimal(18,2)").widen_column("k", "long")
        ),
        [{"id": 3, "i": 2**40, "d": Decimal("1234567890123.50"), "k": 2**40}],
        ("i = 10", "i > 1000000", "d = 1.50", "d > 100000000000", "k = 1"),
        partition_by=("i", "d", "bucket(4, k)"),
        refuses=WIDENED,
    ),
    Case(
        "nested",
        "id long, s struct<a: int, b: string>, l list<struct<p: int, q: int>>,"
        " m map<string, struct<v: int, w: int>>",
        [
            {
                "id": 1,
                "s": {"a": 1, "b": "b"},
                "l": [{"p": 1, "q": 2}],
                "m": {"k": {"v": 1, "w": 2}},
            },
            {"id": 2, "l": [], "m": {}},
        ],
        lambda a: (
            a.rename_column("s.a", "x")
            .drop_column("s.b")
            .add_column("s.b", "long")
            .rename_column("l.element.p", "tmp")
            .rename_column("l.element.q", "p")
            .rename_column("l.element.tmp", "q")
            .rename_column("m.value.v", "n")
        ),
        [
            {
                "id": 3,
                "s": {"x": 3, "b": 4},
                "l": [{"p": 5, "q": 6}],
                "m": {"k": {"n": 4, "w": 3}},
            }
        ],
        ("s.x = 1", "s.b = 4", "s.b IS NULL"),
        refuses=MAPPED,
    ),
    Case(
        "inside_maps",
        "id long, m map<string, struct<v: int, w: int>>",
        [{"id": 1, "m": {"k": {"v": 1, "w": 2}}}],
        lambda a: a.add_column("m.value.n", "string", first=True),
        [{"id": 2, "m": {"k": {"n": "n", "v": 3, "w": 4}}}],
        refuses={"deltalake QueryBuilder": "Cannot cast column"},
    ),
    Case(
        "moved_inside",
        "id long, m map<string, struct<v: int, w: int>>, l list<struct<v: int, w: int>>",
        [{"id": 1, "m": {"k": {"v": 1, "w": 2}}, "l": [{"v": 1, "w": 2}]}],
        lambda a: a.move_column("m.value.v").move_column("l.element.v"),
        [{"id": 2, "m": {"k": {"v": 3, "w": 4}}, "l": [{"v": 3, "w": 4}]}],
    ),
    Case(
        "dropped_inside_maps",
        "id long, m map<string, struct<v: int, w: int>>",
        [{"id": 1, "m": {"k": {"v": 1, "w": 2}}}],
        lambda a: a.drop_column("m.value.v").add_column("m.value.v", "string"),
        [{"id": 2, "m": {"k": {"v": "v", "w": 4}}}],
        formats=("iceberg",),
    ),
    Case(
        "reordered",
        "id long, a int, b string",
        [{"id": 1, "a": 1, "b": "x"}],
        lambda a: a.move_column("b", first=True).add_column("c", "long", after="b"),
        [{"id": 2, "a": 2, "b": "y", "c": 3}],
        ("a = 1", "b = 'y'", "c IS NULL", "c = 3"),
    ),
    Case(
        "added_with_defaults",
        "id long, s struct<x: int>",
        [{"id": 1, "s": {"x": 1}}, {"id": 2}],
        lambda a: (
            a.add_column("n", "int", default=5)
            .add_column("t", "string", default="x")
            .add_column("d", "decimal(9,2)", default=Decimal("1.50"))
            .add_column("f", "double", default=1.5)
            .add_column("o", "boolean", default=True)
            .add_column("b", "binary", default=b"ab")
            .add_column("s.y", "long", default=7)
        ),
        [{"id": 3, "n": None}, {"id": 4, "n": 9, "t": "y", "s": {"x": 2}}],
        ("n = 5", "n > 7", "n IS NULL", "t = 'x'", "d = 1.50", "f = 1.5", "o = true"),
        formats=("iceberg",),
    ),
    Case(
        "default_for_new_rows",
        "id long, n int, day date",
        [{"id": 1}],
        lambda a: a.set_default("n", 5).set_default("day", "2024-01-31"),
        [{"id": 2}, {"id": 3, "n": None}],
        ("n = 5", "n IS NULL"),
    ),
    Case(
        "repartitioned",
        "id long, p string, n long",
        [{"id": 1, "p": "a", "n": 1}, {"id": 2, "p": "b", "n": 2}],
        lambda a: a.set_partitioning(["bucket(4, n)", "truncate(1, p)"]).set_sort_order(["n"]),
        [{"id": 3, "p": "a", "n": 3}, {"id": 4, "p": "c", "n": 4}],
        ("p = 'a'", "p = 'c'", "n = 2", "n > 2"),
        partition_by=("p",),
    ),
    Case(
        "constrained",
        "id long, n int",
        [{"id": 1, "n": 1}, {"id": 2}],
        lambda a: a.add_constraint("positive", "n > 0"),
        [{"id": 3, "n": 3}],
        ("n = 1", "n IS NULL"),
    ),
    Case(
        "made_optional",
        "id long, n int not null",
        [{"id": 1, "n": 1}],
        lambda a: a.make_optional("n"),
        [{"id": 2}],
        ("n = 1", "n IS NULL"),
    ),
)
NAMES = [case.name for case in CASES]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, lakebed.Table]:
    lake = lakebed.open(tmp_path_factory.mktemp("evolved"), create=True)
    found = {}
    for case in CASES:
        table = lake.create_table(
            f"s.{case.name}",
            case.schema,
            formats=list(case.formats),
            partition_by=list(case.partition_by),
        )
        table.append(case.before)
        case.alter(table.alter()).commit()
        table.append(case.after)
        found[case.name] = table
    assert lake.check().clean
    return found


def _static(location: str) -> StaticTable:
    return StaticTable.from_metadata(location)


def _query(location: str, sql: str) -> pa.Table:
    builder = QueryBuilder().register("t", DeltaTable(location))
    return pa.table(builder.execute(sql).read_all())


def _polars_delta(location: str, where: str | None) -> pa.Table:
    frame = pl.scan_delta(location)
    return (frame if where is None else frame.filter(pl.sql_expr(where))).collect().to_arrow()


def _polars_iceberg(location: str, where: str | None) -> pa.Table:
    frame = pl.scan_iceberg(_static(location))
    return (frame if where is None else frame.filter(pl.sql_expr(where))).collect().to_arrow()


READERS: dict[str, tuple[str, Callable[[str, str | None], pa.Table]]] = {
    "PyIceberg": (
        "iceberg",
        lambda at, where: _static(at).scan(row_filter=where or "id >= 0").to_arrow(),
    ),
    "Polars scan_iceberg": ("iceberg", _polars_iceberg),
    "deltalake to_pyarrow": ("delta", lambda at, _: DeltaTable(at).to_pyarrow_table()),
    "deltalake QueryBuilder": (
        "delta",
        lambda at, where: _query(at, f"SELECT * FROM t WHERE {where or 'true'}"),
    ),
    "Polars scan_delta": ("delta", _polars_delta),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_shows_our_rows_or_refuses(
    tables: dict[str, lakebed.Table], name: str, reader: str
) -> None:
    case, table = next(c for c in CASES if c.name == name), tables[name]
    format_, read = READERS[reader]
    if format_ not in case.formats:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their own, about v3 and planners
        if reader in case.refuses:
            with pytest.raises(Exception, match=case.refuses[reader]):
                read(table.location, None)
            return
        assert plain_rows(read(table.location, None)) == plain_rows(table.to_arrow())
        for where in _asked(case, reader):
            found = read(table.location, where)
            wanted = table.scan(where=where).to_arrow()
            assert plain_rows(found) == plain_rows(wanted), where


def _asked(case: Case, reader: str) -> Iterator[str]:
    if reader == "deltalake to_pyarrow":
        return
    for where in case.filters:
        # Polars' SQL has no path into structs, PyIceberg's text no decimals of its own.
        if not (reader.startswith("Polars") and "s." in where):
            yield where


def test_duckdb_shows_our_rows(tables: dict[str, lakebed.Table]) -> None:
    asked: list[tuple[str, pa.Table]] = []
    for case in CASES:
        table = tables[case.name]
        for format_ in case.formats:
            source = f"{format_}_scan('{table.location}')"
            asked.append((f"SELECT * FROM {source}", table.to_arrow()))
            for where in case.filters:
                wanted = table.scan(where=where).to_arrow()
                asked.append((f"SELECT * FROM {source} WHERE {where}", wanted))

    answers = asked_of_duckdb([sql for sql, _ in asked])

    for (sql, wanted), answer in zip(asked, answers, strict=True):
        rows = plain_rows(wanted)
        shown = {str(k): {n: repr(v) for n, v in row.items()} for k, row in rows.items()}
        assert answer == {"rows": shown}, sql


def test_delta_says_what_a_writer_has_to_know(tables: dict[str, lakebed.Table]) -> None:
    def metadata(name: str) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
        place = Path(tables[name].location)
        found = read_snapshot(open_storage(str(place.parent)), place.name)
        schema = orjson.loads(found.metadata.schema_string)
        fields = {f["name"]: f["metadata"] for f in schema["fields"]}
        return fields, dict(found.metadata.configuration), found.protocol.writer_features or ()

    fields, _, features = metadata("default_for_new_rows")
    assert fields["n"]["CURRENT_DEFAULT"] == "5"
    assert fields["day"]["CURRENT_DEFAULT"] == "DATE '2024-01-31'"
    assert "allowColumnDefaults" in features
    _, configuration, features = metadata("constrained")
    assert configuration["delta.constraints.positive"] == "(n > 0) IS NOT FALSE"
    assert "checkConstraints" in features
    fields, configuration, features = metadata("widened")
    assert fields["i"]["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]
    assert configuration["delta.enableTypeWidening"] == "true"
    assert "typeWidening" in features


def test_pyiceberg_still_counts_null_below_a_number_it_cannot_hold(tmp_path: Path) -> None:
    """When it no longer does: take the line out of docs/readers.md."""
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("s.t", [{"id": 1, "n": 5}, {"id": 2, "n": None}])
    small = lake.create_table("s.u", "id long, n int")
    small.append([{"id": 1, "n": 5}, {"id": 2, "n": None}])
    small.alter().widen_column("n", "long").commit()

    found = [
        sorted(_static(t.location).scan(row_filter=f"n < {2**40}").to_arrow()["id"].to_pylist())
        for t in (table, small)
    ]

    assert found == [[1], [1, 2]]
