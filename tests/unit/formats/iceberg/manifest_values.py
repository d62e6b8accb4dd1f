"""Manifest entries and list entries for tests, and how fastavro reads them."""

import dataclasses
import io
from typing import Any

import fastavro
from hypothesis import strategies as st

from lakebed.formats.iceberg.manifest_files import (
    ADDED,
    DATA_FILE,
    POSITION_DELETES,
    ManifestDataFile,
    ManifestEntry,
    ManifestListEntry,
    PartitionSummary,
    encode_manifest,
    encode_manifest_list,
)
from lakebed.formats.iceberg.manifest_schemas import (
    PartitionField,
)
from lakebed.model.history import DATA

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
        "content": DATA_FILE,
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
        "content": DATA,
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
        "content": DATA,
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


def encoded_list(entries: list[ManifestListEntry], version: int = 2, **changes: Any) -> bytes:
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
