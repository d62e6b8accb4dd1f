"""Manifest lists: our bytes come back from us and from fastavro."""

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.formats.iceberg.manifest_files import (
    ManifestListEntry,
    PartitionSummary,
    decode_manifest_list,
)
from lakebed.formats.iceberg.manifest_schemas import (
    manifest_list_schema,
)
from lakebed.model.errors import InvalidInput
from lakebed.model.history import DELETES
from tests.unit.formats.iceberg.manifest_values import (
    LONGS,
    SNAPSHOT,
    SUMMARIES,
    by_fastavro,
    encoded_list,
    list_entry,
)


@pytest.mark.parametrize("version", [2, 3])
def test_a_list_comes_back_as_it_was(version: int) -> None:
    row_id = {"first_row_id": 1000} if version == 3 else {}
    entries = [
        list_entry(**row_id),
        list_entry(content=DELETES, partitions=SUMMARIES, key_metadata=b"k"),
    ]

    metadata, decoded = decode_manifest_list(encoded_list([*entries], version))

    assert decoded == entries
    assert metadata["snapshot-id"] == str(SNAPSHOT).encode()
    assert metadata["parent-snapshot-id"] == b"null"
    assert metadata["sequence-number"] == b"5"
    assert metadata["format-version"] == str(version).encode()
    assert metadata.get("first-row-id") == (b"77" if version == 3 else None)


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
