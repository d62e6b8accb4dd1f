"""Deletion vectors in Iceberg: Puffin files, manifests of deletes, and our reader of both."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from lakebed.formats.iceberg.manifest_files import ADDED, DELETED, EXISTING, decode_manifest
from lakebed.formats.iceberg.puffin import VectorBlob, decode_puffin, encode_puffin, same_vectors
from lakebed.formats.iceberg.read import IcebergSnapshot, read_snapshot, read_vectors
from lakebed.model.errors import DataCorrupt, ForeignCommit, ObjectMissing
from lakebed.model.files import ColumnStats, DataFile
from lakebed.model.history import DATA, DELETES, VECTORS, ManifestRecord
from lakebed.model.ids import FieldId, SpecId, Version
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.vectors import Positions
from lakebed.storage.memory import MemoryStorage
from tests.unit.formats.iceberg.fake_ledger import FakeLedger, publish

ROOT = "ns/t"


def data_file(name: str, spec_id: int = 0) -> DataFile:
    stats = {FieldId(1): ColumnStats(10, 0, None, 80, 1, 9)}
    return DataFile(f"data/{name}", 100, 10, SpecId(spec_id), (), stats)


def ledger_of(files: int = 0, version: int = 3) -> FakeLedger:
    ledger = FakeLedger(new_schema(parse_schema("id long")), version=version)
    ledger.commit([data_file(f"f{n}") for n in range(1, files + 1)])
    return ledger


def drain(storage: MemoryStorage, ledger: FakeLedger) -> None:
    done = {p.version for p in ledger.published if p.kind == "metadata"}
    for commit in ledger.commit_rows:
        if commit.version not in done:
            publish(storage, ledger, commit.version)


def expect(storage: MemoryStorage, deleted: dict[int, Iterable[int]]) -> IcebergSnapshot:
    found = read_snapshot(storage, ROOT)
    assert read_vectors(storage, ROOT, found) == {
        f"data/f{n}": Positions(each) for n, each in deleted.items()
    }
    return found


def live_manifests(ledger: FakeLedger, content: int) -> list[ManifestRecord]:
    return [m for m in ledger.live_manifests() if m.content == content]


def entries(storage: MemoryStorage, manifest: ManifestRecord) -> list[tuple[int, int, int]]:
    """(status, number, rows) of each."""
    _, found = decode_manifest(storage.get(f"{ROOT}/{manifest.path}"))
    return [(e.status, e.sequence_number or 0, e.file.record_count) for e in found]


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage("x")


def test_pyiceberg_reads_our_puffin_files() -> None:
    vectors = [([1, 5], "s3://x/a b.parquet"), (range(3_000_000_000, 3_000_000_009), "s3://x/é")]
    data = encode_puffin(
        VectorBlob(path, len(at), Positions(at).to_bytes(), offset)
        for offset, (at, path) in zip((4, 99), vectors, strict=True)
    )

    found = deletion_vectors_from_puffin_file(PuffinFile(data))

    assert {v.referenced_data_file: v.to_vector().to_pylist() for v in found} == {
        path: list(at) for at, path in vectors
    }
    ours = decode_puffin(data)
    assert list(ours.values()) == [(path, Positions(at)) for at, path in vectors]
    assert list(ours) == [4, 99]


def test_a_delete_leaves_data_manifests_alone(storage: MemoryStorage) -> None:
    ledger = ledger_of(files=3)
    drain(storage, ledger)
    before = live_manifests(ledger, DATA)
    ledger.commit(delete={1: [0], 3: [4, 5]})

    drain(storage, ledger)

    assert live_manifests(ledger, DATA) == before
    (deletes,) = live_manifests(ledger, DELETES)
    assert (deletes.counts, deletes.first_row_id) == ((2, 0, 0, 3, 0, 0), None)
    assert entries(storage, deletes) == [(ADDED, 0, 1), (ADDED, 0, 2)]
    found = expect(storage, {1: [0], 3: [4, 5]})
    (packed,) = ledger.publications("iceberg", VECTORS, 9)
    places = found.vectors.values()
    assert {v.file_path for v in places} == {f"{storage.location(ROOT)}/{packed.path}"}
    assert {v.file_size_in_bytes for v in places} == {packed.size_bytes}
    assert {(v.content, v.file_format) for v in places} == {(1, "PUFFIN")}
    assert packed.path.startswith("_deletes/")


def test_a_replaced_vector_and_that_of_a_removed_file_are_deleted(storage: MemoryStorage) -> None:
    ledger = ledger_of(files=3)
    ledger.commit(delete={1: [1], 2: [2], 3: [3]})
    ledger.commit(delete={1: [9]}, remove=[2])

    drain(storage, ledger)

    expect(storage, {1: [1, 9], 3: [3]})
    old, new = live_manifests(ledger, DELETES)
    assert entries(storage, old) == [(DELETED, 2, 1), (DELETED, 2, 1), (EXISTING, 2, 1)]
    assert entries(storage, new) == [(ADDED, 0, 2)]

    ledger.commit(remove=[1, 3])
    drain(storage, ledger)
    expect(storage, {})
    ledger.commit([data_file("f4")])
    drain(storage, ledger)
    assert live_manifests(ledger, DELETES) == []


def test_a_vector_that_comes_back_keeps_its_number(storage: MemoryStorage) -> None:
    ledger = ledger_of(files=2)
    ledger.commit(delete={1: [1], 2: [2]})
    ledger.commit(remove=[1])
    ledger.commit(restore=[1])

    drain(storage, ledger)

    expect(storage, {1: [1], 2: [2]})
    (manifest,) = live_manifests(ledger, DELETES)
    assert entries(storage, manifest) == [(ADDED, 2, 1), (EXISTING, 2, 1)]
    assert manifest.min_sequence_number == 2


def test_the_first_vector_upgrades_and_gives_manifests_row_ids(storage: MemoryStorage) -> None:
    ledger = ledger_of(files=2, version=2)
    ledger.commit([data_file("f3")])
    drain(storage, ledger)
    before = [m.path for m in live_manifests(ledger, DATA)]
    ledger.number_rows()
    ledger.commit(delete={2: [0]}, state=replace(ledger.states[-1], iceberg_version=3))

    drain(storage, ledger)

    found = expect(storage, {2: [0]})
    assert found.metadata["format-version"] == 3
    # Their files inherit the row ids from the list: nothing is written again, however much it is.
    assert [m.path for m in live_manifests(ledger, DATA)] == before
    ids = {path: each.entry.file.first_row_id for path, each in found.files.items()}
    assert ids == {"data/f1": 0, "data/f2": 10, "data/f3": 20}
    assert all(m.first_row_id is not None for m in live_manifests(ledger, DATA))


def test_small_deletes_read_and_write_few_entries(storage: MemoryStorage) -> None:
    ledger = ledger_of(files=2_000)
    ledger.commit(delete={n: [0] for n in range(1, 2_001)})
    drain(storage, ledger)
    ledger.commit([data_file(f"f{n}") for n in range(2_001, 2_051)])
    drain(storage, ledger)
    for n in range(2_001, 2_051):
        ledger.commit(delete={n: [1]})
    ledger.runs_read = 0

    drain(storage, ledger)

    assert ledger.runs_read <= 50 * 2  # merged once per size
    assert len(live_manifests(ledger, DELETES)) < 20
    assert len(read_snapshot(storage, ROOT).vectors) == 2_050


def test_each_spec_has_delete_manifests_of_its_own(storage: MemoryStorage) -> None:
    ledger = ledger_of(files=2)
    again = replace(ledger.states[-1].spec, id=SpecId(1))
    ledger.commit([data_file("f3", spec_id=1)], state=replace(ledger.states[-1], spec=again))
    ledger.commit(delete={1: [0], 3: [1]})
    ledger.commit(delete={2: [0], 3: [2]})

    drain(storage, ledger)

    expect(storage, {1: [0], 2: [0], 3: [1, 2]})
    assert {m.spec_id for m in live_manifests(ledger, DELETES)} == {0, 1}


def test_a_start_shows_all_vectors_and_mends_their_files(storage: MemoryStorage) -> None:
    ledger = ledger_of(files=3)
    ledger.commit(delete={1: [1], 2: [2]})
    ledger.commit(delete={2: [3]})
    drain(storage, ledger)
    first, second = sorted(ledger.publications("iceberg", VECTORS, 9), key=lambda p: p.number)
    good = {p.path: storage.get(f"{ROOT}/{p.path}") for p in (first, second)}
    storage.delete(f"{ROOT}/{first.path}")
    storage.replace(f"{ROOT}/{second.path}", good[second.path][:-1])
    with pytest.raises((ObjectMissing, DataCorrupt)):
        read_vectors(storage, ROOT, read_snapshot(storage, ROOT))

    version = ledger.commit(snapshot=True)
    done = publish(storage, ledger, version, "start")

    expect(storage, {1: [1], 2: [2, 3]})
    assert {path: storage.get(f"{ROOT}/{path}") for path in good} == good
    assert [(p.kind, p.number) for p in done.publications] == [
        (VECTORS, 2),
        (VECTORS, 3),
        ("metadata", 3),
    ]
    ledger.commit(delete={1: [7]})
    drain(storage, ledger)
    expect(storage, {1: [1, 7], 2: [2, 3]})


def test_a_puffin_file_in_other_words_is_taken_and_another_content_is_not(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of(files=1)
    ledger.commit(delete={1: [1]})
    drain(storage, ledger)
    (packed,) = ledger.publications("iceberg", VECTORS, 9)
    data = storage.get(f"{ROOT}/{packed.path}")
    words = data.replace(b'"lakebed"', b'"LAKEBED"')
    assert same_vectors(words, data)

    for content, fails in ((words, False), (b"theirs", True)):
        other, again = MemoryStorage("x"), ledger_of(files=1)
        again.commit(delete={1: [1]})
        other.put_if_absent(f"{ROOT}/{packed.path}", content)
        publish(other, again, Version(0))
        if fails:
            with pytest.raises(ForeignCommit):
                publish(other, again, Version(1))
        else:
            publish(other, again, Version(1))
            expect(other, {1: [1]})
        assert other.get(f"{ROOT}/{packed.path}") == content


@pytest.mark.parametrize("cut", [0, 3, 8, 40, -1, -9])
def test_broken_puffin_files_are_corrupt_and_nothing_else(cut: int) -> None:
    data = encode_puffin([VectorBlob("f", 1, Positions([1]).to_bytes(), 4)])

    with pytest.raises(DataCorrupt):
        decode_puffin(data[:cut])
