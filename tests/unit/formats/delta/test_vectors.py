"""Deletion vectors in Delta's log: inline, packed into files, replaced, checkpointed, read back."""

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from lakebed.formats.delta.actions import RemoveAction
from lakebed.formats.delta.checkpoint import read_checkpoint
from lakebed.formats.delta.log import checkpoint_path
from lakebed.formats.delta.read import DeltaSnapshot, read_snapshot
from lakebed.formats.delta.vectors import read_vectors
from lakebed.model.errors import DataCorrupt, ForeignCommit, ObjectMissing, UnsupportedFeature
from lakebed.model.history import VECTORS
from lakebed.model.ids import Version
from lakebed.model.vectors import INLINE_BYTES, Positions
from lakebed.storage.memory import MemoryStorage
from tests.unit.formats.delta.rows import (
    ROOT,
    FakeLedger,
    data_file,
    delta,
    first_state,
    schema_of,
)

ROWS = 200_000


def scattered(seed: int) -> list[int]:
    """Too many places for the log itself."""
    return random.Random(seed).sample(range(ROWS), 8_000)


def ledger_of(*names: str) -> FakeLedger:
    ledger = FakeLedger(first_state(schema_of("a int")))
    ledger.commit("create", add=[data_file(name, ROWS) for name in names])
    return ledger


def positions(storage: MemoryStorage, found: DeltaSnapshot) -> dict[str, Positions]:
    named = [(p, add.deletion_vector) for p, add in found.files.items() if add.deletion_vector]
    return read_vectors(storage, ROOT, named)


def expect(storage: MemoryStorage, **deleted: Iterable[int]) -> DeltaSnapshot:
    found = read_snapshot(storage, ROOT)
    shown = {path.removeprefix("data/"): each for path, each in positions(storage, found).items()}
    assert shown == {name: Positions(each) for name, each in deleted.items()}
    return found


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage("vectors")


def test_a_small_vector_stands_in_the_log_and_the_statistics_stay(storage: MemoryStorage) -> None:
    ledger = ledger_of("f", "g")
    ledger.drain(delta(storage))
    before = read_snapshot(storage, ROOT).files["data/f"]
    ledger.commit("delete", delete={"data/f": [0, 5, 7]})

    (done,) = ledger.drain(delta(storage))

    assert [p.kind for p in done.publications] == ["commit"]
    found = expect(storage, f=[0, 5, 7])
    add = found.files["data/f"]
    vector = add.deletion_vector
    assert vector is not None
    assert (vector.storage_type, vector.offset, vector.cardinality) == ("i", None, 3)
    assert before.stats is not None
    assert add.stats == before.stats.replace('"tightBounds":true', '"tightBounds":false')
    assert found.protocol.reader_features == ("deletionVectors",)
    assert "deletionVectors" in (found.protocol.writer_features or ())
    assert found.metadata.configuration["delta.enableDeletionVectors"] == "true"
    assert found.files["data/g"].deletion_vector is None


