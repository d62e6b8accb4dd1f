"""Data files: rolling, partitions, ids and codecs in the file, nothing left after a failure."""

import gc
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.engines.arrow import write as write_module
from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.types import to_arrow
from lakebed.engines.arrow.write import WriteOptions, write, write_changes
from lakebed.model.errors import InvalidSetting, SchemaMismatch, StorageError, StorageFull
from lakebed.model.files import DataFile
from lakebed.model.partitioning import parse_sort_order, parse_spec
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.storage.base import Output
from lakebed.storage.local import LocalStorage
from lakebed.storage.memory import MemoryStorage

PREFIX = "0123abcd"


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage("test")


def schema_of(text: str) -> Schema:
    return new_schema(parse_schema(text))


def written(storage: MemoryStorage, schema: Schema, rows: Any, **more: Any) -> list[DataFile]:
    batches = rows if not isinstance(rows, list) else [_batch(schema, rows)]
    return write(batches, storage=storage, root="t", schema=schema, name_prefix=PREFIX, **more)


def _batch(schema: Schema, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, to_arrow(schema))


def parquet(storage: MemoryStorage, file: DataFile) -> pq.ParquetFile:
    return pq.ParquetFile(storage.open_input(f"t/{file.path}"))


def paths(storage: MemoryStorage) -> list[str]:
    return [stat.path for stat in storage.list("")]


def test_no_rows_make_no_file(storage: MemoryStorage) -> None:
    schema = schema_of("a int")

    assert written(storage, schema, []) == []
    assert written(storage, schema, iter(())) == []
    assert paths(storage) == []


def test_a_file_has_a_path_a_size_and_a_count(storage: MemoryStorage) -> None:
    (file,) = written(storage, schema_of("a int"), [{"a": 1}, {"a": 2}])

    assert file.path == f"data/{PREFIX}-00000.parquet"
    assert (file.record_count, file.partition, file.spec_id) == (2, (), 0)
    assert file.size_bytes == len(storage.get(f"t/{file.path}"))
    assert file.split_offsets == (4,)


def test_field_ids_stand_in_the_file_at_every_level(storage: MemoryStorage) -> None:
    text = "a int, s struct<x int, y list<struct<z string>>>, m map<string, list<int>>"
    schema = schema_of(text)

    (file,) = written(storage, schema, [{"a": 1, "s": None, "m": None}])

    shown = str(parquet(storage, file).schema)
    assert all(f"field_id={field.id} {field.physical}" in shown for field in schema.walk())


def test_files_have_no_arrow_schema_and_no_local_quirks(storage: MemoryStorage) -> None:
    schema = schema_of("t timestamp, n timestamp_ntz, d decimal(9,2), u uuid, b byte")

    (file,) = written(storage, schema, [{"t": 0, "n": 0, "d": None, "u": None, "b": 1}])

    footer = parquet(storage, file).metadata
    shown = str(footer.schema)
    assert b"ARROW:schema" not in (footer.metadata or {})
    assert "int64 field_id=1 t (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds" in shown
    assert "int64 field_id=2 n (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds" in shown
    assert "int32 field_id=3 d (Decimal(precision=9, scale=2))" in shown
    assert "field_id=4 u (UUID)" in shown


@pytest.mark.parametrize(
    ("codec", "expected"),
    [
        ("zstd", "ZSTD"),
        ("snappy", "SNAPPY"),
        ("gzip", "GZIP"),
        ("lz4", "LZ4"),
        ("none", "UNCOMPRESSED"),
    ],
)
def test_the_codec_asked_for_is_used(storage: MemoryStorage, codec: str, expected: str) -> None:
    (file,) = written(
        storage, schema_of("a string"), [{"a": "x" * 1000}], options=WriteOptions(codec=codec)
    )

    assert parquet(storage, file).metadata.row_group(0).column(0).compression == expected


def test_a_higher_level_makes_smaller_files(storage: MemoryStorage) -> None:
    rows = [{"a": f"{i * i} {i}"} for i in range(20_000)]
    schema = schema_of("a string")

    sizes = [
        write(
            [_batch(schema, rows)],
            storage=storage,
            root="t",
            schema=schema,
            name_prefix=f"l{level}",
            options=WriteOptions(level=level),
        )[0].size_bytes
        for level in (1, 19)
    ]

    assert sizes[1] < sizes[0]


