"""deltalake and Polars read what we publish: our rows, or they refuse a feature by name."""

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaProtocolError

from lakebed.formats.delta.log import LAST_CHECKPOINT, commit_path
from lakebed.formats.delta.read import read_snapshot
from lakebed.model.ids import Version
from lakebed.storage.local import LocalStorage
from tests.unit.formats.delta.real_files import Row, write_file
from tests.unit.formats.delta.rows import ROOT, T0, FakeLedger, delta, first_state, schema_of

Read = Callable[[str, int | None], list[Row]]


def read_arrow(path: str, version: int | None) -> list[Row]:
    rows: list[Row] = DeltaTable(path, version=version).to_pyarrow_table().to_pylist()
    return rows


def read_query(path: str, version: int | None) -> list[Row]:
    return query(path, "SELECT * FROM t", version)


def read_polars(path: str, version: int | None) -> list[Row]:
    return [pairs(row) for row in pl.scan_delta(path, version=version).collect().to_dicts()]


READERS: dict[str, Read] = {"arrow": read_arrow, "query": read_query, "polars": read_polars}


def query(path: str, sql: str, version: int | None = None) -> list[Row]:
    table = DeltaTable(path, version=version)
    found: list[Row] = pa.table(QueryBuilder().register("t", table).execute(sql)).to_pylist()
    return found


def pairs(row: Row) -> Row:
    """Polars gives a map (only `o` is one) as a dict, Arrow as pairs."""
    return row | {"o": list(row["o"].items())} if isinstance(row.get("o"), dict) else row


class Published:
    """A table on disk with its rows per version, published to Delta as they come."""

    def __init__(self, folder: Path, schema: str, by: tuple[str, ...] = (), **more: Any) -> None:
        self.storage = LocalStorage(folder)
        self.ledger = FakeLedger(first_state(schema_of(schema), by, **more))
        self.path = str(folder / ROOT)
        self.rows: dict[str, list[Row]] = {}
        self.versions: list[list[Row]] = []
        self.oldest = 0
        self.commit("create")

    def append(self, *files: Sequence[Row]) -> "Published":
        return self.commit("append", files)

    def commit(
        self, operation: str, files: Sequence[Sequence[Row]] = (), **changes: Any
    ) -> "Published":
        gone = changes.pop("remove", ())
        state = self.ledger.state(self.ledger.head().state_id)
        written = [
            write_file(self.storage, state, f"{len(self.versions)}-{n}.parquet", rows)
            for n, rows in enumerate(files)
        ]
        self.ledger.commit(operation, add=written, remove=gone, **changes)
        self.rows |= {f.path: list(rows) for f, rows in zip(written, files, strict=True)}
        for path in gone:
            del self.rows[path]
        self.versions.append(sorted(chain(*self.rows.values()), key=by_id))
        self.ledger.drain(delta(self.storage))
        return self

    def check(self, *readers: str) -> None:
        for version in (None, *range(self.oldest, len(self.versions))):
            expected = self.versions[-1 if version is None else version]
            for reader in readers or READERS:
                found = sorted(READERS[reader](self.path, version), key=by_id)
                assert found == expected, (reader, version)


def by_id(row: Row) -> int:
    return int(row["id"])


EVERY_TYPE = """id long not null, a byte, b short, c int, e float, f double, g decimal(20,4),
    h date, i timestamp, j timestamp_ntz, k string, l binary, m boolean, n list<int>,
    o map<string, struct<x: int>>, p struct<y: string, z: struct<w: long>>,
    q list<struct<r: string not null>> not null"""


def every_type(number: int) -> Row:
    moment = datetime(2024, 1, 1, 0, 0, 0, 123456) + timedelta(days=number)  # noqa: DTZ001 - ntz
    return {
        "id": number,
        "a": number,
        "b": -number,
        "c": number * 1000,
        "e": number + 0.5,
        "f": number + 0.1,
        "g": Decimal("1234567890123456.7891") + number,
        "h": date(2024, 1, 1) + timedelta(number),
        "i": moment.replace(tzinfo=UTC),
        "j": moment,
        "k": "x" * 31 + chr(97 + number) + " cut off in the bounds",
        "l": bytes([number]),
        "m": number % 2 == 0,
        "n": [number, None],
        "o": [("k", {"x": number})],
        "p": {"y": f"y{number}", "z": {"w": number}},
        "q": [{"r": "s"}],
    }


