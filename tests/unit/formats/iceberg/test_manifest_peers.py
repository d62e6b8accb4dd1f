"""Manifests and lists: pyiceberg reads ours, we read those of pyiceberg, and broken ones."""

import dataclasses
import io
import random
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyiceberg import manifest as peer
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField as PeerPartitionField
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, NestedField, StringType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from lakebed.formats.iceberg.manifest_files import (
    ADDED,
    ManifestListEntry,
    PartitionSummary,
    decode_manifest,
    decode_manifest_list,
)
from lakebed.formats.iceberg.manifest_schemas import (
    PartitionField,
    manifest_list_schema,
    manifest_schema,
)
from lakebed.model.errors import DataCorrupt, UnsupportedFeature
from lakebed.model.history import DATA
from tests.unit.formats.iceberg.manifest_values import (
    FULL,
    SNAPSHOT,
    SUMMARIES,
    SYNC,
    by_fastavro,
    data_file,
    encoded,
    encoded_list,
    entry,
    list_entry,
)

PEER_SCHEMA = Schema(
    NestedField(1, "id", IntegerType(), required=True), NestedField(2, "name", StringType())
)
PEER_SPEC = PartitionSpec(
    PeerPartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="name"),
    spec_id=3,
)
NAME_PARTITION: list[PartitionField] = [("name", 1000, "string")]


@pytest.mark.parametrize("version", [2, 3])
def test_pyiceberg_reads_our_list_and_manifest(tmp_path: Path, version: int) -> None:
    io_ = PyArrowFileIO()
    manifest_path, list_path = tmp_path / f"m{version}.avro", tmp_path / "list.avro"
    file = dataclasses.replace(FULL, partition=("Ann",), referenced_data_file=None)
    data = encoded([entry(file)], version, NAME_PARTITION)
    manifest_path.write_bytes(data)
    summary = PartitionSummary(False, False, b"Ann", b"Ann")
    one = list_entry(
        manifest_path=str(manifest_path),
        manifest_length=len(data),
        partitions=(summary,),
        first_row_id=9 if version == 3 else None,
    )
    list_path.write_bytes(encoded_list([one], version))

    [found] = peer.read_manifest_list(io_.new_input(str(list_path)))
    [read] = found.fetch_manifest_entry(io_)

    assert (found.manifest_path, found.manifest_length) == (str(manifest_path), len(data))
    assert (found.sequence_number, found.min_sequence_number) == (5, 2)
    assert (found.added_files_count, found.deleted_rows_count) == (1, 2**40)
    assert found.partitions is not None
    assert (found.partitions[0].lower_bound, found.partitions[0].contains_null) == (b"Ann", False)
    assert (read.status, read.snapshot_id, read.sequence_number) == (ADDED, SNAPSHOT, 5)
    assert read.data_file.partition[0] == "Ann"
    for name in ("content", "file_path", "record_count", "file_size_in_bytes", "column_sizes",
                 "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds",
                 "upper_bounds", "sort_order_id", "key_metadata"):  # fmt: skip
        assert getattr(read.data_file, name) == getattr(file, name), name
    assert read.data_file.split_offsets == [4, 70_000_000]
    assert read.data_file.equality_ids == [1, 2]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_we_read_what_pyiceberg_writes(tmp_path: Path, codec: Any) -> None:
    io_ = PyArrowFileIO()
    manifest_path, list_path = tmp_path / "m.avro", tmp_path / "list.avro"
    file = peer.DataFile.from_args(
        content=peer.DataFileContent.DATA,
        file_path="s3://lake/1.parquet",
        file_format=peer.FileFormat.PARQUET,
        partition=Record("Ann"),
        record_count=3,
        file_size_in_bytes=99,
        column_sizes={1: 10},
        value_counts={1: 3},
        null_value_counts={1: 0},
        nan_value_counts={},
        lower_bounds={1: b"\x01"},
        upper_bounds={1: b"\x03"},
        split_offsets=[4],
        sort_order_id=None,
    )
    out = io_.new_output(str(manifest_path))
    with peer.write_manifest(2, PEER_SPEC, PEER_SCHEMA, out, SNAPSHOT, codec) as writer:
        writer.add(peer.ManifestEntry.from_args(data_file=file))
    with peer.write_manifest_list(
        2, io_.new_output(str(list_path)), SNAPSHOT, None, 5, codec
    ) as list_writer:
        list_writer.add_manifests([writer.to_manifest_file()])

    metadata, entries = decode_manifest(manifest_path.read_bytes())
    list_metadata, [found] = decode_manifest_list(list_path.read_bytes())

    assert metadata["partition-spec-id"] == b"3"
    assert list_metadata["sequence-number"] == b"5"
    assert entries == [
        entry(
            data_file(
                file_path="s3://lake/1.parquet",
                partition=("Ann",),
                record_count=3,
                file_size_in_bytes=99,
                column_sizes={1: 10},
                value_counts={1: 3},
                null_value_counts={1: 0},
                nan_value_counts={},
                lower_bounds={1: b"\x01"},
                upper_bounds={1: b"\x03"},
                split_offsets=(4,),
            )
        )
    ]
    assert found == ManifestListEntry(
        str(manifest_path), manifest_path.stat().st_size, 3, DATA, 5, 5, SNAPSHOT,
        1, 0, 0, 3, 0, 0, (PartitionSummary(False, False, b"Ann", b"Ann"),),
    )  # fmt: skip