def test_a_level_that_the_codec_does_not_have_is_refused(storage: MemoryStorage) -> None:
    with pytest.raises(InvalidSetting):
        written(storage, schema_of("a int"), [{"a": 1}], options=WriteOptions("gzip", 15))

    assert paths(storage) == []


def test_only_larger_files_use_dictionaries(storage: MemoryStorage) -> None:
    schema = schema_of("a string")

    (tiny,) = written(storage, schema, [{"a": "x"}])
    (larger,) = write(
        [_batch(schema, [{"a": "x"}] * 2000)],
        storage=storage,
        root="t",
        schema=schema,
        name_prefix="larger",
    )

    assert not parquet(storage, tiny).metadata.row_group(0).column(0).has_dictionary_page
    assert parquet(storage, larger).metadata.row_group(0).column(0).has_dictionary_page


def test_files_roll_at_the_target_size(storage: MemoryStorage) -> None:
    schema = schema_of("a long")
    batches = (pa.record_batch({"a": range(i * 1000, i * 1000 + 1000)}) for i in range(50))
    options = WriteOptions(codec="none", target_file_size_bytes=40_000)

    files = written(storage, schema, batches, options=options)

    assert [f.path[-13:-8] for f in files] == [f"{n:05d}" for n in range(len(files))]
    assert len(files) > 5
    assert all(f.size_bytes < 80_000 for f in files)
    values = [v for f in files for v in parquet(storage, f).read()["a"].to_pylist()]
    assert values == list(range(50_000))


def test_row_groups_have_at_most_the_rows_asked_for(storage: MemoryStorage) -> None:
    batches = [pa.record_batch({"a": range(250)}) for _ in range(3)]

    (file,) = written(
        storage, schema_of("a long"), iter(batches), options=WriteOptions(row_group_rows=100)
    )

    footer = parquet(storage, file).metadata
    sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
    assert sizes == [100] * 7 + [50]
    assert len(file.split_offsets) == 8


def test_each_partition_has_its_folder_and_keeps_its_columns(storage: MemoryStorage) -> None:
    schema = schema_of("id int, region string, d date")
    spec = parse_spec(("region", "month(d)"), schema)
    rows = [{"id": i, "region": r, "d": d} for i, (r, d) in enumerate([("a/b", 0), (None, 40)])]

    files = written(storage, schema, rows, spec=spec)

    assert [f.path for f in files] == [
        f"data/region_a_b-09c779526277464a/d_month=1970-01/{PREFIX}-00000.parquet",
        f"data/region=__HIVE_DEFAULT_PARTITION__/d_month=1970-02/{PREFIX}-00001.parquet",
    ]
    assert [f.partition for f in files] == [("a/b", 0), (None, 1)]
    assert parquet(storage, files[0]).read()["region"].to_pylist() == ["a/b"]


@pytest.mark.parametrize("value", ["a/b", "..", "", "ü", "%2e%2e", "x" * 300, "\n", "a/../b"])
def test_awkward_partition_values_are_written_and_stay_below_the_root(
    tmp_path: Path, value: str
) -> None:
    schema = schema_of("region string")
    spec = parse_spec(("region",), schema)

    (file,) = write(
        [_batch(schema, [{"region": value}])],
        storage=LocalStorage(tmp_path),
        root="t",
        schema=schema,
        spec=spec,
        name_prefix=PREFIX,
    )

    assert file.partition == (value,)
    (found,) = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert found == tmp_path / "t" / file.path


def test_nan_partitions_meet_in_one_file(storage: MemoryStorage) -> None:
    schema = schema_of("x double")
    batches = [pa.record_batch({"x": [math.nan, 1.0]}) for _ in range(3)]

    files = written(storage, schema, iter(batches), spec=parse_spec(("x",), schema))

    assert sorted(f.record_count for f in files) == [3, 3]


def test_many_partitions_make_one_file_each_while_memory_lasts(storage: MemoryStorage) -> None:
    schema = schema_of("x int")
    batches = [pa.record_batch({"x": pa.array(range(200), pa.int32())}) for _ in range(3)]

    files = written(storage, schema, iter(batches), spec=parse_spec(("x",), schema))

    assert len(files) == 200
    assert {f.record_count for f in files} == {3}


