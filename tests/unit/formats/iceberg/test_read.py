"""Our reader: gives back what the rows said, and answers broken tables with errors of the tree."""

import gzip
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from lakebed.formats.iceberg.read import read_snapshot
from lakebed.model.errors import (
    DataCorrupt,
    LakebedError,
    NotFound,
    ObjectMissing,
    UnsupportedFeature,
)
from lakebed.model.files import ColumnStats, DataFile
from lakebed.model.ids import FieldId, SpecId, Version
from lakebed.model.partitioning import parse_spec
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.storage.local import LocalStorage
from lakebed.storage.memory import MemoryStorage
from tests.unit.formats.iceberg.fake_ledger import FakeLedger, publish

SCHEMA = new_schema(parse_schema("id long, price decimal(30,2), name string, day date"))
FILES = [
    DataFile(
        f"data/é {n}.parquet",
        1000 + n,
        10,
        SpecId(0),
        (Decimal(f"{n}.05"), None if n == 1 else f"x{n}", 19_000 + n),
        {
            FieldId(1): ColumnStats(10, 0, None, 80, -n, n),
            FieldId(2): ColumnStats(10, 1, None, 160, Decimal("-9.99"), Decimal(f"{n}.05")),
            FieldId(3): ColumnStats(10, 10, None, 8),
        },
        split_offsets=(4, 500),
    )
    for n in range(4)
]


def published(storage: Any) -> FakeLedger:
    ledger = FakeLedger(SCHEMA, parse_spec(("price", "name", "day(day)"), SCHEMA))
    ledger.commit(FILES[:3])
    ledger.commit(FILES[3:], remove=[2])
    for version in (0, 1):
        publish(storage, ledger, Version(version))
    return ledger


@pytest.fixture
def memory() -> MemoryStorage:
    storage = MemoryStorage("x")
    published(storage)
    return storage


def only(storage: MemoryStorage, part: str) -> str:
    return max(s.path for s in storage.list("") if part in s.path)


def change(storage: MemoryStorage, path: str, **changes: Any) -> None:
    plain = orjson.loads(storage.get(path))
    storage.replace(path, orjson.dumps({**plain, **changes}))


def test_files_come_back_as_the_rows_have_them(memory: MemoryStorage) -> None:
    found = read_snapshot(memory, "ns/t")

    assert {p: f.file for p, f in found.files.items()} == {
        f.path: f for f in (FILES[0], FILES[2], FILES[3])
    }
    assert [f.entry.sequence_number for f in found.files.values()] == [1, 1, 2]
    assert found.deletes == ()


def test_an_older_snapshot_can_be_read(memory: MemoryStorage) -> None:
    first = read_snapshot(memory, "ns/t").metadata["snapshots"][0]["snapshot-id"]

    assert len(read_snapshot(memory, "ns/t", snapshot_id=first).files) == 3
    with pytest.raises(NotFound):
        read_snapshot(memory, "ns/t", snapshot_id=5)


def test_a_folder_that_was_moved_is_read_where_it_is(tmp_path: Path) -> None:
    published(LocalStorage(tmp_path / "a"))
    (tmp_path / "a").rename(tmp_path / "b")

    assert len(read_snapshot(LocalStorage(tmp_path / "b"), "ns/t").files) == 3


def test_uris_and_plain_paths_are_the_same_place(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    ledger = published(storage)
    path = tmp_path / "ns/t" / ledger.published[-1].path
    plain = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({**plain, "location": f"file://{plain['location']}/"}))

    assert len(read_snapshot(storage, "ns/t").files) == 3


@pytest.mark.parametrize("hint", [b"7\n", b"v7", b"v7.metadata.json"])
def test_every_form_of_version_hint_is_understood(memory: MemoryStorage, hint: bytes) -> None:
    data = memory.get(only(memory, ".metadata.json"))
    memory.put_if_absent("ns/t/metadata/v7.metadata.json", gzip.compress(data))
    memory.replace("ns/t/metadata/version-hint.text", hint)

    found = read_snapshot(memory, "ns/t")

    assert found.metadata_path == "metadata/v7.metadata.json"
    assert len(found.files) == 3


@pytest.mark.parametrize("part", ["version-hint", ".metadata.json", "snap-", "-m0.avro"])
def test_a_missing_file_is_named(memory: MemoryStorage, part: str) -> None:
    path = only(memory, part)
    memory.delete(path)

    with pytest.raises(ObjectMissing) as caught:
        read_snapshot(memory, "ns/t")
    assert caught.value.context["path"] == path


@pytest.mark.parametrize("hint", [b"", b"a/b", b"../../x"])
def test_a_hint_that_names_no_file_is_corrupt(memory: MemoryStorage, hint: bytes) -> None:
    memory.replace("ns/t/metadata/version-hint.text", hint)

    with pytest.raises(DataCorrupt):
        read_snapshot(memory, "ns/t")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"format-version": 4}, UnsupportedFeature),
        ({"format-version": None}, DataCorrupt),
        ({"location": None}, DataCorrupt),
        ({"current-snapshot-id": 5}, DataCorrupt),
        ({"snapshots": None}, DataCorrupt),
        ({"snapshots": 5}, DataCorrupt),
        ({"schemas": 5}, DataCorrupt),
        ({"schemas": [{"type": "struct"}]}, DataCorrupt),
        ({"schemas": [7]}, DataCorrupt),
        ({"partition-specs": []}, DataCorrupt),
        ({"partition-specs": [{"fields": []}]}, DataCorrupt),
    ],
)
def test_broken_metadata_is_refused(
    memory: MemoryStorage, changes: dict[str, Any], error: type[LakebedError]
) -> None:
    change(memory, only(memory, ".metadata.json"), **changes)

    with pytest.raises(error):
        read_snapshot(memory, "ns/t")


def test_files_outside_the_folder_are_refused(memory: MemoryStorage) -> None:
    path = only(memory, ".metadata.json")
    snapshot = {"snapshot-id": 1, "manifest-list": "memory://elsewhere/snap.avro"}
    change(memory, path, **{"snapshots": [snapshot], "current-snapshot-id": 1})

    with pytest.raises(UnsupportedFeature, match="elsewhere"):
        read_snapshot(memory, "ns/t")


@pytest.mark.parametrize("part", [".metadata.json", "snap-", "-m0.avro"])
def test_broken_bytes_never_raise_anything_else(memory: MemoryStorage, part: str) -> None:
    path, dice = only(memory, part), random.Random(5)
    whole = memory.get(path)
    refused = 0
    for _ in range(300):
        data = bytearray(whole[: dice.randrange(len(whole))] if dice.random() < 0.3 else whole)
        for _ in range(dice.randrange(4)):
            if data:
                data[dice.randrange(len(data))] = dice.randrange(256)
        memory.replace(path, bytes(data))
        try:
            read_snapshot(memory, "ns/t")
        except LakebedError:
            refused += 1

    assert refused > 50
