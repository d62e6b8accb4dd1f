"""Replaying a log: equal by every road, gaps and damage told apart, other writers' layouts too."""

import json
import random
import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.formats.delta.log import checkpoint_path, commit_path, log_versions
from lakebed.formats.delta.read import DeltaSnapshot, read_snapshot
from lakebed.model.errors import DataCorrupt, ObjectMissing, VersionNotFound
from lakebed.model.ids import Version
from lakebed.storage.memory import MemoryStorage
from tests.unit.formats.delta.rows import (
    ROOT,
    T0,
    FakeLedger,
    data_file,
    delta,
    first_state,
    schema_of,
)

LOG = f"{ROOT}/_delta_log"
STATE = (
    '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'
    '{"metaData":{"id":"x","schemaString":"{}","format":{"provider":"parquet"}}}\n'
)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage("test")


def log_of(*commits: str) -> MemoryStorage:
    storage = MemoryStorage("foreign")
    for version, text in enumerate(commits):
        storage.put_if_absent(f"{ROOT}/{commit_path(Version(version))}", text.encode())
    return storage


def add(path: str, **more: Any) -> str:
    return json.dumps({"add": {"path": path, "size": 1, "partitionValues": {}, **more}}) + "\n"


def remove(path: str, **more: Any) -> str:
    return json.dumps({"remove": {"path": path, **more}}) + "\n"


def random_history(seed: int) -> FakeLedger:
    """Appends, removals, restored files, new properties, in any order."""
    dice = random.Random(seed)
    ledger = FakeLedger(first_state(schema_of("p int, a int"), ("p",)))
    ledger.commit("create")
    live: set[str] = set()
    gone: set[str] = set()
    for number in range(40):
        new = [f"{number}-{i} ü%.parquet" for i in range(dice.randrange(3))]
        back = dice.sample(sorted(gone), min(len(gone), dice.randrange(2)))
        away = dice.sample(sorted(live), min(len(live), dice.randrange(3)))
        changes: dict[str, Any] = {}
        if dice.random() < 0.2:
            changes["properties"] = {"n": str(number)}
        ledger.commit(
            "overwrite",
            add=[data_file(n, 1, (dice.choice([None, 1, 2]),)) for n in (*new, *back)],
            remove=[f"data/{n}" for n in away],
            step_ms=dice.choice([1, 1000, 86_400_000]),
            app=("job", number) if dice.random() < 0.2 else None,
            **changes,
        )
        live = (live | {*new, *back}) - set(away)
        gone = (gone | set(away)) - live
    return ledger


def stripped(snapshot: DeltaSnapshot) -> DeltaSnapshot:
    files = {p: replace(a, data_change=False) for p, a in sorted(snapshot.files.items())}
    return replace(snapshot, files=files, timestamps={})


@pytest.mark.parametrize("seed", range(5))
def test_checkpoint_and_commits_after_it_equal_a_full_replay(seed: int) -> None:
    storage, ledger = MemoryStorage("test"), random_history(seed)
    ledger.drain(delta(storage))
    plain = MemoryStorage("plain")
    for stat in storage.list(""):
        if stat.path.endswith(".json"):
            plain.put_if_absent(stat.path, storage.get(stat.path))

    for version in map(Version, range(41)):
        by_checkpoint = stripped(read_snapshot(storage, ROOT, version))
        by_commits = stripped(read_snapshot(plain, ROOT, version))

        assert by_checkpoint == by_commits
        assert set(by_commits.files) == {f.file.path for f in ledger.files_at(version)}
    assert sum(s.path.endswith(".checkpoint.parquet") for s in storage.list("")) == 4


def test_the_newest_version_is_read_by_default_with_its_times(storage: MemoryStorage) -> None:
    ledger = FakeLedger(first_state(schema_of("a int")))
    ledger.commit("create")
    ledger.commit("append", add=[data_file("f")], app=("job", 7))
    ledger.drain(delta(storage))

    snapshot = read_snapshot(storage, ROOT)

    assert snapshot.version == 1
    assert snapshot.timestamps == {0: T0, 1: T0 + 1000}
    assert snapshot.txns["job"].version == 7
    assert snapshot.metadata.name == "t"
    assert snapshot.protocol.min_writer == 7
    assert log_versions(storage, ROOT) == [0, 1]


def test_a_path_removed_and_added_again_is_there() -> None:
    storage = log_of(STATE + add("f"), remove("f"), add("f", size=2))

    snapshots = [read_snapshot(storage, ROOT, v).files for v in range(3)]

    assert [sorted(s) for s in snapshots] == [["f"], [], ["f"]]
    assert snapshots[2]["f"].size_bytes == 2


def test_a_file_given_a_deletion_vector_stays_with_the_new_one() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    second = {**vector, "offset": 1}
    storage = log_of(
        STATE + add("f"),
        add("f", deletionVector=vector) + remove("f"),
        add("f", deletionVector=second) + remove("f", deletionVector=vector),
    )

    (file,) = read_snapshot(storage, ROOT).files.values()

    assert file.deletion_vector is not None
    assert file.deletion_vector.unique_id == "ux@1"