def nothing_but(number: int) -> Row:
    return {**dict.fromkeys("abcefghijklmnop"), "id": number, "q": []}


def test_every_type_comes_back_at_every_version(tmp_path: Path) -> None:
    table = Published(tmp_path, EVERY_TYPE)

    table.append([every_type(0), every_type(1)]).append([every_type(2), nothing_but(3)])

    table.check()


def test_an_empty_table_is_empty_and_has_its_columns(tmp_path: Path) -> None:
    table = Published(tmp_path, EVERY_TYPE)

    table.check()

    assert DeltaTable(table.path).to_pyarrow_table().column_names == list(every_type(0))


PARTITIONS: dict[str, tuple[Any, ...]] = {
    "string": (
        "a b/ü%=",
        "x",
        None,
        "1",
        "true",
        "2024-01-01",
        "a=b",
        "%41",
        "+",
        "#?&",
        "a:b",
        "日",
    ),
    "int": (1, -5, None),
    "long": (2**60, None),
    "date": (date(2024, 1, 2), date(1, 1, 1), None),
    "boolean": (True, False, None),
    "decimal(20,4)": (Decimal("1.5000"), Decimal("1234567890123456.7891"), None),
    "timestamp": (
        datetime(2024, 1, 2, 3, 4, 5, 678901, UTC),
        datetime(1960, 1, 1, tzinfo=UTC),
        None,
    ),
    "timestamp_ntz": (datetime(2024, 1, 2, 3, 4, 5, 678901), None),  # noqa: DTZ001 - it has no zone
}


@pytest.mark.parametrize("kind", PARTITIONS)
def test_partitions_come_back_and_filter_right(tmp_path: Path, kind: str) -> None:
    values = PARTITIONS[kind]
    table = Published(tmp_path, f"id long, p {kind}, v string", ("p",))

    table.append(*([{"id": n, "p": value, "v": "v"}] for n, value in enumerate(values)))

    table.check()
    for number, value in enumerate(values):
        assert filtered_arrow(table.path, "p", "==", value) == [number]
        assert filtered_polars(table.path, "p", "==", value) == [number]
        assert filtered_query(table.path, "p", "==", value, kind) == [number]


def test_negative_decimal_partitions_are_refused_by_deltalakes_arrow_reader(tmp_path: Path) -> None:
    table = Published(tmp_path, "id long, p decimal(9,2)", ("p",))

    table.append([{"id": 0, "p": Decimal("-0.50")}])

    table.check("query", "polars")
    with pytest.raises(pa.ArrowInvalid, match="not a valid decimal"):
        read_arrow(table.path, None)


def test_a_table_that_is_no_longer_shown_partitioned_keeps_its_rows(tmp_path: Path) -> None:
    table = Published(tmp_path, "id long, p string", ("p",))
    table.append([{"id": 0, "p": "x"}], [{"id": 1, "p": None}])

    table.commit("append", [[{"id": 2, "p": ""}]], delta_partitioned=False)

    assert DeltaTable(table.path).metadata().partition_columns == []
    table.check()
    for number, value in enumerate(["x", None, ""]):
        assert filtered_arrow(table.path, "p", "==", value) == [number]
        assert filtered_polars(table.path, "p", "==", value) == [number]
        assert filtered_query(table.path, "p", "==", value, "string") == [number]


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}


def filtered_arrow(path: str, column: str, operator: str, value: Any) -> list[int]:
    dataset = DeltaTable(path).to_pyarrow_dataset()
    field, kind = pc.field(column), dataset.schema.field(column).type
    test = field.is_null() if value is None else OPERATORS[operator](field, pa.scalar(value, kind))
    return sorted(dataset.to_table(filter=test)["id"].to_pylist())