def test_beyond_the_most_open_files_the_least_recently_used_is_closed(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_module, "MOST_OPEN_FILES", 4)
    schema = schema_of("x int")
    opened = Counting(storage)
    batches = [pa.record_batch({"x": pa.array(range(20), pa.int32())}) for _ in range(2)]

    files = write(
        batches,
        storage=opened,
        root="t",
        schema=schema,
        spec=parse_spec(("x",), schema),
        options=WriteOptions(row_group_rows=1),
        name_prefix=PREFIX,
    )

    assert opened.most_open == 4
    assert sum(f.record_count for f in files) == 40


def test_rows_that_wait_are_written_when_memory_is_short(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_module, "_BUFFER_BYTES", 100_000)
    schema = schema_of("x int")
    writing = write_module._Writing(
        write_module._Target(
            storage,
            "t",
            schema,
            parse_spec(("x",), schema),
            parse_sort_order((), schema),
            WriteOptions(),
            PREFIX,
        )
    )

    waiting = []
    for _ in range(20):
        writing.add(pa.record_batch({"x": pa.array(range(10), pa.int32())}))
        waiting.append(writing._waiting_bytes)
    writing.finish()

    assert max(waiting) <= 100_000
    assert sum(f.record_count for f in writing.files) == 200


def test_rows_are_sorted_within_a_row_group(storage: MemoryStorage) -> None:
    schema = schema_of("x double, y string")
    order = parse_sort_order(("x desc", "y asc nulls last"), schema)
    rows = [
        {"x": 1.0, "y": "b"},
        {"x": None, "y": "c"},
        {"x": 1.0, "y": None},
        {"x": math.nan, "y": "d"},
        {"x": 1.0, "y": "a"},
        {"x": 2.0, "y": "e"},
    ]

    (file,) = written(storage, schema, rows, sort_order=order)

    assert parquet(storage, file).read()["y"].to_pylist() == ["d", "e", "a", "b", None, "c"]
    assert file.sort_order_id == 1


def test_a_file_of_several_row_groups_does_not_claim_to_be_sorted(storage: MemoryStorage) -> None:
    schema = schema_of("x int")
    order = parse_sort_order(("x",), schema)
    rows = [{"x": x} for x in (3, 1, 2, 0)]
    options = WriteOptions(row_group_rows=2)

    (file,) = written(storage, schema, rows, sort_order=order, options=options)

    assert parquet(storage, file).read()["x"].to_pylist() == [1, 3, 0, 2]
    assert file.sort_order_id == 0


