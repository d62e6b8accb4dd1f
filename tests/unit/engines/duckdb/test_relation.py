"""Plans as relations: who reads which file, and that both readers give the same rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakebed.core.plan import Plan
from lakebed.engines.arrow.metadata import METADATA
from lakebed.model.binding import bind
from lakebed.model.expressions import Compare, IsNull, Operator
from lakebed.model.files import ColumnStats, DataFile
from lakebed.model.ids import FieldId, SchemaId, SpecId
from lakebed.model.schema import Schema
from lakebed.model.types import Field, FixedType, Primitive, StructType, Widening
from lakebed.sql.predicate import parse_predicate
from lakebed.storage.memory import MemoryStorage
from tests.interop.every_type import ICEBERG_ONLY, NANOSECONDS, NTZ, ROWS, SHARED, nested, top_level
from tests.unit.engines.duckdb.plans import Written, by_arrow, by_duckdb, local, routes

ALL_METADATA = tuple(METADATA)
EVERY = SHARED | NTZ | ICEBERG_ONLY | NANOSECONDS


def exact(table: pa.Table) -> list[str]:
    """Rows as text, in an order of their own: NaN equals itself there, zeros keep their sign."""
    plain = table.cast(pa.schema([pa.field(f.name, _numbers(f.type)) for f in table.schema]))
    return sorted(repr(row) for row in plain.to_pylist())


def _numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _numbers(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _numbers(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_numbers(kind.key_type), _numbers(kind.item_type))
    return kind


def type_of(field: pa.Field) -> str:
    """DuckDB has no bytes of a fixed length, and calls the item of a list by another name."""
    text = str(field.type).replace("fixed_size_binary[3]", "binary")
    return text.replace("list<l: ", "list<element: ")


def assert_same(table: Written, plan: Plan, metadata: tuple[str, ...] = ()) -> pa.Table:
    found = by_duckdb(table.storage, plan, metadata=metadata)
    assert exact(found) == exact(by_arrow(table.storage, plan, metadata))
    return found


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("make", [top_level, nested], ids=["plain", "nested"])
def test_every_type_keeps_its_extremes(tmp_path: Path, make: Any, in_memory: bool) -> None:
    columns = make(EVERY)
    text = ", ".join(f"`{name}` {kind}" for name, (kind, _) in columns.items())
    table = Written(MemoryStorage("types"), text) if in_memory else local(tmp_path, text)
    table.add([{name: v[n] for name, (_, v) in columns.items()} for n in range(ROWS)])

    found = assert_same(table, table.plan())

    for field in by_arrow(table.storage, table.plan()).schema:
        assert type_of(found.schema.field(field.name)) == type_of(field)


@pytest.mark.parametrize("where", ["c_float > 0.1", "c_uuid IS NOT NULL", "c_date < '2000-01-01'"])
def test_predicates_of_plans_are_applied(tmp_path: Path, where: str) -> None:
    columns = top_level(EVERY)
    table = local(tmp_path, ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items()))
    table.add([{name: v[n] for name, (_, v) in columns.items()} for n in range(ROWS)])
    predicate = bind(parse_predicate(where), table.schema)

    found = assert_same(table, table.plan(predicate=predicate, columns=("c_int", "c_string")))

    assert 0 < found.num_rows < ROWS


@pytest.mark.parametrize("kind", sorted(EVERY))
def test_every_value_equals_its_own_literal(tmp_path: Path, kind: str) -> None:
    table = local(tmp_path, f"c {kind}")
    table.add([{"c": value} for value in EVERY[kind]])
    is_null = bind(parse_predicate("c IS NULL"), table.schema)
    assert isinstance(is_null, IsNull)
    operators: tuple[Operator, ...] = ("=", "<", ">=")

    for value in EVERY[kind][2:]:
        for operator in operators:
            predicate = Compare(is_null.column, operator, value)
            assert_same(table, table.plan(predicate=predicate))


def test_metadata_tells_file_position_and_lineage(tmp_path: Path) -> None:
    table = local(tmp_path, "a int")
    for start in (0, 10, 20, 30):
        table.add([{"a": start + n} for n in range(10)])
    plan = table.plan(deleted={1: [3, 4], 3: [0]})

    found = assert_same(table, plan, ALL_METADATA)

    assert found.num_rows == 37
    last = found.filter(pc.equal(found["a"], 39)).to_pylist()[0]
    assert last == {
        "a": 39,
        "_file": 3,
        "_pos": 9,
        "_row_id": 3009,
        "_last_updated_sequence_number": 13,
    }


def test_stored_lineage_goes_before_that_of_the_position(tmp_path: Path) -> None:
    table = local(tmp_path, "a int")
    table.add([{"a": 1}])
    rewritten = pa.table(
        {
            "a": pa.array([2, 3], pa.int32()),
            "_row_id": pa.array([7, None], pa.int64()),
            "_last_updated_sequence_number": pa.array([None, 5], pa.int64()),
        }
    )
    pq.write_table(rewritten, tmp_path / "t" / "rewritten.parquet")
    stats = {FieldId(1): ColumnStats(2)}
    table.files.append(DataFile("rewritten.parquet", 100, 2, SpecId(0), (), stats))

    found = assert_same(table, table.plan(), ALL_METADATA)

    assert sorted(found["_row_id"].to_pylist()) == [0, 7, 1001]
    assert routes(table.storage, table.plan()) == {"duckdb"}


@pytest.mark.parametrize("name", ["file_row_number", "FILE_INDEX", "filename"])
def test_columns_with_the_names_of_virtual_ones_are_columns(tmp_path: Path, name: str) -> None:
    table = local(tmp_path, f"{name} long, a int")
    table.add([{name: 5 - n, "a": n} for n in range(5)])
    dropped = Schema(SchemaId(1), table.schema.fields[1:])

    for schema in (table.schema, dropped):
        found = assert_same(table, table.plan(schema=schema, deleted={0: [0, 3]}), ("_pos",))
        assert sorted(found["_pos"].to_pylist()) == [1, 2, 4]


def evolved(table: Written) -> Schema:
    """Renamed, swapped, dropped, added with and without default, widened."""
    a, b, _, w, f = table.schema.fields
    return Schema(
        SchemaId(1),
        (
            replace(a, name="b"),
            replace(b, name="a"),
            Field(FieldId(20), "gone", Primitive("string"), False, None, "col_20"),
            replace(
                w,
                type=Primitive("long"),
                widened=(Widening("", Primitive("int"), Primitive("long")),),
            ),
            replace(f, name="f f"),
            Field(FieldId(21), "n", Primitive("int"), False, None, "n", 7, 7),
            Field(FieldId(22), "x", FixedType(2), True, None, "x", b"\x00'", b"\x00'"),
        ),
    )


def test_evolved_columns_are_read_by_duckdb(tmp_path: Path) -> None:
    table = local(tmp_path, "a int, b int, gone int, w int, f float")
    table.add([{"a": n, "b": -n, "gone": 1, "w": n, "f": n / 10} for n in range(5)])
    table.schema = evolved(table)
    table.add(
        [
            {"b": 1, "a": 2, "gone": "g", "w": 2**40, "f f": 0.5, "n": None, "x": b"ab"},
            {"b": 3, "a": 4, "gone": None, "w": -(2**40), "f f": 1.5, "n": 1, "x": b"cd"},
        ]
    )
    plan = table.plan(deleted={0: [1], 1: [0]})

    found = assert_same(table, plan, ALL_METADATA)

    assert found.num_rows == 5
    assert routes(table.storage, table.plan()) == {"duckdb"}
    predicate = bind(parse_predicate("w > 2 AND n = 7"), table.schema)
    narrow = table.plan(predicate=predicate, columns=("f f",), deleted={0: [4]})
    assert assert_same(table, narrow).num_rows == 1


def test_nested_changes_are_read_by_us_and_the_other_files_by_duckdb(tmp_path: Path) -> None:
    table = local(tmp_path, "s struct<x: int, y: int>, l list<struct<e: int>>")
    table.add([{"s": {"x": 1, "y": 2}, "l": [{"e": 1}, None]}, {"s": None, "l": None}])
    s, items = table.schema.fields
    assert isinstance(s.type, StructType)
    member = Field(FieldId(30), "z", Primitive("string"), False, None, "z")
    grown = replace(s, type=StructType((*s.type.fields, member)))
    table.schema = Schema(SchemaId(1), (grown, items))
    table.add([{"s": {"x": 3, "y": 4, "z": "z"}, "l": []}])

    assert_same(table, table.plan(deleted={0: [1]}), ALL_METADATA)
    assert routes(table.storage, table.plan()) == {"duckdb", "arrow"}
    x, y, z = grown.type.fields  # type: ignore[union-attr]
    swapped = replace(grown, type=StructType((replace(x, name="y"), replace(y, name="x"), z)))
    crossed = table.plan(schema=Schema(SchemaId(2), (swapped, items)))
    assert_same(table, crossed)
    assert routes(table.storage, crossed) == {"arrow"}


def test_a_dropped_member_does_not_come_back(tmp_path: Path) -> None:
    table = local(tmp_path, "s struct<x: int, y: int>")
    table.add([{"s": {"x": 1, "y": 2}}])
    (s,) = table.schema.fields
    assert isinstance(s.type, StructType)
    one = Schema(SchemaId(1), (replace(s, type=StructType(s.type.fields[:1])),))

    assert assert_same(table, table.plan(schema=one)).to_pylist() == [{"s": {"x": 1}}]


def test_folders_of_partitions_add_no_columns(tmp_path: Path) -> None:
    table = local(tmp_path, "k string, a int")
    table.add([{"k": "x", "a": 1}])
    file = table.files[0]
    moved = tmp_path / "t" / "k=other" / "b=7"
    moved.mkdir(parents=True)
    (tmp_path / "t" / file.path).rename(moved / "f.parquet")
    table.files = [replace(file, path="k=other/b=7/f.parquet")]

    assert by_duckdb(table.storage, table.plan()).to_pylist() == [{"k": "x", "a": 1}]
    assert routes(table.storage, table.plan()) == {"duckdb"}


@pytest.mark.parametrize("name", ["a*.parquet", "a?.parquet", "[a].parquet", "it's.parquet"])
def test_awkward_file_names_name_one_file(tmp_path: Path, name: str) -> None:
    table = local(tmp_path, "a int")
    table.add([{"a": 1}])
    table.add([{"a": 2}])
    first, second = (tmp_path / "t" / file.path for file in table.files)
    first.rename(first.parent / name)
    second.rename(second.parent / "aa.parquet")
    table.files = [replace(table.files[0], path=f"{Path(table.files[0].path).parent}/{name}")]

    assert by_duckdb(table.storage, table.plan()).to_pylist() == [{"a": 1}]


def test_files_with_other_types_than_the_table_are_cast(tmp_path: Path) -> None:
    table = local(tmp_path, "t timestamp, n long")
    (tmp_path / "t").mkdir()
    stats = {FieldId(1): ColumnStats(1), FieldId(2): ColumnStats(1)}
    for number, unit in enumerate(("us", "ms")):
        moment = pa.array([1_000], pa.timestamp(unit))
        foreign = pa.table({"t": moment, "n": pa.array([number], pa.int64())})
        pq.write_table(foreign, tmp_path / "t" / f"{number}.parquet")
        table.files.append(DataFile(f"{number}.parquet", 1, 1, SpecId(0), (), stats))

    found = assert_same(table, table.plan())

    assert found.schema.field("t").type == pa.timestamp("us", "UTC")
    assert sorted(found["t"].cast(pa.int64()).to_pylist()) == [1_000, 1_000_000]


def test_a_plan_without_files_has_columns_and_no_rows(tmp_path: Path) -> None:
    table = local(tmp_path, "a int, u uuid, l list<decimal(5,2)>")

    found = by_duckdb(table.storage, table.plan(), metadata=ALL_METADATA)

    assert found.num_rows == 0
    assert found.schema.types[:3] == by_arrow(table.storage, table.plan()).schema.types
    assert found.column_names == ["a", "u", "l", *ALL_METADATA]


@pytest.mark.parametrize("in_memory", [False, True])
def test_rows_without_columns_are_counted(tmp_path: Path, in_memory: bool) -> None:
    table = Written(MemoryStorage("n"), "a int") if in_memory else local(tmp_path, "a int")
    table.add([{"a": n} for n in range(10)])
    plan = table.plan(columns=(), deleted={0: [1]})

    counted = by_duckdb(table.storage, plan, "SELECT count(*) AS n FROM t")

    assert counted.to_pylist() == [{"n": 9}]


@pytest.mark.parametrize(
    "where", ["a > 3", "a IN (1, 2, NULL)", "a NOT IN (1, 2)", "_pos >= 4", "f > 1", "NOT f < 1"]
)
def test_filters_handed_to_our_reader_keep_exactly_their_rows(where: str) -> None:
    table = Written(MemoryStorage("f"), "a int, f double")
    nan, numbers = float("nan"), [1, None, 5, 2, 9, 0]
    floats = [0.5, nan, 2.0, None, nan, 1.0]
    table.add([{"a": n, "f": f} for n, f in zip(numbers, floats, strict=True)])
    plan = table.plan(deleted={0: [4]})
    everything = by_duckdb(table.storage, plan, metadata=("_pos",))

    found = by_duckdb(table.storage, plan, f"SELECT f, _pos FROM t WHERE {where}", ("_pos",))

    again = duckdb.from_arrow(everything).filter(where).project("f, _pos").to_arrow_table()
    assert exact(found) == exact(again)
