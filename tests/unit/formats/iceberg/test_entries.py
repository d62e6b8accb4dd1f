"""Rows as manifest entries: statistics, bounds, summaries, sequence numbers and row ids."""

from dataclasses import replace

import pytest

from lakebed.formats.iceberg.entries import (
    Content,
    Shape,
    Written,
    data_file,
    list_entry,
    manifest_entries,
    record_of,
    shape_of,
    summarise,
)
from lakebed.formats.iceberg.manifest_files import ADDED, DELETED, EXISTING
from lakebed.model.errors import PublishError
from lakebed.model.files import ColumnStats, DataFile, LiveFile
from lakebed.model.history import DATA, Snapshot
from lakebed.model.ids import FieldId, FileId, SchemaId, SnapshotId, SpecId, Version
from lakebed.model.partitioning import PartitionSpec, parse_spec
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.types import Primitive, Scalar, Stored

SNAPSHOT = Snapshot(SnapshotId(70), Version(7), 0, 8, None, 0, "append", {}, 0, 500, 10)
SCHEMA = new_schema(parse_schema("i int, d double, u uuid, s string"))


def shape(version: int = 2, by: tuple[str, ...] = (), schema: Schema = SCHEMA) -> Shape:
    return shape_of(schema, (schema,), (parse_spec(by, schema),), version, "/lake/ns/t")


def live(
    file_id: int = 1,
    *,
    partition: tuple[Stored | None, ...] = (),
    stats: dict[int, ColumnStats] | None = None,
    snapshot_id: int = 70,
    sequence_number: int = 8,
    row_id: int | None = None,
) -> LiveFile:
    columns = {FieldId(i): s for i, s in (stats or {}).items()}
    file = DataFile(f"data/{file_id}.parquet", 99, 10, SpecId(0), partition, columns)
    return LiveFile(
        FileId(file_id),
        file,
        Version(7),
        None,
        sequence_number,
        SnapshotId(snapshot_id),
        row_id,
    )


def test_statistics_become_maps_by_field_id() -> None:
    stats = {1: ColumnStats(10, 2, None, 77, -1, 300), 2: ColumnStats(10, None, 3, None, 0.5, 2.0)}

    found = data_file(shape(), live(stats=stats))

    assert found.file_path == "/lake/ns/t/data/1.parquet"
    assert found.column_sizes == {1: 77}
    assert found.value_counts == {1: 10, 2: 10}
    assert found.null_value_counts == {1: 2}
    assert found.nan_value_counts == {2: 3}
    assert (found.lower_bounds or {})[1] == b"\xff\xff\xff\xff"
    assert (found.upper_bounds or {})[1] == b"\x2c\x01\x00\x00"


def test_no_bounds_are_given_where_readers_would_be_misled() -> None:
    uuid_bound, nan = b"\x80" + bytes(15), float("nan")
    stats = {
        2: ColumnStats(10, 0, 0, None, nan, nan),
        3: ColumnStats(10, 0, None, None, uuid_bound),
    }

    found = data_file(shape(), live(stats=stats))

    assert (found.lower_bounds, found.upper_bounds) == (None, None)


def test_statistics_of_dropped_columns_are_left_out() -> None:
    found = data_file(shape(), live(stats={9: ColumnStats(10, 0, None, 5, 1, 2)}))

    assert (found.value_counts, found.lower_bounds) == (None, None)


def test_new_files_inherit_and_old_ones_say_their_numbers() -> None:
    content = Content(
        DATA,
        0,
        1,
        9,
        kept=[live(4, snapshot_id=30, sequence_number=3)],
        added=[live(9), live(1, snapshot_id=10, sequence_number=1)],
        removed=[live(2, snapshot_id=20, sequence_number=2)],
    )

    found = manifest_entries(shape(), SNAPSHOT, content)

    assert [
        (e.status, e.snapshot_id, e.sequence_number, e.file_sequence_number) for e in found
    ] == [
        (ADDED, 70, 1, None),  # came back
        (DELETED, 70, 2, 2),
        (EXISTING, 30, 3, 3),
        (ADDED, 70, None, None),
    ]


def test_row_ids_are_those_of_the_rows() -> None:
    content = Content(
        DATA, 0, 1, 9, kept=[live(4, row_id=40, snapshot_id=3)], added=[live(9, row_id=500)]
    )

    entries = manifest_entries(shape(3), SNAPSHOT, content)
    record = record_of(shape(3), SNAPSHOT, content, Written(1, "m.avro", 5, ""))

    assert [e.file.first_row_id for e in entries] == [40, 500]
    assert record.first_row_id == 500
    assert list_entry(shape(3), record).first_row_id == 500
    assert [e.file.first_row_id for e in manifest_entries(shape(2), SNAPSHOT, content)] == [
        None
    ] * 2


def test_a_v3_file_without_row_ids_is_refused() -> None:
    with pytest.raises(PublishError, match="row ids"):
        data_file(shape(3), live())


def test_a_record_counts_files_and_rows() -> None:
    content = Content(
        DATA,
        0,
        1,
        9,
        kept=[live(4, sequence_number=3), live(5, sequence_number=2)],
        added=[live(9)],
        removed=[live(2, sequence_number=1)],
    )

    record = record_of(shape(), SNAPSHOT, content, Written(1, "m.avro", 5, ""))

    assert record.counts == (1, 2, 1, 10, 20, 10)
    assert record.min_sequence_number == 2  # of live files
    assert record.sequence_number == 8


@pytest.mark.parametrize(
    ("kind", "values", "summary"),
    [
        (Primitive("int"), [3, None, -2], (True, False, "feffffff", "03000000")),
        (Primitive("string"), ["b", "a", ""], (False, False, "", "62")),
        (Primitive("int"), [None], (True, False, None, None)),
        (Primitive("float"), [float("nan"), 0.0], (False, True, "00000080", "00000000")),
        (Primitive("double"), [float("nan")], (False, True, None, None)),
    ],
)
def test_partitions_are_summarised(
    kind: Scalar, values: list[Stored | None], summary: tuple[object, ...]
) -> None:
    files = [live(partition=(value,)) for value in values]

    assert summarise((kind,), files) == (summary,)


def test_partitions_by_uuid_are_not_summarised() -> None:
    by_uuid = shape(by=("u", "i"))
    content = Content(DATA, 0, 1, 1, added=[live(partition=(bytes(16), 1))])

    record = record_of(by_uuid, SNAPSHOT, content, Written(1, "m.avro", 5, ""))

    assert record.partitions == ()
    assert list_entry(by_uuid, record).partitions is None
    assert list_entry(shape(), replace(record, partitions=())).partitions == ()


def test_a_spec_whose_column_was_dropped_keeps_its_type() -> None:
    before = new_schema(parse_schema("i int, s string"))
    after = Schema(SchemaId(1), before.fields[1:])
    by_i = parse_spec(("i",), before)
    specs = (by_i, PartitionSpec(SpecId(1)))

    found = shape_of(after, (before,), specs, 2, "/t")

    assert found.specs[0].partition_type == (("i", 1000, "int"),)
