"""The publisher: names, bytes, order, checkpoints, foreign files, late starts, crashes."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakebed.formats.delta.checkpoint import SCHEMA
from lakebed.formats.delta.log import checkpoint_path, commit_path, log_versions
from lakebed.formats.delta.read import read_snapshot
from lakebed.formats.delta.whole_state import retention_ms
from lakebed.model.errors import DataCorrupt, ForeignCommit
from lakebed.model.history import DELTA, PublicationRecord
from lakebed.model.ids import Version
from lakebed.storage.local import LocalStorage
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

HINT = f"{ROOT}/_delta_log/_last_checkpoint"
DAY_MS = 86_400_000


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage("test")


def ledger_of(**more: Any) -> FakeLedger:
    return FakeLedger(first_state(schema_of("a int, b string"), **more))


def lines(storage: MemoryStorage, version: int) -> list[dict[str, Any]]:
    data = storage.get(f"{ROOT}/{commit_path(Version(version))}")
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def words(storage: MemoryStorage, version: int) -> list[str]:
    return [word for line in lines(storage, version) for word in line]


def grow(ledger: FakeLedger, commits: int) -> None:
    for number in range(commits):
        ledger.commit("append", add=[data_file(f"{number}.parquet")])


def hint(storage: MemoryStorage) -> dict[str, int]:
    found: dict[str, int] = json.loads(storage.get(HINT))
    return found


def test_a_created_table_begins_with_commit_info_protocol_and_metadata(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of(comment="orders")
    ledger.commit("create", message="hello")

    ledger.drain(delta(storage))

    info, protocol, metadata = lines(storage, 0)
    assert list(info["commitInfo"]) == [
        *("timestamp", "inCommitTimestamp", "operation", "operationParameters"),
        *("isBlindAppend", "engineInfo", "txnId", "userName", "userMetadata"),
    ]
    assert info["commitInfo"]["inCommitTimestamp"] == T0
    assert info["commitInfo"]["operation"] == "CREATE TABLE"
    assert info["commitInfo"]["userMetadata"] == "hello"
    assert protocol["protocol"] == {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["inCommitTimestamp", "lakebedManaged"],
    }
    assert metadata["metaData"]["name"] == "t"
    assert metadata["metaData"]["description"] == "orders"
    assert metadata["metaData"]["createdTime"] == T0
    assert metadata["metaData"]["configuration"] == {"delta.enableInCommitTimestamps": "true"}


def test_a_commit_is_one_file_at_its_time_with_adds_before_removes(storage: MemoryStorage) -> None:
    ledger = ledger_of()
    ledger.commit("create", add=[data_file("a"), data_file("b")])
    view = ledger.commit("overwrite", add=[data_file("c")], remove=["data/a"], app=("job", 4))

    ledger.drain(delta(storage))

    assert words(storage, 0) == ["commitInfo", "protocol", "metaData", "add", "add"]
    assert words(storage, 1) == ["commitInfo", "txn", "add", "remove"]
    _, txn, add, remove = lines(storage, 1)
    time_ms = view.commit.time_ms
    assert txn["txn"] == {"appId": "job", "version": 4, "lastUpdated": time_ms}
    assert (add["add"]["modificationTime"], add["add"]["dataChange"]) == (time_ms, True)
    assert remove["remove"] == {
        "path": "data/a",
        "deletionTimestamp": time_ms,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": 101,
    }
    stat = storage.stat(f"{ROOT}/{commit_path(Version(1))}")
    assert stat is not None
    assert stat.modified_ms == time_ms


def test_metadata_is_written_only_when_delta_would_show_a_difference(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of()
    ledger.commit("create")
    ledger.commit("alter", properties={"owner": "ada"})
    ledger.commit("alter", iceberg_version=3)
    ledger.commit("alter", properties={"owner": "ada", "delta.feature.x": "supported"})
    ledger.commit("alter", delta_mapping=True)
    ledger.commit("alter", comment="new")
    ledger.commit("append", add=[data_file("a")])

    ledger.drain(delta(storage))

    written = [v for v in range(7) if "metaData" in words(storage, v)]
    assert written == [0, 1, 4, 5]
    assert all(("protocol" in words(storage, v)) == (v in written) for v in range(7))


@pytest.mark.parametrize(
    ("operation", "changes", "word"),
    [
        ("append", {}, "WRITE"),
        ("overwrite", {}, "WRITE"),
        ("delete", {}, "DELETE"),
        ("optimize", {}, "OPTIMIZE"),
        ("alter", {"properties": {"a": "b"}}, "SET TBLPROPERTIES"),
        ("alter", {"schema": schema_of("a int, b string, c int")}, "ADD COLUMNS"),
        ("alter", {"schema": schema_of("a int")}, "DROP COLUMNS"),
        ("alter", {"schema": schema_of("a int, c string")}, "RENAME COLUMN"),
        ("alter", {"schema": schema_of("a long, b string")}, "CHANGE COLUMN"),
    ],
)
def test_operations_have_deltas_words(
    storage: MemoryStorage, operation: str, changes: dict[str, Any], word: str
) -> None:
    ledger = ledger_of()
    ledger.commit("create")
    ledger.commit(operation, summary={"predicate": "a = 1"}, **changes)

    ledger.drain(delta(storage))

    info = lines(storage, 1)[0]["commitInfo"]
    assert info["operation"] == word
    assert all(isinstance(v, str) for v in info["operationParameters"].values())


def test_publishing_again_gives_the_same_bytes_and_records(storage: MemoryStorage) -> None:
    ledger = ledger_of()
    view = ledger.commit("create", add=[data_file("a")])
    publisher = delta(storage)

    first = publisher.publish(ledger, view, "commit")
    before = {s.path: storage.get(s.path) for s in storage.list("")}
    again = publisher.publish(ledger, view, "commit")
    checkpoints = [publisher.publish(ledger, view, "checkpoint") for _ in range(2)]
    elsewhere = MemoryStorage("other")
    delta(elsewhere).publish(ledger, view, "commit")
    fresh = delta(elsewhere).publish(ledger, view, "checkpoint")

    assert first == again
    assert before.items() <= {s.path: storage.get(s.path) for s in storage.list("")}.items()
    assert checkpoints[0] == checkpoints[1] == fresh


def test_our_own_commit_in_other_bytes_is_accepted_and_recorded_as_it_is(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of()
    view = ledger.commit("create")
    ledger.drain(delta(storage))
    ledger.rename("other")  # the name shows in the metadata, so the bytes would differ now

    again = delta(storage).publish(ledger, ledger.view(view.commit.version), "commit")

    assert again.publications[0] == ledger.all_publications()[0]


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[]", b"7\n", b'{"commitInfo":{"txnId":"x"}}\n', b'{"add":{"path":"f"}}\n'],
)
def test_a_foreign_file_at_our_version_is_never_overwritten(
    storage: MemoryStorage, content: bytes
) -> None:
    ledger = ledger_of()
    ledger.commit("create")
    path = f"{ROOT}/{commit_path(Version(0))}"
    storage.put_if_absent(path, content)
    storage.put_if_absent(f"{ROOT}/{commit_path(Version(1))}", b"{}")

    with pytest.raises(ForeignCommit) as caught:
        ledger.drain(delta(storage))

    assert storage.get(path) == content
    assert caught.value.context["path"] == path
    assert caught.value.context["foreign_versions"] == [0, 1]
    assert "lakebed publish" in caught.value.hint


def test_a_checkpoint_is_due_after_the_interval_and_is_asked_for_once(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of()
    ledger.commit("create")
    grow(ledger, 25)

    asked = ledger.drain(delta(storage), checkpoints=False)
    made = ledger.drain(delta(storage))

    assert [i for i, p in enumerate(asked) if p.follow_up] == [10, 20]
    assert [p.publications[0].path for p in made] == [
        checkpoint_path(Version(10)),
        checkpoint_path(Version(20)),
    ]
    assert hint(storage)["version"] == 20


def test_checkpoints_get_rarer_with_many_files_and_obey_the_table_property(
    storage: MemoryStorage,
) -> None:
    big = ledger_of()
    big.commit("create", add=[data_file(str(n)) for n in range(1500)])
    grow(big, 16)
    eager = ledger_of(properties={"publish.delta.checkpoint-interval": "2"})
    eager.commit("create")
    grow(eager, 5)

    slow = big.drain(delta(storage), checkpoints=False)
    fast = eager.drain(delta(MemoryStorage("other")), checkpoints=False)

    assert [i for i, p in enumerate(slow) if p.follow_up] == [16]
    assert [i for i, p in enumerate(fast) if p.follow_up] == [2, 4]


def test_the_checkpoint_has_the_schema_of_the_protocol_and_the_hint_describes_it(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of()
    ledger.commit("create", add=[data_file("a"), data_file("b")], app=("job", 1))
    ledger.commit("delete", remove=["data/a"])
    ledger.drain(delta(storage))
    view = ledger.view(Version(1))

    written = delta(storage).publish(ledger, view, "checkpoint").publications[0]

    path = f"{ROOT}/{written.path}"
    with pq.ParquetFile(storage.open_input(path)) as file:
        table = file.read()
        assert file.metadata.metadata is None
        assert file.schema_arrow.equals(SCHEMA)
    (add,) = table["add"].drop_null().to_pylist()
    (remove,) = table["remove"].drop_null().to_pylist()
    assert (add["path"], add["dataChange"], add["modificationTime"]) == ("data/b", False, T0)
    assert (remove["path"], remove["deletionTimestamp"]) == ("data/a", T0 + 1000)
    assert hint(storage) == {
        "version": 1,
        "size": 5,
        "sizeInBytes": len(storage.get(path)),
        "numOfAddFiles": 1,
    }


def test_the_hint_moves_forward_only_and_replaces_garbage(storage: MemoryStorage) -> None:
    ledger = ledger_of()
    ledger.commit("create")
    ledger.commit("append", add=[data_file("a")])
    publisher = delta(storage)
    ledger.drain(publisher)
    storage.replace(HINT, b"{broken")

    publisher.publish(ledger, ledger.view(Version(1)), "checkpoint")
    publisher.publish(ledger, ledger.view(Version(0)), "checkpoint")

    assert hint(storage)["version"] == 1


def test_a_valid_checkpoint_that_stands_there_is_kept_and_a_broken_one_reported(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of()
    view = ledger.commit("create", add=[data_file("a")])
    publisher = delta(storage)
    ledger.drain(publisher)
    ours = publisher.publish(ledger, view, "checkpoint").publications[0]
    whole = f"{ROOT}/{ours.path}"
    table = pq.read_table(storage.open_input(whole))
    for compression in ("zstd", None):
        storage.delete(whole)
        if compression:
            with storage.open_output(whole) as output:
                pq.write_table(table, output, compression=compression)
            kept = storage.get(whole)
            found = publisher.publish(ledger, view, "checkpoint").publications[0]
            assert storage.get(whole) == kept
            assert (found.size_bytes, found.digest) != (ours.size_bytes, ours.digest)
        else:
            storage.put_if_absent(whole, b"PAR1")
            with pytest.raises(DataCorrupt):
                publisher.publish(ledger, view, "checkpoint")


def test_old_tombstones_leave_the_checkpoint(storage: MemoryStorage) -> None:
    ledger = ledger_of()
    ledger.commit("create", add=[data_file(n) for n in "abc"])
    ledger.commit("delete", remove=["data/a"])
    ledger.commit("delete", remove=["data/b"], step_ms=8 * DAY_MS)
    ledger.commit("append", add=[data_file("a")], step_ms=DAY_MS)
    ledger.commit("delete", remove=["data/c"])
    ledger.drain(delta(storage))

    delta(storage).publish(ledger, ledger.view(Version(4)), "checkpoint")

    table = pq.read_table(storage.open_input(f"{ROOT}/{checkpoint_path(Version(4))}"))
    assert [r["path"] for r in table["remove"].drop_null().to_pylist()] == ["data/b", "data/c"]
    assert [r["path"] for r in table["add"].drop_null().to_pylist()] == ["data/a"]


@pytest.mark.parametrize(
    ("text", "days"),
    [("interval 2 days", 2), ("14 DAYS", 14), ("interval 1 week", 7), ("P3D", 7), ("", 7)],
)
def test_retention_is_the_property_when_it_is_a_plain_duration(text: str, days: int) -> None:
    assert retention_ms({"delta.deletedFileRetentionDuration": text}) == days * DAY_MS


def test_delta_turned_on_late_starts_with_everything_and_a_checkpoint(
    storage: MemoryStorage,
) -> None:
    ledger = ledger_of(formats=("iceberg",))
    ledger.commit("create", add=[data_file("a")], app=("job", 1))
    ledger.commit("append", add=[data_file("b")])
    ledger.commit("delete", remove=["data/a"])
    on = ledger.commit("alter", formats=("delta", "iceberg"), add=[data_file("c")])
    ledger.commit("alter", comment="later")

    ledger.drain(delta(storage))

    assert log_versions(storage, ROOT) == [3, 4]
    assert words(storage, 3) == ["commitInfo", "protocol", "metaData", "txn", "add", "add"]
    shown = lines(storage, 3)[2]["metaData"]["configuration"]
    assert shown["delta.inCommitTimestampEnablementVersion"] == "3"
    assert shown["delta.inCommitTimestampEnablementTimestamp"] == str(on.commit.time_ms)
    assert lines(storage, 4)[2]["metaData"]["configuration"] == shown
    assert hint(storage)["version"] == 3
    snapshot = read_snapshot(storage, ROOT)
    assert {a.path: a.modified_ms for a in snapshot.files.values()} == {
        "data/b": on.commit.time_ms,
        "data/c": on.commit.time_ms,
    }
    assert {p.kind for p in ledger.all_publications()} == {"start", "checkpoint", "commit"}


def test_a_later_checkpoint_of_a_late_log_says_what_the_log_says(storage: MemoryStorage) -> None:
    ledger = ledger_of(formats=())
    ledger.commit("create", add=[data_file(n) for n in "abc"])
    ledger.commit("delete", remove=["data/a"])
    ledger.commit("alter", formats=("delta",))
    ledger.commit("delete", remove=["data/b"])
    grow(ledger, 10)

    ledger.drain(delta(storage))

    assert hint(storage)["version"] == 12
    replayed = read_snapshot(without(storage, checkpoint_path(Version(12))), ROOT, 12)
    jumped = read_snapshot(storage, ROOT, 12)
    assert replace(jumped, timestamps={}) == without_data_change(replayed)
    table = pq.read_table(storage.open_input(f"{ROOT}/{checkpoint_path(Version(12))}"))
    assert [r["path"] for r in table["remove"].drop_null().to_pylist()] == ["data/b"]


def test_files_are_shown_anew_when_the_table_is_no_longer_shown_partitioned(
    storage: MemoryStorage,
) -> None:
    ledger = FakeLedger(first_state(schema_of("p string, b string"), ("p",)))
    ledger.commit("create", add=[data_file("a", 1, ("x",)), data_file("b", 1, ("y",))])
    ledger.commit("delete", remove=["data/b"])
    ledger.commit("append", add=[data_file("c", 1, ("",))], delta_partitioned=False, app=("j", 1))
    publisher = delta(storage)
    ledger.drain(publisher)

    anew = lines(storage, 2)

    assert words(storage, 2) == ["commitInfo", "protocol", "metaData", "txn", "add", "add"]
    assert [line["add"]["dataChange"] for line in anew[4:]] == [False, True]
    assert [line["add"]["partitionValues"] for line in anew[4:]] == [{}, {}]
    replayed = read_snapshot(storage, ROOT)
    publisher.publish(ledger, ledger.view(Version(2)), "checkpoint")
    jumped = read_snapshot(storage, ROOT)
    assert replace(jumped, timestamps={}) == without_data_change(replayed)


def test_turned_off_and_on_again_the_log_goes_on_after_its_gap(storage: MemoryStorage) -> None:
    ledger = ledger_of()
    ledger.commit("create", add=[data_file("a")])
    ledger.commit("alter", formats=())
    ledger.commit("append", add=[data_file("b")])
    ledger.commit("alter", formats=("delta",))
    ledger.commit("append", add=[data_file("c")])

    ledger.drain(delta(storage))

    assert log_versions(storage, ROOT) == [0, 3, 4]
    assert set(read_snapshot(storage, ROOT).files) == {"data/a", "data/b", "data/c"}
    assert set(read_snapshot(storage, ROOT, 0).files) == {"data/a"}


def test_large_tables_are_checkpointed_in_pieces(storage: MemoryStorage) -> None:
    ledger = ledger_of()
    ledger.commit("create", add=[data_file(str(n)) for n in range(10_000)])
    view = ledger.commit("delete", remove=[f"data/{n}" for n in range(100, 9000)])
    ledger.drain(delta(storage))

    delta(storage).publish(ledger, view, "checkpoint")

    with pq.ParquetFile(storage.open_input(f"{ROOT}/{checkpoint_path(Version(1))}")) as file:
        assert file.metadata.num_row_groups > 2
    assert set(read_snapshot(storage, ROOT).files) == {
        f"data/{n}" for n in (*range(100), *range(9000, 10_000))
    }


def test_an_unknown_kind_is_a_bug(storage: MemoryStorage) -> None:
    ledger = ledger_of()
    view = ledger.commit("create")

    with pytest.raises(AssertionError, match="purge"):
        delta(storage).publish(ledger, view, "purge")


@pytest.mark.parametrize("point", ["publish_delta_after_put", "publish_delta_after_checkpoint"])
def test_a_crash_between_two_steps_is_repaired_by_publishing_again(
    tmp_path: Path, point: str
) -> None:
    program = (
        "from pathlib import Path; from lakebed.storage.local import LocalStorage;"
        " from tests.unit.formats.delta.test_publish import late_table;"
        " from tests.unit.formats.delta.rows import delta; import sys;"
        " late_table().drain(delta(LocalStorage(Path(sys.argv[1]))))"
    )
    environment = {**os.environ, "LAKEBED_CRASH_AT": point, "PYTHONPATH": os.pathsep.join(sys.path)}
    died = subprocess.run([sys.executable, "-c", program, tmp_path], env=environment, check=False)
    storage = LocalStorage(tmp_path)

    ledger = late_table()
    ledger.drain(delta(storage))

    assert died.returncode != 0
    assert set(read_snapshot(storage, ROOT).files) == {"data/a"}
    assert storage.stat(HINT) is not None


def late_table() -> FakeLedger:
    ledger = ledger_of(formats=())
    ledger.commit("create", add=[data_file("a")])
    ledger.commit("alter", formats=("delta",))
    return ledger


def without(storage: MemoryStorage, *paths: str) -> MemoryStorage:
    copy = MemoryStorage("copy")
    for stat in storage.list(""):
        if stat.path not in {f"{ROOT}/{p}" for p in paths}:
            copy.put_if_absent(stat.path, storage.get(stat.path), modified_ms=stat.modified_ms)
    return copy


def without_data_change(snapshot: Any) -> Any:
    files = {p: replace(a, data_change=False) for p, a in snapshot.files.items()}
    return replace(snapshot, files=files, timestamps={})


def test_checkpoints_get_rarer_when_they_are_large_by_removed_files(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = ledger_of()
    ledger.commit("create")
    grow(ledger, 30)
    large = PublicationRecord(DELTA, "checkpoint", 0, Version(0), "x", 200_000, "")
    known = ledger.publications
    monkeypatch.setattr(
        ledger,
        "publications",
        lambda *asked: [large] if asked[1] == "checkpoint" else known(*asked),
    )

    asked = ledger.drain(delta(storage), checkpoints=False)

    assert [i for i, p in enumerate(asked) if p.follow_up] == [20]
