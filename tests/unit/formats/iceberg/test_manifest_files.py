"""Manifests and manifest lists: our bytes read by fastavro and pyiceberg, and theirs by us."""

import dataclasses
import io
import json
import random
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
    DATA,
    DATA_MANIFEST,
    DELETE_MANIFEST,
    DELETED,
    EXISTING,
    POSITION_DELETES,
    ManifestDataFile,
    ManifestEntry,
    ManifestListEntry,
    PartitionSummary,
    decode_manifest,
    decode_manifest_list,
    encode_list_entry,
    encode_manifest,
    encode_manifest_list,
)
from lakebed.formats.iceberg.manifest_schemas import (
    PartitionField,
    avro_name,
    decimal_size_bytes,
    manifest_list_schema,
    manifest_schema,
)
from lakebed.model.errors import DataCorrupt, InvalidInput, UnsupportedFeature

SYNC = bytes(range(16))
SNAPSHOT = 3776207205136740581
LONGS = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.none() | st.dictionaries(st.integers(1, 5000), LONGS, max_size=5)
BOUNDS = st.none() | st.dictionaries(st.integers(1, 5000), st.binary(), max_size=5)

# Every type a partition field can have, with a value of it as Avro holds it.
PARTITION_VALUES: dict[str, Any] = {
    "boolean": True,
    "int": -7,
    "long": 2**40,
    "float": 0.5,
    "double": 0.1,
    "date": 19000,
    "time": 86_399_999_999,
    "timestamp": 1_700_000_000_000_000,
    "timestamptz": -1,
    "timestamp_ns": 1_700_000_000_000_000_001,
    "timestamptz_ns": -2,
    "string": "Zürich",
    "uuid": bytes(range(16)),
    "fixed[3]": b"abc",
    "binary": b"",
    "decimal(9, 2)": (-12345).to_bytes(4, "big", signed=True),
    "decimal(38,0)": (10**38 - 1).to_bytes(16, "big", signed=True),
}
ALL_TYPES: list[PartitionField] = [
    (f"p{number}", 1000 + number, kind) for number, kind in enumerate(PARTITION_VALUES)
]


def data_file(**changes: Any) -> ManifestDataFile:
    base: dict[str, Any] = {
        "content": DATA,
        "file_path": "s3://lake/db/t/data/é 1.parquet",
        "file_format": "PARQUET",
        "partition": (),
        "record_count": 1000,
        "file_size_in_bytes": 123_456,
    }
    return ManifestDataFile(**base | changes)


FULL = data_file(
    column_sizes={1: 100, 2: 200_000},
    value_counts={1: 1000, 2: 1000},
    null_value_counts={1: 0, 2: 3},
    nan_value_counts={},
    lower_bounds={1: b"\x01\x00\x00\x00", 2: b"a"},
    upper_bounds={1: b"\xff\x00\x00\x00", 2: b""},
    split_offsets=(4, 70_000_000),
    equality_ids=(1, 2),
    sort_order_id=0,
    referenced_data_file="s3://lake/db/t/data/0.parquet",
    key_metadata=b"key",
)
VECTOR = data_file(
    content=POSITION_DELETES,
    file_format="PUFFIN",
    referenced_data_file="s3://lake/db/t/data/0.parquet",
    content_offset=4,
    content_size_in_bytes=42,
)


def entry(file: ManifestDataFile | None = None, **changes: Any) -> ManifestEntry:
    base = ManifestEntry(ADDED, SNAPSHOT, None, None, file or data_file())
    return dataclasses.replace(base, **changes)


def encoded(
    entries: list[ManifestEntry],
    version: int = 2,
    partition_type: list[PartitionField] | None = None,
    **changes: Any,
) -> bytes:
    options: dict[str, Any] = {
        "schema_json": b'{"type":"struct","schema-id":0,"fields":[]}',
        "spec_json": b"[]",
        "spec_id": 3,
        "content": DATA_MANIFEST,
        "sync": SYNC,
    }
    return encode_manifest(
        entries, format_version=version, partition_type=partition_type or [], **options | changes
    )


