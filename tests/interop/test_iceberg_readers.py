"""PyIceberg and Polars read what we publish: our rows at every snapshot, filters and all."""

import datetime as dt
import math
import random
import uuid
import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    IsNaN,
    IsNull,
    LessThan,
    NotEqualTo,
    NotNull,
    StartsWith,
)
from pyiceberg.table import StaticTable

from lakebed.formats.iceberg.read import read_snapshot
from lakebed.model.partitioning import parse_sort_order, parse_spec
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.storage.local import LocalStorage
from tests.unit.formats.iceberg.fake_ledger import FakeLedger
from tests.unit.formats.iceberg.tables import Rows, Table

UTC = dt.UTC
AWKWARD = [
    "",
    " ",
    "a/b",
    "ä=ö%20",
    "%",
    "100%",
    "..",
    "null",
    "__HIVE_DEFAULT_PARTITION__",
    "\U0001f600z",
    None,
]


OPERATORS: dict[str, Any] = {
    "=": EqualTo,
    "!=": NotEqualTo,
    "<": LessThan,
    ">=": GreaterThanOrEqual,
    "starts with": StartsWith,
    "is null": IsNull,
    "is not null": NotNull,
    "is nan": IsNaN,
}


@pytest.fixture(autouse=True)
def quiet_polars(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The optional planner of Polars is not installed; PyIceberg plans its scans."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        yield


def make(
    folder: Path,
    columns: str,
    *,
    by: tuple[str, ...] = (),
    key: tuple[str, ...] = (),
    sort: tuple[str, ...] = (),
    **options: Any,
) -> Table:
    schema = new_schema(parse_schema(columns), primary_key=key)
    order = parse_sort_order(sort, schema)
    ledger = FakeLedger(schema, parse_spec(by, schema), sort_order=order, **options)
    return Table(LocalStorage(folder / "lake dé"), ledger)


def normal(value: Any) -> Any:
    """One form for values that readers spell differently."""
    if isinstance(value, dict):
        return tuple((k, normal(v)) for k, v in sorted(value.items()))
    if isinstance(value, list):
        if value and all(isinstance(v, tuple) and len(v) == 2 for v in value):
            return tuple(sorted((k, normal(v)) for k, v in value))
        if value and all(isinstance(v, dict) and set(v) == {"key", "value"} for v in value):
            return tuple(sorted((v["key"], normal(v["value"])) for v in value))
        return tuple(normal(v) for v in value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return ("utc", value.astimezone(UTC).replace(tzinfo=None))
    return value


def bag(rows: Rows) -> list[str]:
    return sorted(repr(normal(row)) for row in rows)


def where(column: str, operator: str, *value: Any) -> BooleanExpression:
    found: BooleanExpression = OPERATORS[operator](column, *value)
    return found


def complete(table: Table, rows: Rows) -> Rows:
    names = [f.name for f in table.schema.fields]
    return [{name: row.get(name) for name in names} for row in rows]


def pyiceberg_rows(
    path: str, predicate: BooleanExpression | None = None, snapshot_id: int | None = None
) -> Rows:
    scan = StaticTable.from_metadata(path).scan(snapshot_id=snapshot_id)
    found: Rows = (scan.filter(predicate) if predicate else scan).to_arrow().to_pylist()
    return found


def polars_rows(path: str, snapshot_id: int | None = None, where: pl.Expr | None = None) -> Rows:
    frame = pl.scan_iceberg(path, snapshot_id=snapshot_id)
    return (frame if where is None else frame.filter(where)).collect().to_dicts()


def assert_readers_agree(table: Table) -> None:
    expected = bag(complete(table, table.rows_at(table.ledger.commit_rows[-1].version)))
    assert bag(pyiceberg_rows(table.location)) == expected
    assert bag(pyiceberg_rows(table.metadata_path)) == expected
    assert bag(polars_rows(table.metadata_path)) == expected


def naive(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


EVERY_TYPE = (
    "b boolean, i8 byte, i16 short, i int, l long not null, f float, d double, day date, t time, "
    "ts timestamp, ntz timestamp_ntz, s string, fx fixed(5), bin binary, dec decimal(9,2), "
    "big decimal(38,10)"
)
VALUES: dict[str, list[Any]] = {
    "b": [True, False],
    "i8": [-128, 127],
    "i16": [-(2**15), 2**15 - 1],
    "i": [-(2**31), 2**31 - 1],
    "l": [-(2**63), 2**63 - 1],
    "f": [-0.5, float("inf")],
    "d": [float("nan"), -0.0],
    "day": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "t": [dt.time(0), dt.time(23, 59, 59, 999999)],
    "ts": [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        dt.datetime(2024, 2, 29, tzinfo=UTC),
    ],
    "ntz": [naive("1969-12-31T23:00"), naive("2262-01-01")],
    "s": ["", "Zürich \U0001f600"],
    "fx": [b"12345", b"\0\xff\0\xff\0"],
    "bin": [b"", b"\xff" * 40],
    "dec": [Decimal("-1234567.89"), Decimal("0.01")],
    "big": [Decimal("-1234567890123456789012345678.0123456789"), Decimal("1e-10")],
}


@pytest.mark.parametrize("version", [2, 3])
def test_every_type_comes_back(tmp_path: Path, version: int) -> None:
    table = make(tmp_path, EVERY_TYPE, version=version)
    whole = [{name: values[n] for name, values in VALUES.items()} for n in (0, 1)]
    table.commit(whole, [{"l": 0}])  # the second file has nulls alone

    assert_readers_agree(table)


def test_uuids_come_back_from_pyiceberg_as_bytes_or_uuids(tmp_path: Path) -> None:
    table = make(tmp_path, "u uuid, n int")
    rows = [{"u": uuid.UUID(int=n << 120), "n": n} for n in (0, 127, 128, 255)]
    table.commit(rows[:2], rows[2:])

    assert bag(pyiceberg_rows(table.location)) == bag(rows)
    for row in rows:
        assert [r["n"] for r in pyiceberg_rows(table.location, where("u", "=", row["u"]))] == [
            row["n"]
        ]


def test_nanoseconds_come_back_from_v3(tmp_path: Path) -> None:
    table = make(tmp_path, "t timestamp_ns, z timestamptz_ns, n int")
    table.commit([{"t": 1, "z": -1, "n": 1}, {"t": 1_700_000_000_000_000_001, "z": None, "n": 2}])

    frame = pl.scan_iceberg(table.metadata_path).collect()
    arrow = (
        StaticTable.from_metadata(table.location, {"downcast-ns-timestamp-to-us-on-write": "false"})
        .scan()
        .to_arrow()
    )

    assert table.ledger.states[-1].iceberg_version == 3
    assert arrow["n"].to_pylist() == [1, 2]
    assert arrow["t"].cast(pa.int64()).to_pylist() == [1, 1_700_000_000_000_000_001]
    assert frame["t"].to_physical().to_list() == [1, 1_700_000_000_000_000_001]
    assert frame["z"].to_physical().to_list() == [-1, None]


@pytest.mark.parametrize("version", [2, 3])
def test_nested_columns_come_back(tmp_path: Path, version: int) -> None:
    table = make(
        tmp_path,
        "st struct<x: int not null, in: struct<`y y`: string>>, li list<struct<z: double>>, "
        "m map<string, list<long>>, deep list<list<int not null> not null>",
        version=version,
    )
    table.commit(
        [
            {
                "st": {"x": 1, "in": {"y y": "a"}},
                "li": [{"z": 0.5}, {"z": None}, None],
                "m": [("k", [1, None]), ("e", []), ("n", None)],
                "deep": [[1, 2], []],
            },
            {"st": {"x": 2, "in": None}, "li": [], "m": [], "deep": None},
            {"st": None, "li": [{"z": 1.0}], "m": None, "deep": [[3]]},
        ]
    )

    assert_readers_agree(table)
    found = pyiceberg_rows(table.location, where("st.x", "=", 2))
    assert [row["st"]["x"] for row in found] == [2]


@pytest.mark.xfail(reason="PyIceberg 0.12 reads a null list of structs as an empty list")
def test_null_lists_of_structs_come_back_from_pyiceberg(tmp_path: Path) -> None:
    table = make(tmp_path, "li list<struct<z: double>>")
    table.commit([{"li": None}, {"li": []}])

    assert bag(polars_rows(table.metadata_path)) == bag(table.rows_at(1))
    assert bag(pyiceberg_rows(table.location)) == bag(table.rows_at(1))


def test_names_with_spaces_and_letters_of_all_kinds_come_back(tmp_path: Path) -> None:
    table = make(
        tmp_path,
        "`a b` int, `ünï` string, `x;y` long, `日本` date, `1st` int, `a-b=c` double",
        by=("`ünï`", "`a b`", "bucket(4, `x;y`)", "`1st`"),
    )
    table.commit(
        [
            {
                "a b": n,
                "ünï": "ß",
                "x;y": n * 7,
                "日本": dt.date(2024, 1, n),
                "1st": n,
                "a-b=c": n / 2,
            }
            for n in range(1, 6)
        ]
    )

    assert_readers_agree(table)
    assert len(pyiceberg_rows(table.location, where("a b", "=", 3))) == 1
    assert len(polars_rows(table.metadata_path, where=pl.col("1st") == 4)) == 1


def test_an_empty_table_is_read_as_empty(tmp_path: Path) -> None:
    table = make(tmp_path, "id long, s string", by=("s",), key=("id",), sort=("s desc",))

    assert_readers_agree(table)
    table.commit(snapshot=True)
    assert_readers_agree(table)
    table.commit([{"id": 1, "s": "x"}])
    table.commit(remove=[1])
    assert_readers_agree(table)
    assert pyiceberg_rows(table.location) == []


STAMPS = [
    None,
    naive("1969-12-31T23:59:59.999999"),
    naive("1970-01-01T00:00:00"),
    naive("1960-06-15T12:00:00"),
    naive("2024-02-29T23:59:59"),
    naive("2024-12-31T23:00:00"),
    naive("2025-01-01T00:00:00"),
]


@pytest.mark.parametrize("transform", ["identity", "year", "month", "day", "hour", "bucket"])
@pytest.mark.parametrize("kind", ["timestamp_ntz", "timestamp", "date"])
def test_partitions_of_time_prune_rightly(tmp_path: Path, transform: str, kind: str) -> None:
    if (transform, kind) == ("hour", "date"):
        pytest.skip("Iceberg has no hours of dates")
    terms = {"identity": "t", "bucket": "bucket(5, t)"}
    table = make(tmp_path, f"t {kind}, n int", by=(terms.get(transform, f"{transform}(t)"),))
    values: list[Any] = [
        None if s is None else s.date() if kind == "date" else s.replace(tzinfo=_zone(kind))
        for s in STAMPS
    ]
    for value in values:  # a manifest each
        table.commit([{"t": value, "n": 1}])
    table.commit([{"t": v, "n": 2} for v in values])

    assert_readers_agree(table)
    for value in values[1:]:
        assert_filters_agree(table, "t", value)


def _zone(kind: str) -> dt.tzinfo | None:
    return UTC if kind == "timestamp" else None


def assert_filters_agree(table: Table, column: str, value: Any) -> None:
    """Equality, order and null tests, against Python's answer on our rows."""
    rows = complete(table, table.rows_at(table.ledger.commit_rows[-1].version))
    filled = [r for r in rows if r[column] is not None]
    literal = value.isoformat() if isinstance(value, dt.date) else value
    cases: list[tuple[BooleanExpression, Rows]] = [
        (where(column, "=", literal), [r for r in filled if r[column] == value]),
        (where(column, "!=", literal), [r for r in filled if r[column] != value]),
        (where(column, "<", literal), [r for r in filled if r[column] < value]),
        (where(column, ">=", literal), [r for r in filled if r[column] >= value]),
        (where(column, "is null"), [r for r in rows if r[column] is None]),
        (where(column, "is not null"), filled),
    ]
    for predicate, expected in cases:
        assert bag(pyiceberg_rows(table.location, predicate)) == bag(expected), predicate
    assert bag(polars_rows(table.metadata_path, where=pl.col(column) == value)) == bag(cases[0][1])
    assert bag(polars_rows(table.metadata_path, where=pl.col(column) < value)) == bag(cases[2][1])
    assert bag(polars_rows(table.metadata_path, where=pl.col(column).is_null())) == bag(cases[4][1])


@pytest.mark.parametrize("term", ["s", "truncate(1, s)", "truncate(3, s)", "bucket(16, s)"])
def test_partitions_of_awkward_text_prune_rightly(tmp_path: Path, term: str) -> None:
    table = make(tmp_path, "s string, n int", by=(term,))
    for text in AWKWARD:
        table.commit([{"s": text, "n": 1}])
    table.commit([{"s": text, "n": 2} for text in AWKWARD])

    assert_readers_agree(table)
    for text in AWKWARD[:-1]:
        assert_filters_agree(table, "s", text)
    found = pyiceberg_rows(table.location, where("s", "starts with", "1"))
    assert bag(found) == bag([{"s": "100%", "n": n} for n in (1, 2)])


@pytest.mark.parametrize(
    ("columns", "by", "values"),
    [
        ("v int", ("truncate(10, v)",), [-11, -10, -1, 0, 9, 10, None]),
        ("v long", ("bucket(3, v)", "truncate(7, v)"), [-(2**62), 0, 2**63 - 1, None]),
        ("v byte", ("v",), [-128, 0, 127, None]),
        ("v boolean", ("v",), [True, False, None]),
        ("v binary", ("truncate(2, v)",), [b"", b"\0\0\0", b"\xff\xff\xff", None]),
        ("v decimal(9,2)", ("truncate(50, v)",), [Decimal("-0.01"), Decimal("10.65"), None]),
        ("v decimal(9,2)", ("v", "bucket(7, v)"), [Decimal("-99.99"), Decimal("0.00"), None]),
        ("v fixed(2)", ("v", "bucket(4, v)"), [b"\0\0", b"\xff\xff", None]),
    ],
)
def test_partitions_of_other_types_prune_rightly(
    tmp_path: Path, columns: str, by: tuple[str, ...], values: list[Any]
) -> None:
    table = make(tmp_path, f"{columns}, n int", by=by)
    for value in values:
        table.commit([{"v": value, "n": 1}])
    table.commit([{"v": value, "n": 2} for value in values])

    assert_readers_agree(table)
    for value in values[:-1]:
        if value is True or value is False or columns == "v fixed(2)":
            found = pyiceberg_rows(table.location, where("v", "=", value))
            assert bag(found) == bag([{"v": value, "n": n} for n in (1, 2)])
        else:
            assert_filters_agree(table, "v", value)


@pytest.mark.parametrize("by", [(), ("v",)])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_nan_and_zeros_prune_rightly(tmp_path: Path, kind: str, by: tuple[str, ...]) -> None:
    values = [float("nan"), 0.0, -0.0, 1.5, float("-inf"), None]
    table = make(tmp_path, f"v {kind}, n int", by=by)
    for value in values:
        table.commit([{"v": value, "n": 1}])

    assert_readers_agree(table)
    assert len(pyiceberg_rows(table.location, where("v", "is nan"))) == 1
    assert len(pyiceberg_rows(table.location, where("v", "=", 0.0))) == 2
    assert len(pyiceberg_rows(table.location, where("v", "=", -0.0))) == 2
    assert len(pyiceberg_rows(table.location, where("v", "<", 0.0))) == 1


def test_bounds_of_columns_prune_rightly(tmp_path: Path) -> None:
    table = make(tmp_path, EVERY_TYPE)
    for n in range(2):
        table.commit([{"l": 0, **{name: values[n] for name, values in VALUES.items()}}])
    table.commit([{"l": 0}])

    for name, values in VALUES.items():
        if name in ("f", "d", "fx", "b"):
            continue  # nan, and types without an order in the readers
        for value in values:
            found = pyiceberg_rows(table.location, where(name, "=", _literal(value)))
            assert [r[name] for r in found] == [value]
    low, high = VALUES["i"]
    both = And(where("i", ">=", low + 1), where("i", "<", high))
    assert pyiceberg_rows(table.location, both) == []


def _literal(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date | dt.time) else value


@pytest.mark.parametrize("version", [2, 3])
def test_many_small_commits_with_removals_read_right_at_every_snapshot(
    tmp_path: Path, version: int
) -> None:
    table = make(tmp_path, "id long, g string", by=("g",), version=version)
    dice = random.Random(version)
    for number in range(250):
        live = [int(f.id) for f in table.ledger.files_at(table.ledger.commit_rows[-1].version)]
        gone = dice.sample(live, min(len(live), dice.choice((0, 0, 0, 1, 2))))
        rows = [{"id": number * 10 + n, "g": dice.choice("xyz")} for n in range(2)]
        table.commit(rows, remove=gone)

    assert len(table.ledger.live_manifests()) < 60
    snapshots = table.ledger.snapshots[-200:]
    for snapshot in [*dice.sample(snapshots, 6), snapshots[-1]]:
        expected = table.rows_at(snapshot.version)
        assert bag(pyiceberg_rows(table.location, snapshot_id=snapshot.id)) == bag(expected)
        found = read_snapshot(table.storage, table.ledger.location, snapshot_id=snapshot.id)
        assert {p: f.file for p, f in found.files.items()} == {
            f.file.path: f.file for f in table.ledger.files_at(snapshot.version)
        }
    assert bag(polars_rows(table.metadata_path, snapshots[0].id)) == bag(
        table.rows_at(snapshots[0].version)
    )
    assert bag(pyiceberg_rows(table.location, where("g", "=", "y"))) == bag(
        [r for r in table.rows_at(snapshots[-1].version) if r["g"] == "y"]
    )


def test_every_snapshot_can_be_travelled_to(tmp_path: Path) -> None:
    table = make(tmp_path, "id long")
    for number in range(12):
        table.commit([{"id": number}], remove=[number - 3] if number > 3 else [])

    for snapshot in table.ledger.snapshots:
        expected = bag(table.rows_at(snapshot.version))
        assert bag(pyiceberg_rows(table.location, snapshot_id=snapshot.id)) == expected
        assert bag(polars_rows(table.metadata_path, snapshot.id)) == expected


def test_peers_see_the_metadata_as_we_mean_it(tmp_path: Path) -> None:
    table = make(
        tmp_path,
        "id long, s string",
        by=("s",),
        key=("id",),
        sort=("s desc",),
        properties={"owner": "me"},
        comment="orders",
    )
    table.commit([{"id": 1, "s": "x"}])

    peer = StaticTable.from_metadata(table.location)

    assert peer.schema().identifier_field_names() == {"id"}
    assert str(peer.spec().fields[0].transform) == "identity"
    assert peer.sort_order().order_id == 1
    assert peer.properties["comment"] == "orders"
    assert peer.name_mapping() is not None
    assert [s.snapshot_id for s in peer.snapshots()] == [s.id for s in table.ledger.snapshots]
    entries = peer.inspect.entries().to_pylist()
    assert [(e["status"], e["sequence_number"]) for e in entries] == [(1, 1)]
    files = peer.inspect.files().to_pylist()
    assert files[0]["readable_metrics"]["id"]["lower_bound"] == 1
    manifests = peer.inspect.manifests().to_pylist()
    assert manifests[0]["partition_summaries"][0]["lower_bound"] == "x"