def filtered_polars(path: str, column: str, operator: str, value: Any) -> list[int]:
    field = pl.col(column)
    test = field.is_null() if value is None else OPERATORS[operator](field, pl.lit(value))
    return sorted(pl.scan_delta(path).filter(test).collect()["id"].to_list())


def filtered_query(path: str, column: str, operator: str, value: Any, kind: str) -> list[int]:
    sign = {"==": "="}.get(operator, operator)
    test = "IS NULL" if value is None else f"{sign} {literal(value, kind)}"
    return sorted(by_id(row) for row in query(path, f"SELECT id FROM t WHERE {column} {test}"))


SQL_TYPES = {"byte": "tinyint", "long": "bigint", "float": "real", "string": "text"}


def literal(value: Any, kind: str) -> str:
    name = kind.partition("(")[0]
    if name == "binary":
        return f"X'{value.hex()}'"
    text = str(value).replace("'", "''")
    if name in ("date", "timestamp", "timestamp_ntz"):
        return f"{name.removesuffix('_ntz')} '{text}'"
    return f"CAST('{text}' AS {SQL_TYPES.get(kind, kind)})"


def float32(value: float) -> float:
    return float(pa.scalar(value, pa.float32()).as_py())


NTZ_MORNING = datetime(2024, 1, 1)  # noqa: DTZ001 - it has no zone
# Files of one column; the values sit at the edges of statistics.
EDGES: dict[str, list[list[Any]]] = {
    "boolean": [[True, False], [False, False], [None, None], [True, None]],
    "binary": [[b"a", b"\xff" * 50], [b"", None]],
    "byte": [[127, -128], [0, None]],
    "long": [[2**63 - 1, -(2**63)], [0, None]],
    "float": [[1.0, 2.5], [math.inf, 7.0], [float32(0.1), None]],
    "double": [[1.0, 2.0], [math.inf, 7.0], [-math.inf, 0.0], [-0.0, None], [1e308, -1e-308]],
    "decimal(38,10)": [
        [Decimal("1234567890123456789012345678.0123456789"), Decimal("-1.0000000000")],
        [Decimal("9999999999999999999999999999.9999999999"), None],
    ],
    "date": [[date(9999, 12, 31), date(1, 1, 1)], [date(2024, 1, 1), None]],
    "timestamp": [
        [(NTZ_MORNING + timedelta(microseconds=n)).replace(tzinfo=UTC) for n in (1, 999)],
        [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), None],
        [datetime(2024, 1, 1, tzinfo=UTC)],
    ],
    "timestamp_ntz": [
        [NTZ_MORNING + timedelta(microseconds=n) for n in (1, 999)],
        [NTZ_MORNING, None],
    ],
    "string": [
        ["\U0010ffff" * 40, "a"],
        ["x" * 40, "x" * 31 + "y"],
        ["", None],
        ["é" * 33, "日" * 9],
    ],
}


@pytest.mark.parametrize("kind", EDGES)
def test_filters_find_every_row_at_the_edges_of_statistics(tmp_path: Path, kind: str) -> None:
    table = Published(tmp_path, f"id long, x {kind}")
    files = numbered(EDGES[kind])
    rows = list(chain(*files))

    table.append(*files).check()

    for value in dict.fromkeys(row["x"] for row in rows):
        for operator, compare in OPERATORS.items():
            expected = [r["id"] for r in rows if matches(r["x"], compare, value)]
            assert filtered_arrow(table.path, "x", operator, value) == expected
            assert filtered_polars(table.path, "x", operator, value) == expected
            assert filtered_query(table.path, "x", operator, value, kind) == expected


def numbered(files: list[list[Any]]) -> list[list[Row]]:
    rows = [[{"id": 0, "x": value} for value in file] for file in files]
    for number, row in enumerate(chain(*rows)):
        row["id"] = number
    return rows


def matches(found: Any, compare: Callable[[Any, Any], Any], value: Any) -> bool:
    if value is None or found is None:
        return value is None and found is None
    return bool(compare(found, value))