def list_entry(**changes: Any) -> ManifestListEntry:
    base: dict[str, Any] = {
        "manifest_path": "s3://lake/db/t/metadata/m0.avro",
        "manifest_length": 7000,
        "partition_spec_id": 3,
        "content": DATA_MANIFEST,
        "sequence_number": 5,
        "min_sequence_number": 2,
        "added_snapshot_id": SNAPSHOT,
        "added_files_count": 1,
        "existing_files_count": 2,
        "deleted_files_count": 3,
        "added_rows_count": 10,
        "existing_rows_count": 20,
        "deleted_rows_count": 2**40,
    }
    return ManifestListEntry(**base | changes)


SUMMARIES = (
    PartitionSummary(True, None, None, None),
    PartitionSummary(False, True, b"\x00", b""),
)


def encoded_list(
    entries: list[ManifestListEntry | bytes], version: int = 2, **changes: Any
) -> bytes:
    options: dict[str, Any] = {
        "snapshot_id": SNAPSHOT,
        "parent_snapshot_id": None,
        "sequence_number": 5,
        "first_row_id": 77 if version == 3 else None,
        "sync": SYNC,
    }
    return encode_manifest_list(entries, format_version=version, **options | changes)


def by_fastavro(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def pairs(records: list[dict[str, Any]] | None) -> dict[int, Any] | None:
    return None if records is None else {record["key"]: record["value"] for record in records}


def from_fastavro(record: dict[str, Any]) -> ManifestEntry:
    file = dict(record["data_file"])
    for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"):
        file[name] = pairs(file[name])
    for name in ("lower_bounds", "upper_bounds"):
        file[name] = pairs(file[name])
    for name in ("split_offsets", "equality_ids"):
        file[name] = None if file[name] is None else tuple(file[name])
    file["partition"] = tuple(file["partition"].values())
    head = {name: value for name, value in record.items() if name != "data_file"}
    return ManifestEntry(**head, file=ManifestDataFile(**file))


FILES = st.builds(
    ManifestDataFile,
    content=st.integers(0, 2),
    file_path=st.text(),
    file_format=st.sampled_from(["PARQUET", "AVRO", "ORC"]),
    partition=st.tuples(st.none() | st.text(), st.none() | LONGS),
    record_count=LONGS,
    file_size_in_bytes=LONGS,
    column_sizes=COUNTS,
    value_counts=COUNTS,
    null_value_counts=COUNTS,
    nan_value_counts=COUNTS,
    lower_bounds=BOUNDS,
    upper_bounds=BOUNDS,
    split_offsets=st.none() | st.lists(LONGS, max_size=3).map(tuple),
    equality_ids=st.none() | st.lists(st.integers(1, 2**31 - 1), max_size=3).map(tuple),
    sort_order_id=st.none() | st.integers(0, 9),
    first_row_id=st.none() | LONGS,
    referenced_data_file=st.none() | st.text(),
    content_offset=st.none() | LONGS,
    content_size_in_bytes=st.none() | LONGS,
    key_metadata=st.none() | st.binary(),
)
ENTRIES = st.builds(
    ManifestEntry,
    status=st.integers(0, 2),
    snapshot_id=st.none() | LONGS,
    sequence_number=st.none() | LONGS,
    file_sequence_number=st.none() | LONGS,
    file=FILES,
)


# --- manifests: round trips -----------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("status", [EXISTING, ADDED, DELETED])
def test_a_manifest_comes_back_as_it_was(version: int, status: int) -> None:
    entries = [entry(), entry(FULL, status=status, sequence_number=1, file_sequence_number=0)]

    metadata, decoded = decode_manifest(encoded(entries, version))

    assert decoded == entries
    assert metadata["schema"] == b'{"type":"struct","schema-id":0,"fields":[]}'
    assert metadata["partition-spec"] == b"[]"
    assert metadata["partition-spec-id"] == b"3"
    assert metadata["format-version"] == str(version).encode()
    assert metadata["content"] == b"data"


@given(st.lists(ENTRIES, max_size=3))
@settings(max_examples=50, deadline=None)
def test_any_v3_manifest_comes_back_from_us_and_from_fastavro(entries: list[ManifestEntry]) -> None:
    data = encoded(entries, 3, [("name", 1000, "string"), ("n", 1001, "long")])

    assert decode_manifest(data)[1] == entries
    assert [from_fastavro(record) for record in by_fastavro(data)] == entries


def test_we_read_a_manifest_that_fastavro_wrote() -> None:
    entries = [entry(FULL), entry(VECTOR)]
    ours = encoded(entries, 3)
    out = io.BytesIO()
    schema = fastavro.parse_schema(manifest_schema([], 3))
    fastavro.writer(out, schema, by_fastavro(ours), codec="deflate")

    assert decode_manifest(out.getvalue())[1] == entries


def test_a_large_manifest_is_deflated_and_comes_back() -> None:
    entries = [entry(data_file(file_path=f"s3://lake/{n}.parquet")) for n in range(3000)]

    data = encoded(entries)

    assert decode_manifest(data)[0]["avro.codec"] == b"deflate"
    assert decode_manifest(data)[1] == entries
    assert len(by_fastavro(data)) == 3000


def test_a_delete_manifest_says_so() -> None:
    metadata, _ = decode_manifest(encoded([entry(VECTOR)], 3, content=DELETE_MANIFEST))

    assert metadata["content"] == b"deletes"


def test_v2_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(InvalidInput, match="v2 cannot hold"):
        encoded([entry(VECTOR)], 2)


def test_other_format_versions_are_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="v4"):
        encoded([entry()], 4)