def test_large_vectors_of_a_commit_lie_in_one_file_beside_small_ones_inline(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of("f", "g", "h")
    deleted = {"f": scattered(1), "g": [3], "h": scattered(2)}
    ledger.commit("delete", delete={f"data/{name}": each for name, each in deleted.items()})

    done = ledger.drain(delta(storage))

    (packed,) = [p for d in done for p in d.publications if p.kind == VECTORS]
    assert (packed.number, packed.version) == (2, 1)
    assert packed.path.startswith("_deletes/deletion_vector_")
    found = expect(storage, **deleted)
    kinds = {p: a.deletion_vector for p, a in found.files.items()}
    large, small, last = (kinds[f"data/{name}"] for name in "fgh")
    assert large is not None
    assert small is not None
    assert last is not None
    assert (large.storage_type, small.storage_type) == ("u", "i")
    assert large.offset == 1
    assert last.offset == 1 + large.size_bytes + 8
    assert large.size_bytes > INLINE_BYTES


def test_a_vector_that_is_replaced_is_removed_by_its_own_name(storage: MemoryStorage) -> None:
    ledger = ledger_of("f")
    first = scattered(1)
    ledger.commit("delete", delete={"data/f": [1]})
    ledger.commit("delete", delete={"data/f": first})
    ledger.commit("delete", delete={"data/f": range(ROWS - 9)})
    ledger.drain(delta(storage))

    expect(storage, f=range(ROWS - 9))
    for version, kept in ((1, [1]), (2, [1, *first])):
        at = read_snapshot(storage, ROOT, version)
        assert positions(storage, at) == {"data/f": Positions(kept)}

    ledger.commit("delete", remove=["data/f"])
    ledger.drain(delta(storage))
    assert read_snapshot(storage, ROOT).files == {}


def test_a_vector_that_comes_back_has_its_file_already(storage: MemoryStorage) -> None:
    ledger = ledger_of("f")
    gone = scattered(3)
    (with_vector,) = ledger.commit("delete", delete={"data/f": gone}).added
    ledger.commit("overwrite", remove=["data/f"])
    ledger.drain(delta(storage))
    ledger.commit("restore", back=[with_vector])

    (done,) = ledger.drain(delta(storage))

    assert [p.kind for p in done.publications] == ["commit"]
    expect(storage, f=gone)


def test_a_restored_vector_that_was_never_published_gets_its_file(storage: MemoryStorage) -> None:
    ledger = ledger_of("f")
    ledger.drain(delta(storage))
    (with_vector,) = ledger.commit("delete", formats=(), delete={"data/f": scattered(3)}).added
    ledger.commit("overwrite", remove=["data/f"])
    ledger.commit("alter", formats=("delta",))
    ledger.drain(delta(storage))
    ledger.commit("restore", back=[with_vector])

    ledger.drain(delta(storage))

    expect(storage, f=scattered(3))


def test_a_checkpoint_holds_vectors_and_the_tombstones_of_replaced_ones(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of("f", "g")
    large = scattered(4)
    ledger.commit("delete", delete={"data/f": [1], "data/g": large})
    ledger.commit("delete", delete={"data/f": [2]})
    ledger.drain(delta(storage))
    commits = read_snapshot(storage, ROOT)

    ledger.enqueue("delta", "checkpoint", commits.version)
    ledger.drain(delta(storage))

    for version in range(3):
        storage.delete(f"{ROOT}/_delta_log/{version:020}.json")
    found = expect(storage, f=[1, 2], g=large)
    assert found.files == {p: replace(add, data_change=False) for p, add in commits.files.items()}
    rows = list(read_checkpoint(storage, f"{ROOT}/{checkpoint_path(commits.version)}"))
    kept = {
        (row.path, row.deletion_vector.cardinality if row.deletion_vector else 0)
        for row in rows
        if isinstance(row, RemoveAction)
    }
    assert kept == {("data/f", 0), ("data/f", 1), ("data/g", 0)}


def test_a_log_that_begins_late_shows_all_vectors(storage: MemoryStorage) -> None:
    ledger = ledger_of("f", "g", "h")
    ledger.commit("alter", formats=())
    ledger.commit("delete", delete={"data/f": [1], "data/g": scattered(5)})
    ledger.commit("delete", delete={"data/h": scattered(6)})
    ledger.commit("alter", formats=("delta",))

    *_, done = ledger.drain(delta(storage))

    assert [(p.kind, p.number) for p in done.publications] == [
        ("vectors", 3),
        ("vectors", 4),
        ("start", 4),
        ("checkpoint", 4),
    ]
    expect(storage, f=[1], g=scattered(5), h=scattered(6))


def test_files_shown_anew_keep_their_vectors(storage: MemoryStorage) -> None:
    ledger = FakeLedger(first_state(schema_of("a int, p int"), ("p",)))
    ledger.commit("create", add=[data_file("f", 9, (1,)), data_file("g", 9, (1,))])
    ledger.commit("delete", delete={"data/f": [1]})
    ledger.commit("delete", delta_partitioned=False, delete={"data/g": [2]})

    ledger.drain(delta(storage))

    expect(storage, f=[1], g=[2])


def test_publishing_again_gives_the_same_bytes(storage: MemoryStorage) -> None:
    ledger = ledger_of("f", "g")
    ledger.commit("delete", delete={"data/f": [1], "data/g": scattered(7)})
    publisher = delta(storage)
    ledger.drain(publisher)
    written = {s.path: storage.get(s.path) for s in storage.list(ROOT)}
    first = publisher.publish(ledger, ledger.view(Version(1)), "commit")

    other = MemoryStorage("again")
    again = ledger_of("f", "g")
    again.commit("delete", delete={"data/f": [1], "data/g": scattered(7)})
    again.drain(delta(other))

    assert {s.path: other.get(s.path) for s in other.list(ROOT)} == written
    assert [p.kind for p in first.publications] == ["commit"]


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped"])
def test_a_damaged_file_of_vectors_is_found_and_mended_by_a_start(
    storage: MemoryStorage, damage: str
) -> None:
    ledger = ledger_of("f")
    ledger.commit("delete", delete={"data/f": scattered(8)})
    ledger.drain(delta(storage))
    (packed,) = ledger.publications("delta", VECTORS, 9)
    path = f"{ROOT}/{packed.path}"
    good = storage.get(path)
    hurt = {"gone": None, "cut": good[:-9], "flipped": good[:99] + b"!" + good[100:]}[damage]
    storage.delete(path)
    if hurt is not None:
        storage.put_if_absent(path, hurt)

    with pytest.raises(ObjectMissing if hurt is None else DataCorrupt):
        positions(storage, read_snapshot(storage, ROOT))

    view = ledger.commit("repair", formats=())
    ledger.enqueue("delta", "start", view.commit.version)
    ledger.drain(delta(storage))

    assert storage.get(path) == good
    expect(storage, f=scattered(8))
    (again,) = ledger.vector_files("delta", [packed.number]).values()
    assert again.version == view.commit.version


def test_a_commit_never_overwrites_what_stands_where_its_vectors_belong(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of("f")
    ledger.commit("delete", delete={"data/f": scattered(9)})
    ledger.drain(delta(storage))
    (packed,) = ledger.publications("delta", VECTORS, 9)
    other = MemoryStorage("other")
    other.put_if_absent(f"{ROOT}/{packed.path}", b"theirs")
    again = ledger_of("f")
    again.commit("delete", delete={"data/f": scattered(9)})

    with pytest.raises(ForeignCommit):
        again.drain(delta(other))

    assert other.get(f"{ROOT}/{packed.path}") == b"theirs"
    assert read_snapshot(other, ROOT).version == 0


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"path_or_inline": "~~~~~"}, DataCorrupt),
        ({"path_or_inline": "00000"}, DataCorrupt),
        ({"cardinality": 2}, DataCorrupt),
        ({"storage_type": "p"}, UnsupportedFeature),
    ],
)
def test_a_vector_in_the_log_that_is_broken_is_refused(
    storage: MemoryStorage, changed: dict[str, Any], error: type[Exception]
) -> None:
    ledger = ledger_of("f")
    ledger.commit("delete", delete={"data/f": [1]})
    ledger.drain(delta(storage))
    vector = read_snapshot(storage, ROOT).files["data/f"].deletion_vector
    assert vector is not None

    with pytest.raises(error):
        read_vectors(storage, ROOT, [("data/f", replace(vector, **changed))])
