"""What was written is read back, under later schemas too; damage and loss are named."""

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from lakebed.core.plan import Plan
from lakebed.engines.arrow import read as read_module
from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.read import read, read_schema
from lakebed.engines.arrow.types import to_arrow
from lakebed.engines.arrow.write import WriteOptions, write
from lakebed.model.errors import DataCorrupt, ObjectMissing
from lakebed.model.expressions import Column, Compare, Constant, IsNull, Predicate
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.ids import FieldId, FileId, SchemaId, SnapshotId, SpecId, Version
from lakebed.model.schema import Schema, assign_ids, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.types import Field, ListType, MapType, Primitive, StructType
from lakebed.model.vectors import Positions
from lakebed.storage.local import LocalStorage
from lakebed.storage.memory import MemoryStorage
from tests.unit.engines.arrow.strategies import tables


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage("test")


def schema_of(text: str) -> Schema:
    return new_schema(parse_schema(text))


def plan_of(
    schema: Schema,
    files: list[DataFile],
    columns: tuple[str, ...] | None = None,
    predicate: Predicate | None = None,
) -> Plan:
    names = tuple(f.name for f in schema.fields) if columns is None else columns
    live = tuple(
        LiveFile(FileId(n), f, Version(0), None, 1, SnapshotId(1), None)
        for n, f in enumerate(files)
    )
    return Plan("t", Version(0), schema, names, predicate, live, 0)


def without(plan: Plan, *positions: list[int]) -> Plan:
    """The plan with these positions deleted, one list per file."""
    return replace(plan, deleted={FileId(n): Positions(p) for n, p in enumerate(positions)})


def written(storage: Any, schema: Schema, rows: Any, **options: Any) -> list[DataFile]:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, to_arrow(schema))
    return write(
        table.to_batches(),
        storage=storage,
        root="t",
        schema=schema,
        options=WriteOptions(**options),
        name_prefix="f",
    )


def result(storage: Any, plan: Plan, **more: Any) -> pa.Table:
    schema = read_schema(plan, more.get("metadata", ()))
    return pa.Table.from_batches(read(plan, storage, **more), schema)


def column(schema: Schema, *path: str) -> Column:
    field = schema.find(path)
    assert field is not None
    kind = field.type if isinstance(field.type, Primitive) else None
    return Column(path, field.id, kind)


@settings(max_examples=80, deadline=None)
@given(tables())
def test_what_was_written_is_read_back(case: tuple[Schema, pa.Table]) -> None:
    schema, table = case
    storage = MemoryStorage("round-trip")
    files = write(
        conform(table.to_batches(), schema),
        storage=storage,
        root="t",
        schema=schema,
        options=WriteOptions(row_group_rows=8),
        name_prefix="f",
    )

    back = result(storage, plan_of(schema, files), batch_rows=5)

    back.validate(full=True)
    assert back.schema == table.schema
    assert same(back) == same(table)


def same(table: pa.Table) -> list[str]:
    """Rows as text: NaN equals itself there, and zeros keep their sign."""
    return [repr(row) for row in table.cast(_without_clocks(table.schema)).to_pylist()]


def _without_clocks(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(f.name, _numbers(f.type)) for f in schema])