def test_an_entry_needs_a_value_for_every_partition_field() -> None:
    with pytest.raises(InvalidInput, match="0 partition values, not 1"):
        encoded([entry()], 2, [("a", 1000, "int")])


# --- manifests: partition types -------------------------------------------------------------------


def test_every_partition_type_comes_back() -> None:
    values = tuple(PARTITION_VALUES.values())
    nulls = tuple(None for _ in values)
    entries = [entry(data_file(partition=values)), entry(data_file(partition=nulls))]

    data = encoded(entries, 3, ALL_TYPES)

    assert decode_manifest(data)[1] == entries
    assert [record["data_file"]["record_count"] for record in by_fastavro(data)] == [1000, 1000]


def test_pyiceberg_sees_the_partition_types_that_were_meant() -> None:
    # It does not know Avro's timestamp-nanos.
    fields = [field for field in ALL_TYPES if not field[2].endswith("_ns")]

    schema = AvroSchemaConversion().avro_to_iceberg(manifest_schema(fields, 3))

    found = [schema.find_field(field_id) for _, field_id, _ in fields]
    assert [str(one.field_type).replace(" ", "") for one in found] == [
        kind.replace(" ", "") for _, _, kind in fields
    ]
    assert not any(one.required for one in found)


@pytest.mark.parametrize("kind", ["struct", "list", "decimal(9)", "fixed[x]", ""])
def test_a_type_that_is_no_partition_type_is_refused(kind: str) -> None:
    with pytest.raises(UnsupportedFeature, match="partition field"):
        encoded([entry(data_file(partition=(1,)))], 2, [("a", 1000, kind)])


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int", "1"), ("int", True), ("string", b"x"), ("uuid", b"short"), ("decimal(9, 2)", b"\x00")],
)
def test_a_value_of_another_type_is_refused(kind: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match="partition field 'a'"):
        encoded([entry(data_file(partition=(value,)))], 2, [("a", 1000, kind)])


@given(st.integers(1, 38))
def test_decimals_take_the_fewest_bytes(precision: int) -> None:
    size, largest = decimal_size_bytes(precision), 10**precision - 1

    assert int.from_bytes(largest.to_bytes(size, "big", signed=True), "big", signed=True) == largest
    with pytest.raises(OverflowError):
        largest.to_bytes(size - 1, "big", signed=True)


@pytest.mark.parametrize(
    ("name", "safe"),
    [("ok_1", "ok_1"), ("1a", "_1a"), ("a-b", "a_x2Db"), ("a.b c", "a_x2Eb_x20c"), ("é", "_xE9"),
     ("☃", "_x2603"), ("-1", "_x2D1"), ("_", "_")],
)  # fmt: skip
def test_names_are_made_fit_for_avro(name: str, safe: str) -> None:
    fields = manifest_schema([(name, 1000, "int")], 2)
    text = json.dumps(fields, ensure_ascii=False)

    assert avro_name(name) == safe
    assert f'"name": "{safe}"' in text
    assert (f'"iceberg-field-name": "{name}"' in text) == (name != safe)


def test_names_and_types_that_meet_twice_stay_distinct() -> None:
    fields: list[PartitionField] = [
        ("a b", 1000, "uuid"),
        ("a_x20b", 1001, "uuid"),
        ("uuid_fixed", 1002, "fixed[16]"),
    ]
    entries = [entry(data_file(partition=(bytes(16), bytes(range(16)), b"x" * 16)))]

    data = encoded(entries, 2, fields)

    assert decode_manifest(data)[1] == entries
    assert len(by_fastavro(data)[0]["data_file"]["partition"]) == 3