def test_far_dates_of_timestamps_are_found(tmp_path: Path) -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    table = Published(tmp_path, "id long, x timestamp")

    table.append([{"id": 0, "x": first}, {"id": 1, "x": last}], [{"id": 2, "x": None}])

    table.check("polars", "query")
    for number, value in enumerate((first, last, None)):
        assert filtered_arrow(table.path, "x", "==", value) == [number]
        assert filtered_polars(table.path, "x", "==", value) == [number]


def test_nan_hides_no_row_from_filters(tmp_path: Path) -> None:
    table = Published(tmp_path, "id long, x double")

    table.append(*numbered([[1.0, 2.0], [math.nan, 5.0], [math.nan], [None, 3.0]]))

    # To Polars NaN is the greatest number, to Arrow it compares with nothing.
    assert filtered_polars(table.path, "x", ">=", 5.0) == [2, 3, 4]
    assert filtered_arrow(table.path, "x", ">=", 5.0) == [3]
    assert filtered_query(table.path, "x", "==", 5.0, "double") == [3]
    assert filtered_arrow(table.path, "x", "==", 2.0) == [1]


def test_nested_statistics_prune_right(tmp_path: Path) -> None:
    table = Published(tmp_path, "id long, s struct<a: struct<b: int>>")
    files = [[{"id": n, "s": {"a": {"b": n}}}] for n in range(3)]

    table.append(*files, [{"id": 3, "s": None}]).check()

    member = pl.col("s").struct.field("a").struct.field("b")
    assert pl.scan_delta(table.path).filter(member == 1).collect()["id"].to_list() == [1]
    assert query(table.path, "SELECT id FROM t WHERE s['a']['b'] = 1") == [{"id": 1}]


def test_extremes_are_those_of_the_rows_not_of_cut_bounds(tmp_path: Path) -> None:
    table = Published(tmp_path, EVERY_TYPE)
    table.append([every_type(0)], [every_type(1)])

    (found,) = query(table.path, "SELECT max(k) k, max(i) i, max(j) j, max(g) g, count(k) n FROM t")

    last = every_type(1)
    assert found == {name: last[name] for name in "kijg"} | {"n": 2}


AWKWARD = "id long, `a b` string, `größe` double, st struct<`x y`: int>, l list<struct<`c,d`: int>>"


def test_mapped_columns_are_read_by_name_or_refused(tmp_path: Path) -> None:
    table = Published(tmp_path, AWKWARD, ("a b",))
    full = {"id": 0, "a b": "x y", "größe": 1.5, "st": {"x y": 3}, "l": [{"c,d": 1}]}

    table.append([full], [{"id": 1, "a b": None, "größe": None, "st": None, "l": None}])

    table.check("query")
    for test in ('"größe" > 1', "\"a b\" = 'x y'", "st['x y'] = 3"):
        assert query(table.path, f"SELECT id FROM t WHERE {test}") == [{"id": 0}]
    for read in (read_arrow, read_polars):
        with pytest.raises(DeltaProtocolError, match="columnMapping"):
            read(table.path, None)


def test_a_renamed_column_keeps_its_values_under_the_new_name(tmp_path: Path) -> None:
    table = Published(tmp_path, "id long, old string")
    table.append([{"id": 0, "old": "x"}])
    schema = schema_of("id long, new string")
    renamed = replace(schema, fields=(schema.fields[0], replace(schema.fields[1], physical="old")))

    table.commit("alter", schema=renamed, delta_mapping=True)

    assert read_query(table.path, None) == [{"id": 0, "new": "x"}]
    for version in (0, 1):
        assert read_query(table.path, version) == table.versions[version]
    table.append([{"id": 1, "new": "y"}])
    assert query(table.path, "SELECT id FROM t WHERE new = 'y'") == [{"id": 1}]