def _numbers(kind: pa.DataType) -> pa.DataType:
    """Nanoseconds have no Python type of their own."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _numbers(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _numbers(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_numbers(kind.key_type), _numbers(kind.item_type))
    return kind


def test_years_1_and_9999_and_before_1970_survive(storage: MemoryStorage) -> None:
    schema = schema_of("d date, t timestamp, n timestamp_ntz")
    edges = [(-719_162, -62_135_596_800_000_000), (2_932_896, 253_402_300_799_999_999), (-1, -1)]
    rows = [{"d": d, "t": t, "n": t} for d, t in edges]
    files = written(storage, schema, rows)

    back = result(storage, plan_of(schema, files))

    assert back["d"].cast(pa.int32()).to_pylist() == [d for d, _ in edges]
    assert back["t"].cast(pa.int64()).to_pylist() == [t for _, t in edges]
    assert back["n"].cast(pa.int64()).to_pylist() == [t for _, t in edges]


def test_maps_of_uuids_that_are_all_null_survive(storage: MemoryStorage) -> None:
    schema = schema_of("m map<uuid, boolean>, l list<uuid>")
    rows = [{"m": None, "l": None}, {"m": [(b"x" * 16, None)], "l": [b"y" * 16, None]}]

    for row in rows:
        files = write(
            [pa.RecordBatch.from_pylist([row], to_arrow(schema))],
            storage=storage,
            root="t",
            schema=schema,
            name_prefix=f"f{rows.index(row)}",
        )
        assert result(storage, plan_of(schema, files)).to_pylist() == [row]


def test_columns_come_in_the_order_asked_for(storage: MemoryStorage) -> None:
    schema = schema_of("a int, b string, c int")
    files = written(storage, schema, [{"a": 1, "b": "x", "c": 3}])

    back = result(storage, plan_of(schema, files, ("c", "a")))

    assert back.schema.names == ["c", "a"]
    assert back.to_pylist() == [{"c": 3, "a": 1}]


def test_no_columns_still_count_rows(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    files = written(storage, schema, [{"a": n} for n in range(10)], row_group_rows=3)
    some = Compare(column(schema, "a"), ">=", 4)

    def count(predicate: Predicate | None) -> int:
        plan = plan_of(schema, files, (), predicate)
        return sum(batch.num_rows for batch in read(plan, storage, batch_rows=4))

    assert count(None) == 10
    assert count(some) == 6
    assert count(Constant(True)) == 10
    assert count(Constant(None)) == 0


def test_a_predicate_may_look_at_columns_nobody_asked_for(storage: MemoryStorage) -> None:
    schema = schema_of("a int, s struct<x int>")
    files = written(storage, schema, [{"a": n, "s": {"x": -n}} for n in range(5)])

    plan = plan_of(schema, files, ("a",), Compare(column(schema, "s", "x"), "<", -2))

    assert result(storage, plan).to_pylist() == [{"a": 3}, {"a": 4}]


def test_rows_with_an_unknown_answer_are_left_out(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    files = written(storage, schema, [{"a": 1}, {"a": None}])

    assert (
        result(storage, plan_of(schema, files, None, Compare(column(schema, "a"), ">", 0))).num_rows
        == 1
    )
    assert result(storage, plan_of(schema, files, None, IsNull(column(schema, "a")))).num_rows == 1


def test_row_groups_that_cannot_match_are_not_read(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = schema_of("a int")
    files = written(storage, schema, [{"a": n} for n in range(100)], row_group_rows=10)
    seen: list[int] = []
    inner = read_module._converted

    def counted(batch: pa.RecordBatch, needed: Schema) -> pa.RecordBatch:
        seen.append(batch.num_rows)
        return inner(batch, needed)

    monkeypatch.setattr(read_module, "_converted", counted)

    back = result(storage, plan_of(schema, files, None, Compare(column(schema, "a"), "=", 55)))

    assert back["a"].to_pylist() == [55]
    assert sum(seen) == 10


def test_row_groups_all_of_whose_rows_are_deleted_are_not_read(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = schema_of("a int")
    files = written(storage, schema, [{"a": n} for n in range(100)], row_group_rows=10)
    seen: list[int] = []
    inner = read_module._converted

    def counted(batch: pa.RecordBatch, needed: Schema) -> pa.RecordBatch:
        seen.append(batch.num_rows)
        return inner(batch, needed)

    monkeypatch.setattr(read_module, "_converted", counted)
    plan = without(plan_of(schema, files), [n for n in range(100) if n not in (29, 30, 99)])

    back = result(storage, plan, metadata=("_pos",))

    assert back["a"].to_pylist() == back["_pos"].to_pylist() == [29, 30, 99]
    assert sum(seen) == 30


def test_nan_rows_are_found_although_bounds_leave_them_out(storage: MemoryStorage) -> None:
    schema = schema_of("a double")
    files = written(storage, schema, [{"a": 1.0}, {"a": math.nan}])

    back = result(storage, plan_of(schema, files, None, Compare(column(schema, "a"), ">", 5.0)))

    assert back.num_rows == 1


def test_columns_added_later_are_null(storage: MemoryStorage) -> None:
    old = schema_of("a int, s struct<x int>")
    files = written(storage, old, [{"a": 1, "s": {"x": 1}}, {"a": 2, "s": None}])
    struct = old.fields[1]
    assert isinstance(struct.type, StructType)
    inner = Field(FieldId(5), "y", Primitive("string"), False, None, "y")
    added = Field(FieldId(4), "b", Primitive("date"), False, None, "b")
    new = Schema(
        SchemaId(1),
        (old.fields[0], replace(struct, type=StructType((inner, *struct.type.fields))), added),
    )

    back = result(storage, plan_of(new, files))

    assert back.to_pylist() == [
        {"a": 1, "s": {"y": None, "x": 1}, "b": None},
        {"a": 2, "s": None, "b": None},
    ]
    only_new = result(storage, plan_of(new, files, ("b",)))
    assert only_new["b"].to_pylist() == [None, None]


def test_names_follow_the_physical_ones_even_when_exchanged(storage: MemoryStorage) -> None:
    old = schema_of(
        "a int, b int, l list<struct<x int, y int>>, m map<string, struct<x int, y int>>"
    )
    pair = {"x": 1, "y": 2}
    files = written(storage, old, [{"a": 1, "b": 2, "l": [pair, None], "m": [("k", pair)]}])
    swap = {"a": "b", "b": "a", "x": "y", "y": "x"}
    new = Schema(SchemaId(1), tuple(_renamed(f, swap) for f in old.fields))

    back = result(storage, plan_of(new, files))

    assert back.to_pylist() == [
        {
            "b": 1,
            "a": 2,
            "l": [{"y": 1, "x": 2}, None],
            "m": [("k", {"y": 1, "x": 2})],
        }
    ]


def _renamed(field: Field, names: dict[str, str]) -> Field:
    kind = field.type
    if isinstance(kind, StructType):
        kind = StructType(tuple(_renamed(f, names) for f in kind.fields))
    elif isinstance(kind, ListType):
        kind = replace(kind, element=_renamed(Field(FieldId(0), "", kind.element), names).type)
    elif isinstance(kind, MapType):
        kind = replace(kind, value=_renamed(Field(FieldId(0), "", kind.value), names).type)
    return replace(field, name=names.get(field.name, field.name), type=kind)


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("byte", "long", -128),
        ("int", "long", 2**31 - 1),
        ("float", "double", 0.5),
        ("decimal(5,2)", "decimal(38,2)", None),
        ("list<int>", "list<long>", [1, None]),
        ("map<int, float>", "map<long, double>", [(1, 0.5)]),
    ],
)
def test_widened_columns_are_cast(storage: MemoryStorage, old: str, new: str, value: Any) -> None:
    files = written(storage, schema_of(f"c {old}"), [{"c": value}])

    back = result(storage, plan_of(schema_of(f"c {new}"), files))

    assert back["c"].to_pylist() == [value]


def test_a_missing_file_is_named_with_a_way_out(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    (file,) = written(storage, schema, [{"a": 1}])
    storage.delete(f"t/{file.path}")

    with pytest.raises(ObjectMissing) as caught:
        result(storage, plan_of(schema, [file]))

    assert caught.value.context["path"] == file.path
    assert "lakebed check" in caught.value.hint


@pytest.mark.parametrize("keep", [0, 3, 20, -1])
def test_a_truncated_file_is_named(storage: MemoryStorage, keep: int) -> None:
    schema = schema_of("a int")
    (file,) = written(storage, schema, [{"a": n} for n in range(100)])
    storage.replace(f"t/{file.path}", storage.get(f"t/{file.path}")[:keep])

    with pytest.raises(DataCorrupt) as caught:
        result(storage, plan_of(schema, [file]))

    assert file.path in caught.value.message


def test_a_flipped_bit_in_the_values_is_found(tmp_path: Path) -> None:
    schema = schema_of("a long")
    storage = LocalStorage(tmp_path)
    (file,) = written(storage, schema, [{"a": n} for n in range(500)], codec="none")
    path = tmp_path / "t" / file.path
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)

    with pytest.raises(DataCorrupt):
        result(storage, plan_of(schema, [file]))


def test_a_file_of_another_shape_is_refused(storage: MemoryStorage) -> None:
    (file,) = written(storage, schema_of("a string"), [{"a": "x"}])

    with pytest.raises(DataCorrupt, match="where the table has int"):
        result(storage, plan_of(schema_of("a int"), [file]))
    with pytest.raises(DataCorrupt, match="required"):
        result(storage, plan_of(schema_of("a string, b int not null"), [file]))


def test_files_of_other_writers_are_read(storage: MemoryStorage) -> None:
    schema = schema_of("t timestamp, s string, l list<int>, d date")
    table = pa.table(
        {
            "t": pa.array([1_000_000], pa.timestamp("us")),
            "s": pa.array(["x"]).dictionary_encode(),
            "l": pa.array([[1]], pa.large_list(pa.int32())),
            "d": pa.array([1], pa.date32()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True)
    storage.put_if_absent("t/foreign.parquet", sink.getvalue())
    file = DataFile("foreign.parquet", len(sink.getvalue()), 1, SpecId(0), (), {})

    back = result(storage, plan_of(schema, [file]))

    assert back["t"].cast(pa.int64()).to_pylist() == [1_000_000]
    assert back.drop_columns("t").to_pylist()[0]["l"] == [1]


def test_files_are_read_one_after_the_other(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    files = written(
        storage,
        schema,
        [{"a": n} for n in range(1000)],
        row_group_rows=100,
        target_file_size_bytes=100,
    )
    assert len(files) == 10
    storage.delete(f"t/{files[1].path}")

    batches = read(plan_of(schema, files), storage)

    assert next(batches).num_rows == 100
    with pytest.raises(ObjectMissing):
        next(batches)


def test_new_ids_are_needed_for_a_name_added_again(storage: MemoryStorage) -> None:
    old = schema_of("a int, b int")
    files = written(storage, old, [{"a": 1, "b": 2}])
    (again,), _ = assign_ids(
        (Field(FieldId(0), "b", Primitive("string")),),
        last_column_id=2,
        taken=frozenset({"a", "b"}),
    )

    back = result(storage, plan_of(Schema(SchemaId(1), (old.fields[0], again)), files))

    assert back.to_pylist() == [{"a": 1, "b": None}]


@pytest.mark.parametrize("batch_rows", [1, 3, 4, 7, 100])
def test_deleted_rows_are_left_out_whatever_the_batches(
    storage: MemoryStorage, batch_rows: int
) -> None:
    schema = schema_of("a int")
    files = written(storage, schema, [{"a": n} for n in range(20)], row_group_rows=6)
    gone = [0, 5, 6, 7, 13, 19]

    back = result(storage, without(plan_of(schema, files), gone), batch_rows=batch_rows)

    assert back["a"].to_pylist() == [n for n in range(20) if n not in gone]


def test_positions_stay_right_when_row_groups_are_skipped(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    values = [9, 9, 1, 1, 9, 9, 1, 1, 1, 1]
    files = written(storage, schema, [{"a": a} for a in values], row_group_rows=2)
    plan = plan_of(schema, files, ("a",), Compare(column(schema, "a"), "<", 5))

    back = result(storage, without(plan, [3, 4, 8]), metadata=("_pos",), batch_rows=3)

    assert back["_pos"].to_pylist() == [2, 6, 7, 9]


def test_deleted_rows_do_not_count_when_no_column_is_read(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    files = written(storage, schema, [{"a": n} for n in range(10)])
    plan = without(plan_of(schema, files, ()), [2, 3])

    assert sum(batch.num_rows for batch in read(plan, storage)) == 8


def test_a_file_all_of_whose_rows_are_deleted_gives_none(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    files = written(storage, schema, [{"a": n} for n in range(10)])

    assert list(read(without(plan_of(schema, files), list(range(10))), storage)) == []


def test_rows_know_their_file_and_their_place_in_it(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    files = [
        *written(storage, schema, [{"a": n} for n in range(3)]),
        *write(
            [pa.RecordBatch.from_pylist([{"a": 7}, {"a": 8}], to_arrow(schema))],
            storage=storage,
            root="t",
            schema=schema,
            name_prefix="g",
        ),
    ]
    plan = without(plan_of(schema, files, ()), [1], [0])

    back = result(storage, plan, metadata=("_pos", "_file"))

    assert back.schema == pa.schema({"_pos": pa.int64(), "_file": pa.int32()})
    assert back.to_pylist() == [
        {"_pos": 0, "_file": 0},
        {"_pos": 2, "_file": 0},
        {"_pos": 1, "_file": 1},
    ]


LINEAGE = ("_row_id", "_last_updated_sequence_number")


def test_row_ids_count_on_from_the_first_of_the_file(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    files = written(storage, schema, [{"a": n} for n in range(3)])
    plan = plan_of(schema, files, ("a",))
    numbered = replace(plan.files[0], first_row_id=100, sequence_number=7)
    numbered_plan = without(replace(plan, files=(numbered,)), [1])

    back = result(storage, numbered_plan, metadata=LINEAGE)

    assert back["_row_id"].to_pylist() == [100, 102]
    assert back["_last_updated_sequence_number"].to_pylist() == [7, 7]
    assert result(storage, plan, metadata=LINEAGE)["_row_id"].to_pylist() == [None] * 3


def test_stored_lineage_goes_before_that_of_the_position(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    table = pa.table(
        {
            "a": pa.array([1, 2, 3], pa.int32()),
            "_row_id": pa.array([5, None, 6], pa.int64()),
            "_last_updated_sequence_number": pa.array([1, 2, None], pa.int64()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=1)
    storage.put_if_absent("t/rewritten.parquet", sink.getvalue())
    file = DataFile("rewritten.parquet", len(sink.getvalue()), 3, SpecId(0), (), {})
    plan = plan_of(schema, [file])
    plan = replace(plan, files=(replace(plan.files[0], first_row_id=40, sequence_number=9),))

    back = result(storage, plan, metadata=LINEAGE)

    assert back.to_pylist() == [
        {"a": 1, "_row_id": 5, "_last_updated_sequence_number": 1},
        {"a": 2, "_row_id": 41, "_last_updated_sequence_number": 2},
        {"a": 3, "_row_id": 6, "_last_updated_sequence_number": 9},
    ]