# --- manifest lists -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_a_list_comes_back_as_it_was(version: int) -> None:
    row_id = {"first_row_id": 1000} if version == 3 else {}
    entries = [
        list_entry(**row_id),
        list_entry(content=DELETE_MANIFEST, partitions=SUMMARIES, key_metadata=b"k"),
    ]

    metadata, decoded = decode_manifest_list(encoded_list([*entries], version))

    assert decoded == entries
    assert metadata["snapshot-id"] == str(SNAPSHOT).encode()
    assert metadata["parent-snapshot-id"] == b"null"
    assert metadata["sequence-number"] == b"5"
    assert metadata["format-version"] == str(version).encode()
    assert metadata.get("first-row-id") == (b"77" if version == 3 else None)


@pytest.mark.parametrize("version", [2, 3])
def test_kept_bytes_of_entries_give_the_same_list(version: int) -> None:
    entries = [
        list_entry(manifest_length=n, first_row_id=n, partitions=SUMMARIES) for n in range(5)
    ]
    kept = [encode_list_entry(one, version) for one in entries]

    assert encoded_list([*kept], version) == encoded_list([*entries], version)
    assert encoded_list([*kept[:4], entries[4]], version) == encoded_list([*entries], version)


LIST_ENTRIES = st.builds(
    ManifestListEntry,
    manifest_path=st.text(),
    manifest_length=LONGS,
    partition_spec_id=st.integers(0, 2**31 - 1),
    content=st.integers(0, 1),
    sequence_number=LONGS,
    min_sequence_number=LONGS,
    added_snapshot_id=LONGS,
    added_files_count=st.integers(0, 2**31 - 1),
    existing_files_count=st.integers(0, 2**31 - 1),
    deleted_files_count=st.integers(0, 2**31 - 1),
    added_rows_count=LONGS,
    existing_rows_count=LONGS,
    deleted_rows_count=LONGS,
    partitions=st.none()
    | st.lists(
        st.builds(
            PartitionSummary,
            st.booleans(),
            st.none() | st.booleans(),
            st.none() | st.binary(),
            st.none() | st.binary(),
        ),
        max_size=3,
    ).map(tuple),
    key_metadata=st.none() | st.binary(),
    first_row_id=LONGS,
)


@given(st.lists(LIST_ENTRIES, max_size=4))
@settings(max_examples=50, deadline=None)
def test_any_list_comes_back_from_us_and_from_fastavro(entries: list[ManifestListEntry]) -> None:
    data = encoded_list([*entries], 3, parent_snapshot_id=1)

    assert decode_manifest_list(data)[1] == entries
    for record, one in zip(by_fastavro(data), entries, strict=True):
        summaries = record.pop("partitions")
        found = summaries and tuple(PartitionSummary(**summary) for summary in summaries)
        assert ManifestListEntry(**record, partitions=one.partitions) == one
        assert (found or None) == (one.partitions or None)


def test_v3_needs_row_ids() -> None:
    with pytest.raises(InvalidInput, match="first row id for"):
        encoded_list([list_entry()], 3)
    with pytest.raises(InvalidInput, match="of its snapshot"):
        encoded_list([list_entry(first_row_id=1)], 3, first_row_id=None)


def test_names_of_earlier_writers_are_known_by_their_field_ids() -> None:
    schema: Any = manifest_list_schema(2)
    for field in schema["fields"]:
        field["name"] = field["name"].replace("_files_count", "_data_files_count")
    records = by_fastavro(encoded_list([list_entry(partitions=SUMMARIES)]))
    old = [
        {name.replace("_files_count", "_data_files_count"): value for name, value in one.items()}
        for one in records
    ]
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), old)

    assert decode_manifest_list(out.getvalue())[1] == [list_entry(partitions=SUMMARIES)]


# --- pyiceberg ------------------------------------------------------------------------------------

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
        str(manifest_path), manifest_path.stat().st_size, 3, DATA_MANIFEST, 5, 5, SNAPSHOT,
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
        DATA_MANIFEST,
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


# --- broken files ---------------------------------------------------------------------------------


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