def test_we_read_v1_files_of_pyiceberg(tmp_path: Path) -> None:
    io_ = PyArrowFileIO()
    manifest_path, list_path = tmp_path / "m.avro", tmp_path / "list.avro"
    file = peer.DataFile.from_args(
        content=peer.DataFileContent.DATA,
        file_path="s3://lake/1.parquet",
        file_format=peer.FileFormat.PARQUET,
        partition=Record("Ann"),
        record_count=3,
        file_size_in_bytes=99,
    )
    out = io_.new_output(str(manifest_path))
    with peer.write_manifest(1, PEER_SPEC, PEER_SCHEMA, out, SNAPSHOT, "null") as writer:
        writer.add(peer.ManifestEntry.from_args(data_file=file))
    with peer.write_manifest_list(
        1, io_.new_output(str(list_path)), SNAPSHOT, None, None, "null"
    ) as list_writer:
        list_writer.add_manifests([writer.to_manifest_file()])

    [read] = decode_manifest(manifest_path.read_bytes())[1]
    [found] = decode_manifest_list(list_path.read_bytes())[1]

    assert (read.snapshot_id, read.sequence_number, read.file.content) == (SNAPSHOT, None, DATA)
    assert (read.file.record_count, read.file.partition) == (3, ("Ann",))
    assert (found.sequence_number, found.min_sequence_number, found.content) == (
        0,
        0,
        DATA,
    )
    assert (found.added_files_count, found.added_rows_count) == (1, 3)


def test_our_schemas_have_the_ids_and_types_of_pyiceberg() -> None:
    convert = AvroSchemaConversion().avro_to_iceberg
    # Where the peer differs from the specification: it has equality ids as long, and no
    # referenced_data_file in v2.
    for version in (2, 3):
        ours = {field.field_id: field for field in convert(manifest_list_schema(version)).fields}
        theirs = peer.MANIFEST_LIST_FILE_SCHEMAS[version].fields
        assert [(one.name, one.field_type, one.required) for one in theirs] == [
            (ours[one.field_id].name, ours[one.field_id].field_type, ours[one.field_id].required)
            for one in theirs
        ]
        data_files: Any = convert(manifest_schema([], version)).find_field("data_file").field_type
        found = {field.field_id: (field.name, field.required) for field in data_files.fields}
        wanted = {
            field.field_id: (field.name, field.required)
            for field in peer.DATA_FILE_TYPE[version].fields
        }
        assert found == {143: ("referenced_data_file", False)} | wanted


@pytest.mark.parametrize("kind", ["manifest", "list"])
def test_broken_files_are_corrupt_and_nothing_else(kind: str) -> None:
    file = dataclasses.replace(FULL, partition=("Ann",))
    data = (
        encoded([entry(file), entry(file)], 2, NAME_PARTITION)
        if kind == "manifest"
        else encoded_list([list_entry(partitions=SUMMARIES)] * 3)
    )
    decode: Any = decode_manifest if kind == "manifest" else decode_manifest_list
    random_bits = random.Random(kind)
    whole = data.index(SYNC) + 16
    refused = 0

    for size in random_bits.sample(range(len(data)), 300):
        if size != whole:
            with pytest.raises(DataCorrupt):
                decode(data[:size])
    for _ in range(1500):
        broken = bytearray(data)
        broken[random_bits.randrange(len(broken))] ^= 1 << random_bits.randrange(8)
        try:
            decode(bytes(broken))
        except (DataCorrupt, UnsupportedFeature):
            refused += 1

    assert refused > 100


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [("status", "string", "1"), ("data_file", "int", 3), ("snapshot_id", "bytes", b"x")],
)
def test_a_field_of_the_wrong_type_is_corrupt(name: str, kind: str, value: object) -> None:
    schema: Any = manifest_schema([], 2)
    record = by_fastavro(encoded([entry()]))[0] | {name: value}
    for field in schema["fields"]:
        if field["name"] == name:
            field["type"] = kind
            field.pop("default", None)
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), [record])

    with pytest.raises(DataCorrupt, match=name):
        decode_manifest(out.getvalue())