def test_a_wrong_value_in_row_1000000_is_named_and_leaves_no_file(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    schema = schema_of("a byte")

    def source() -> Iterator[pa.RecordBatch]:
        good = pa.record_batch({"a": pa.array([1] * 100_000, pa.int64())})
        yield from [good] * 9
        yield pa.record_batch({"a": pa.array([1] * 99_999 + [1000], pa.int64())})

    with pytest.raises(SchemaMismatch, match="row 1000000: 1000"):
        write(
            conform(source(), schema),
            storage=storage,
            root="t",
            schema=schema,
            options=WriteOptions(target_file_size_bytes=20_000, row_group_rows=50_000),
            name_prefix=PREFIX,
        )

    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_full_disk_leaves_nothing_and_is_reported_as_it_was(storage: MemoryStorage) -> None:
    schema = schema_of("a long")
    batches = (pa.record_batch({"a": range(i * 1000, i * 1000 + 1000)}) for i in range(50))

    with pytest.raises(StorageFull):
        write(
            batches,
            storage=Filling(storage, 100_000),
            root="t",
            schema=schema,
            options=WriteOptions(codec="none", target_file_size_bytes=20_000),
            name_prefix=PREFIX,
        )

    gc.collect()
    assert paths(storage) == []


def test_a_taken_path_is_refused_and_the_other_file_stays(storage: MemoryStorage) -> None:
    schema = schema_of("a int")
    (file,) = written(storage, schema, [{"a": 1}])

    with pytest.raises(StorageError):
        written(storage, schema, [{"a": 2}])

    assert parquet(storage, file).read()["a"].to_pylist() == [1]


def test_a_stream_is_written_while_few_batches_are_alive(storage: MemoryStorage) -> None:
    schema = schema_of("a long")
    before = pa.total_allocated_bytes()
    most = 0

    def source() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for _ in range(200):
            most = max(most, pa.total_allocated_bytes() - before)
            yield pa.record_batch({"a": pa.repeat(1, 10_000)})

    written(storage, schema, source(), options=WriteOptions(row_group_rows=50_000))

    assert 0 < most < 20 * 80_000


def test_structs_with_required_members_may_be_null(storage: MemoryStorage) -> None:
    schema = schema_of("s struct<x: int not null, y: struct<z: string not null> not null>")
    rows = [{"s": {"x": 1, "y": {"z": "a"}}}, {"s": None}]
    loose = pa.RecordBatch.from_pylist(rows)

    (file,) = written(
        storage, schema, conform([loose, pa.record_batch({"s": pa.nulls(1)})], schema)
    )

    assert parquet(storage, file).read().to_pylist() == [*rows, {"s": None}]


class Counting:
    """Storage that remembers how many outputs were open at once."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage
        self._open: list[Output] = []
        self.most_open = 0

    def open_output(self, path: str) -> Output:
        output = self._storage.open_output(path)
        self._open = [*(o for o in self._open if not o.closed), output]
        self.most_open = max(self.most_open, len(self._open))
        return output

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


class Filling:
    """Storage with room for so many bytes."""

    def __init__(self, storage: MemoryStorage, room_bytes: int) -> None:
        self._storage = storage
        self.room_bytes = room_bytes

    def open_output(self, path: str) -> Any:
        return FillingOutput(self, self._storage.open_output(path))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


class FillingOutput:
    def __init__(self, disk: Filling, output: Output) -> None:
        self._disk = disk
        self._output = output

    def write(self, data: Any) -> int:
        self._disk.room_bytes -= len(data)
        if self._disk.room_bytes < 0:
            raise StorageFull("no space left", hint="free some")
        return self._output.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)


def test_columns_with_nan_go_without_statistics_and_keep_their_counts(
    storage: MemoryStorage,
) -> None:
    schema = schema_of("x double, s struct<y: float>, l list<double>, n long")
    plain = {"x": 1.0, "s": {"y": 2.0}, "l": [1.0], "n": 1}
    nan = {"x": math.nan, "s": {"y": math.nan}, "l": [math.nan, None], "n": 2}
    empty = {"x": None, "s": None, "l": None, "n": None}
    options = WriteOptions(row_group_rows=2)

    first, second = written(storage, schema, [plain, plain, nan, empty], options=options)

    described = []
    for file in (first, second):
        group = parquet(storage, file).metadata.row_group(0)
        described.append(
            {group.column(i).path_in_schema: group.column(i).is_stats_set for i in range(4)}
        )
    assert all(described[0].values())
    assert described[1] == {"x": False, "s.y": False, "l.list.element": False, "n": True}
    x, y = schema.fields[0].id, schema.find(("s", "y"))
    assert y is not None
    for stats in (second.stats[x], second.stats[y.id]):
        assert (stats.nan_count, stats.null_count, stats.lower, stats.upper) == (1, 1, None, None)
    assert [f.record_count for f in (first, second)] == [2, 2]


def test_changes_lie_in_one_folder_and_end_with_what_happened(storage: MemoryStorage) -> None:
    schema = schema_of("id long, p string")
    spec = parse_spec(("p",), schema)
    batch = pa.record_batch(
        {"id": [1, 2, 3], "p": ["a b", "c", "a b"], "_change_type": ["insert", "delete", "delete"]}
    )
    place: dict[str, Any] = {"storage": storage, "root": "t", "schema": schema, "spec": spec}

    files = write_changes([batch], options=WriteOptions(), folder="_c/1", **place)
    (empty,) = write_changes([], options=WriteOptions(), folder="_c/2", **place)

    found = {f.partition: pq.read_table(storage.open_input(f"t/{f.path}")) for f in files}
    assert [f.path for f in files] == ["_c/1/cdc-00000.parquet", "_c/1/cdc-00001.parquet"]
    assert found["a b",].to_pylist() == [
        {"id": 1, "p": "a b", "_change_type": "insert"},
        {"id": 3, "p": "a b", "_change_type": "delete"},
    ]
    assert (empty.path, empty.record_count, empty.partition) == (
        "_c/2/cdc-00000.parquet",
        0,
        (None,),
    )
    assert pq.read_schema(storage.open_input(f"t/{empty.path}")).names == batch.schema.names
