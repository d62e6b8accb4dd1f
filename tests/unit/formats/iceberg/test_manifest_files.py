"""Manifests: our bytes come back from us and from fastavro."""

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from lakebed.formats.iceberg.manifest_files import (
    ADDED,
    DELETED,
    EXISTING,
    ManifestEntry,
    decode_manifest,
)
from lakebed.formats.iceberg.manifest_schemas import (
    PartitionField,
    avro_name,
    decimal_size_bytes,
    manifest_schema,
)
from lakebed.model.errors import InvalidInput, UnsupportedFeature
from lakebed.model.history import DELETES
from tests.unit.formats.iceberg.manifest_values import (
    ALL_TYPES,
    ENTRIES,
    FULL,
    PARTITION_VALUES,
    VECTOR,
    by_fastavro,
    data_file,
    encoded,
    entry,
    from_fastavro,
)


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
    metadata, _ = decode_manifest(encoded([entry(VECTOR)], 3, content=DELETES))

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
