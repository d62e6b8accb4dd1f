"""The fence: stock Delta writers refuse managed tables; what they may still do is harmless."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from deltalake.exceptions import CommitFailedError

from lakebed.formats.delta.log import log_versions
from lakebed.formats.delta.read import read_snapshot
from lakebed.storage.local import LocalStorage
from tests.unit.formats.delta.real_files import write_file
from tests.unit.formats.delta.rows import ROOT, FakeLedger, delta, first_state, schema_of

ROW = pa.table({"id": pa.array([1], pa.int64())})


def merge(path: str) -> object:
    merging = DeltaTable(path).merge(ROW, "s.id = t.id", source_alias="s", target_alias="t")
    return merging.when_matched_delete().execute()


def vacuum(path: str) -> object:
    table = DeltaTable(path)
    return table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)


WRITES: dict[str, Callable[[str], object]] = {
    "append": lambda path: write_deltalake(path, ROW, mode="append"),
    "overwrite": lambda path: write_deltalake(path, ROW, mode="overwrite"),
    "delete": lambda path: DeltaTable(path).delete("id = 1"),
    "update": lambda path: DeltaTable(path).update({"id": "5"}),
    "merge": merge,
    "compact": lambda path: DeltaTable(path).optimize.compact(),
    "z-order": lambda path: DeltaTable(path).optimize.z_order(["id"]),
    "restore": lambda path: DeltaTable(path).restore(1),
    "vacuum": vacuum,
    "feature": lambda path: DeltaTable(path).alter.add_feature(TableFeatures.AppendOnly),
}


@pytest.fixture
def ledger() -> FakeLedger:
    return FakeLedger(first_state(schema_of("id long")))


@pytest.fixture
def storage(tmp_path: Path, ledger: FakeLedger) -> LocalStorage:
    """A managed table of twelve commits, beside files that only the rows know."""
    storage = LocalStorage(tmp_path)
    state = ledger.state(ledger.head().state_id)
    ledger.commit("create")
    for number in range(12):
        file = write_file(storage, state, f"{number}.parquet", [{"id": number}])
        ledger.commit("append", add=[file])
    ledger.drain(delta(storage))
    storage.put_if_absent(f"{ROOT}/metadata/00000.metadata.json", b"{}")
    storage.put_if_absent(f"{ROOT}/data/being-written.parquet", b"PAR1")
    return storage


@pytest.mark.parametrize("name", WRITES)
def test_a_stock_writer_refuses_and_leaves_the_table_alone(
    storage: LocalStorage, name: str
) -> None:
    path = storage.location(ROOT)
    before = DeltaTable(path).to_pyarrow_table().sort_by("id")
    known = {s.path for s in storage.list(ROOT)}

    with pytest.raises(CommitFailedError, match="lakebedManaged"):
        WRITES[name](path)

    assert log_versions(storage, ROOT)[-1] == 12
    assert known <= {s.path for s in storage.list(ROOT)}
    assert DeltaTable(path).to_pyarrow_table().sort_by("id") == before


def test_a_vacuum_without_full_deletes_nothing_it_does_not_know(storage: LocalStorage) -> None:
    table = DeltaTable(storage.location(ROOT))

    assert table.vacuum(0, dry_run=False, enforce_retention_duration=False) == []
    assert storage.stat(f"{ROOT}/metadata/00000.metadata.json") is not None


def test_a_checkpoint_of_a_stock_tool_is_kept_and_published_over(
    storage: LocalStorage, ledger: FakeLedger
) -> None:
    DeltaTable(storage.location(ROOT)).create_checkpoint()
    path = next(s.path for s in storage.list(ROOT) if "12.checkpoint" in s.path)
    stock = storage.get(path)

    written = delta(storage).publish(ledger, ledger.view(ledger.head().version), "checkpoint")

    assert storage.get(path) == stock
    assert written.publications[0].size_bytes == len(stock)
    assert len(read_snapshot(storage, ROOT).files) == 12


def test_the_history_shows_our_times_authors_and_words(storage: LocalStorage) -> None:
    newest = DeltaTable(storage.location(ROOT)).history(1)[0]

    assert newest["operation"] == "WRITE"
    assert newest["userName"] == "ada"
    assert newest["timestamp"] == newest["inCommitTimestamp"]
    assert newest["version"] == 12