def test_an_added_column_is_null_in_older_files(tmp_path: Path) -> None:
    table = with_added_column(tmp_path)

    expected = [{"id": 0, "c": None}, {"id": 1, "c": "x"}, {"id": 2, "c": None}]
    for read in READERS.values():
        assert sorted(read(table.path, None), key=by_id) == expected
    assert filtered_polars(table.path, "c", "==", None) == [0, 2]
    assert filtered_query(table.path, "c", "==", None, "string") == [0, 2]
    assert filtered_arrow(table.path, "c", "==", "x") == [1]


@pytest.mark.xfail(
    reason="never: deltalake 1.6.6 takes missing statistics for 'no row' in Arrow datasets, also"
    " in tables of its own after add_columns"
)
def test_deltalakes_arrow_dataset_finds_the_nulls_of_an_added_column(tmp_path: Path) -> None:
    assert filtered_arrow(with_added_column(tmp_path).path, "c", "==", None) == [0, 2]


def with_added_column(folder: Path) -> Published:
    table = Published(folder, "id long")
    table.append([{"id": 0}])
    table.commit("alter", schema=schema_of("id long, c string"), last_column_id=2)
    return table.append([{"id": 1, "c": "x"}, {"id": 2, "c": None}])


def test_removes_checkpoints_and_time_travel_agree(tmp_path: Path) -> None:
    table = with_history(tmp_path)

    table.check()

    snapshot = read_snapshot(table.storage, ROOT)
    assert {(tmp_path / ROOT / path).stat().st_size for path in snapshot.files} == {
        add.size_bytes for add in snapshot.files.values()
    }
    for version in range(len(table.versions)):
        delta_table = DeltaTable(table.path)
        delta_table.load_as_version(datetime.fromtimestamp(T0 / 1000 + version, UTC))
        assert delta_table.version() == version


def with_history(folder: Path) -> Published:
    """Appends, removals, an overwrite and a file that comes back, over two checkpoints."""
    table = Published(folder, "id long, v string")
    for number in range(22):
        gone = [p for p in table.rows if number % 4 == 3][:2]
        table.commit("overwrite", [[{"id": number, "v": f"v{number}"}]], remove=gone)
    return table


def test_a_checkpoint_stands_for_the_commits_before_it(tmp_path: Path) -> None:
    table = with_history(tmp_path / "whole")
    copy = shutil.copytree(table.path, tmp_path / "copy")
    for version in map(Version, range(20)):
        (copy / commit_path(version)).unlink()
    table.path, table.oldest = str(copy), 20

    table.check()

    (copy / LAST_CHECKPOINT).unlink()
    table.check()


def test_partitions_and_awkward_paths_survive_a_checkpoint(tmp_path: Path) -> None:
    table = Published(tmp_path, "id long, p string, t timestamp", ("p", "t"))
    moment = datetime(2024, 1, 2, 3, 4, 5, 678901, UTC)
    values = [("a b/ü%=", moment), (None, None), ("%41", moment)]
    table.append(*([{"id": n, "p": p, "t": t}] for n, (p, t) in enumerate(values)))

    publish_checkpoint(table)

    table.check()


def test_mapped_columns_survive_a_checkpoint(tmp_path: Path) -> None:
    table = Published(tmp_path, AWKWARD, ("a b",))
    table.append([{"id": 0, "a b": "x y", "größe": 1.5, "st": {"x y": 3}, "l": [{"c,d": 1}]}])

    publish_checkpoint(table)

    table.check("query")


def publish_checkpoint(table: Published) -> None:
    """At the newest version, and without the commits that readers could use instead."""
    newest = Version(len(table.versions) - 1)
    delta(table.storage).publish(table.ledger, table.ledger.view(newest), "checkpoint")
    for version in map(Version, range(newest)):
        (Path(table.path) / commit_path(version)).unlink()
    table.oldest = newest


def test_delta_turned_on_late_shows_the_rows_of_then_and_later(tmp_path: Path) -> None:
    table = Published(tmp_path, "id long", formats=())
    table.append([{"id": 0}]).append([{"id": 1}])

    table.commit("alter", formats=("delta",))
    table.append([{"id": 2}])

    table.oldest = 3
    table.check()