def test_nothing_a_gap_and_a_cleaned_log_are_three_different_errors(
    storage: MemoryStorage,
) -> None:
    ledger = FakeLedger(first_state(schema_of("a int")))
    ledger.commit("create")
    for number in range(12):
        ledger.commit("append", add=[data_file(str(number))])
    with pytest.raises(ObjectMissing):
        read_snapshot(storage, ROOT)
    ledger.drain(delta(storage))

    with pytest.raises(VersionNotFound, match="no version 13"):
        read_snapshot(storage, ROOT, 13)
    with pytest.raises(VersionNotFound):
        read_snapshot(storage, ROOT, -1)
    storage.delete(f"{ROOT}/{commit_path(Version(11))}")
    with pytest.raises(DataCorrupt, match="version 11 is missing"):
        read_snapshot(storage, ROOT)
    storage.delete(f"{ROOT}/{commit_path(Version(3))}")
    with pytest.raises(DataCorrupt, match="version 3 is missing"):
        read_snapshot(storage, ROOT, 5)
    for version in range(3):
        storage.delete(f"{ROOT}/{commit_path(Version(version))}")
    with pytest.raises(VersionNotFound, match="no longer"):
        read_snapshot(storage, ROOT, 3)
    with pytest.raises(VersionNotFound, match="no longer"):
        read_snapshot(storage, ROOT, 5)
    assert len(read_snapshot(storage, ROOT, 10).files) == 10


@pytest.mark.parametrize(
    "line",
    [
        *("{", "[]", "7", '{"add":3}', '{"add":{"path":"f"}}', '{"txn":{"appId":1,"version":1}}'),
        '{"protocol":{"minReaderVersion":"1","minWriterVersion":2}}',
    ],
)
def test_a_broken_line_is_named(line: str) -> None:
    storage = log_of(STATE, "\n\n" + line)

    with pytest.raises(DataCorrupt) as caught:
        read_snapshot(storage, ROOT)

    assert caught.value.context["path"] == f"{ROOT}/{commit_path(Version(1))}"
    assert caught.value.context["line"] == 3


def test_a_log_without_metadata_is_corrupt() -> None:
    with pytest.raises(DataCorrupt, match="no protocol or no metadata"):
        read_snapshot(log_of(add("f")), ROOT)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100])
def test_a_broken_checkpoint_is_named(content: bytes) -> None:
    storage = log_of(STATE)
    storage.put_if_absent(f"{ROOT}/{checkpoint_path(Version(0))}", content)

    with pytest.raises(DataCorrupt, match="checkpoint"):
        read_snapshot(storage, ROOT)


def test_a_parquet_file_that_is_no_checkpoint_is_corrupt() -> None:
    storage = log_of(STATE)
    with storage.open_output(f"{ROOT}/{checkpoint_path(Version(0))}") as output:
        pq.write_table(pa.table({"add": [1, 2]}), output)

    with pytest.raises(DataCorrupt):
        read_snapshot(storage, ROOT)


def test_checkpoints_in_parts_count_only_when_complete(storage: MemoryStorage) -> None:
    ledger = FakeLedger(first_state(schema_of("a int")))
    view = ledger.commit("create", add=[data_file(str(n)) for n in range(5)])
    ledger.drain(delta(storage))
    delta(storage).publish(ledger, view, "checkpoint")
    whole = f"{ROOT}/{checkpoint_path(Version(0))}"
    table = pq.read_table(storage.open_input(whole))
    expected = stripped(read_snapshot(storage, ROOT))
    storage.delete(whole)
    storage.delete(f"{ROOT}/{commit_path(Version(0))}")
    for part, rows in ((1, table.slice(0, 3)), (2, table.slice(3))):
        if part == 2:
            with pytest.raises(ObjectMissing):
                read_snapshot(storage, ROOT)
        with storage.open_output(f"{LOG}/{0:020}.checkpoint.{part:010}.{2:010}.parquet") as output:
            pq.write_table(rows, output)

    assert stripped(read_snapshot(storage, ROOT)) == expected


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_checkpoints_with_sidecars_are_read(suffix: str) -> None:
    storage = MemoryStorage("foreign")
    sidecar = pa.table({"add": [{"path": "a%20b", "size": 3, "partitionValues": None}]})
    with storage.open_output(f"{LOG}/_sidecars/s1.parquet") as output:
        pq.write_table(sidecar, output)
    top = [json.loads(line) for line in STATE.splitlines()] + [{"sidecar": {"path": "s1.parquet"}}]
    path = f"{LOG}/{4:020}.checkpoint.{uuid.UUID(int=1)}.{suffix}"
    if suffix == "json":
        storage.put_if_absent(path, "\n".join(map(json.dumps, top)).encode())
    else:
        with storage.open_output(path) as output:
            pq.write_table(pa.Table.from_pylist(top, _schema(top)), output)

    snapshot = read_snapshot(storage, ROOT)

    assert snapshot.version == 4
    assert snapshot.files["a b"].size_bytes == 3


def _schema(rows: list[dict[str, Any]]) -> pa.Schema:
    return pa.schema([(k, pa.infer_type([v])) for row in rows for k, v in row.items()])


def test_other_files_in_the_log_are_passed_over() -> None:
    storage = log_of(STATE, add("f"))
    for name in ("_last_checkpoint", "x.json", f"{1:020}.crc", f"{0:020}.{1:020}.compacted.json"):
        storage.put_if_absent(f"{LOG}/{name}", b"nonsense")

    assert set(read_snapshot(storage, ROOT).files) == {"f"}
