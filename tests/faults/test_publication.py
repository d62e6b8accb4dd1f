"""Publication fails: the commit stands, the write says so, and what waits is published later."""

import multiprocessing
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import lakebed
from lakebed.core.outbox import Outbox, Published
from lakebed.formats.delta.publish import DeltaPublisher
from lakebed.formats.iceberg import publish as iceberg_publish
from lakebed.formats.iceberg.names import Names
from lakebed.model.errors import LakebedError, StorageFull
from lakebed.model.history import OutboxRow
from lakebed.storage.claim import MARKER
from lakebed.storage.local import LocalStorage
from lakebed.storage.unfinished import Unfinished
from tests.faults.conftest import Place
from tests.faults.driver import SCHEMA, rows
from tests.faults.health import assert_healthy, delta_ids, digests, iceberg_ids
from tests.unit.formats.delta.rows import NoRows

Put = Callable[..., bool]


@pytest.fixture
def lake(place: Place) -> Iterator[lakebed.Lake]:
    with place.open(create=True, publish__retry__base_s=60) as lake:
        lake.create_table("a.t", SCHEMA).append(rows(0))
        yield lake


@contextmanager
def disk_full(part: str) -> Iterator[list[str]]:
    """No room for log and metadata files whose path has `part`; the attempts made meanwhile."""
    attempts: list[str] = []
    draft = LocalStorage.draft

    def begin(self: LocalStorage, path: str) -> Unfinished | None:
        if part in path and not path.endswith((MARKER, ".parquet")):
            attempts.append(path)
            raise StorageFull("no room", hint="free some space")
        return draft(self, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStorage, "draft", begin)
        yield attempts


@pytest.mark.parametrize(("part", "others"), [("_delta_log", iceberg_ids), ("metadata", delta_ids)])
def test_a_failed_publication_is_told_and_the_other_format_goes_on(
    lake: lakebed.Lake, part: str, others: Callable[[str], list[int]]
) -> None:
    table = lake.table("a.t")
    with disk_full(part), pytest.warns(lakebed.PublishWarning, match="not published: STORAGE_FULL"):
        commit = table.append(rows(1))

    assert (commit.version, commit.published) == (2, False)
    assert commit.reason == "STORAGE_FULL: no room"
    assert others(table.location) == [0, 1]
    [lag] = lake.status().lags
    assert (lag.table, lag.from_version, lag.error_code) == ("a.t", 2, "STORAGE_FULL")
    assert [c.published for c in table.history()] == [False, True, True]
    assert lake.check().findings == []
    assert_healthy(lake, {"a.t": [0, 1]})


def test_both_formats_of_a_version_are_recorded_in_one_transaction(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished: list[list[str]] = []
    finish = Outbox.finish

    def counted(self: Outbox, done: Sequence[tuple[OutboxRow, Published]]) -> None:
        finished.append([row.format for row, _ in done])
        finish(self, done)

    monkeypatch.setattr(Outbox, "finish", counted)

    assert lake.table("a.t").append(rows(1)).published
    assert finished == [["delta", "iceberg"]]


def test_back_off_is_kept_until_forced(lake: lakebed.Lake) -> None:
    table = lake.table("a.t")
    with disk_full("_delta_log") as attempts, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for n in (1, 2, 3):
            assert not table.append(rows(n)).published
        assert len(attempts) == 1, "only the first failed; the others waited for its time"
        lake.publish()
        assert len(attempts) == 2
    assert len(told) == 3

    with pytest.warns(lakebed.PublishWarning):
        assert not table.append(rows(4)).published, "the disk is fine, but it is not yet time"
    row = lake._parts.outbox.all_pending()[0][0]
    assert row.attempts == 2
    waited_ms = row.next_ms - lake._parts.outbox.all_pending()[1]
    assert 50_000 < waited_ms <= 120_000
    assert_healthy(lake, {"a.t": [0, 1, 2, 3, 4]})


def test_when_its_time_has_come_the_next_commit_publishes_everything(place: Place) -> None:
    with place.open(create=True, publish__retry__base_s=0) as lake:
        table = lake.create_table("a.t", SCHEMA)
        with disk_full("/"), pytest.warns(lakebed.PublishWarning):
            table.append(rows(1))

        assert table.append(rows(2)).published
        assert lake.status().lags == ()
        assert_healthy(lake, {"a.t": [1, 2]})


def test_the_next_open_publishes_what_waits(place: Place) -> None:
    with place.open(create=True, publish__retry__base_s=0) as lake:
        table = lake.create_table("a.t", SCHEMA)
        with disk_full("/"), pytest.warns(lakebed.PublishWarning):
            table.append(rows(1))

    place.open().close()  # waits for its worker

    assert (delta_ids(table_folder(place)), iceberg_ids(table_folder(place))) == ([1], [1])


@pytest.mark.parametrize("error", [RuntimeError("odd"), OSError(5, "I/O error"), KeyError("x")])
def test_no_error_of_a_publisher_reaches_the_write(lake: lakebed.Lake, error: Exception) -> None:
    def publish(*_: object) -> object:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaPublisher, "publish", publish)
        with pytest.warns(lakebed.PublishWarning):
            commit = lake.table("a.t").append(rows(1))

    assert not commit.published
    assert_healthy(lake, {"a.t": [0, 1]})


@pytest.mark.parametrize(
    "point",
    [
        "publish_iceberg_after_manifest",
        "publish_iceberg_after_list",
        "publish_iceberg_after_metadata",
    ],
)
def test_a_format_turned_off_in_the_middle_of_its_publication_starts_afresh(
    lake: lakebed.Lake, point: str
) -> None:
    table = lake.table("a.t")

    def stop(reached: str) -> None:
        if reached == point:
            raise OSError(5, "I/O error")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iceberg_publish, "crash_point", stop)
        with pytest.warns(lakebed.PublishWarning):
            assert not table.append(rows(1)).published
    table.set_formats(["delta"])
    table.append(rows(2))
    assert table.set_formats(["delta", "iceberg"]).published
    assert table.append(rows(3)).published

    assert lake.status().lags == ()
    assert_healthy(lake, {"a.t": [0, 1, 2, 3]})


@pytest.mark.parametrize("folder", ["_delta_log", "metadata"])
def test_a_folder_that_cannot_be_written_delays_only_publication(
    lake: lakebed.Lake, folder: str
) -> None:
    table = lake.table("a.t")
    path = Path(table.location, folder)
    path.rename(path.with_name("aside"))
    path.touch()

    with pytest.warns(lakebed.PublishWarning):
        commit = table.append(rows(1))

    assert (commit.published, commit.version) == (False, 2)
    assert table.to_arrow().num_rows == 2
    path.unlink()
    path.with_name("aside").rename(path)
    assert_healthy(lake, {"a.t": [0, 1]})


def foreign_log(lake: lakebed.Lake) -> Path:
    return Path(lake.table("a.t").location, "_delta_log", f"{2:020}.json")


def foreign_metadata(lake: lakebed.Lake) -> Path:
    table = lake.table("a.t")
    return Path(table.location, "metadata", f"{Names(table.uuid, 2).stem}.metadata.json")


@pytest.mark.parametrize("place_of", [foreign_log, foreign_metadata])
def test_a_file_we_did_not_write_is_never_overwritten(
    lake: lakebed.Lake, place: Place, place_of: Callable[[lakebed.Lake], Path]
) -> None:
    table, path = lake.table("a.t"), place_of(lake)
    path.write_text('{"commitInfo":{"operation":"WRITE"}}')

    with pytest.warns(lakebed.PublishWarning, match="FOREIGN_COMMIT"):
        commit = table.append(rows(1))
    with pytest.warns(lakebed.PublishWarning, match="FOREIGN_COMMIT"):
        table.append(rows(2))
    lake.publish()
    place.open().close()

    assert commit.reason is not None
    assert commit.reason.startswith("FOREIGN_COMMIT")
    assert path.read_text() == '{"commitInfo":{"operation":"WRITE"}}'
    status = lake.status()
    assert status.stopped
    [lag] = status.lags
    assert (lag.stopped, lag.waiting, lag.format) == (
        True,
        2,
        "delta" if place_of is foreign_log else "iceberg",
    )
    [finding] = lake.check().findings
    assert (finding.code, finding.table, finding.format) == ("FOREIGN_COMMIT", "a.t", lag.format)
    other = iceberg_ids if place_of is foreign_log else delta_ids
    assert other(table.location) == [0, 1, 2]
    assert lake.check(repair=True).findings, "repair does not touch it either"
    assert path.read_text() == '{"commitInfo":{"operation":"WRITE"}}'

    path.unlink()
    assert_healthy(lake, {"a.t": [0, 1, 2]})


def test_background_publication_is_finished_by_close(place: Place) -> None:
    with place.open(create=True) as lake:
        table = lake.create_table("a.t", SCHEMA)
        commits = [table.append(rows(n), publish="background") for n in range(5)]
        assert [(c.published, c.version) for c in commits] == [(False, n) for n in range(1, 6)]

    assert (delta_ids(table_folder(place)), iceberg_ids(table_folder(place))) == (
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4],
    )


def test_a_failing_worker_loses_nothing(place: Place) -> None:
    with disk_full("/") as attempts, place.open(create=True) as lake:
        lake.set_setting("publish.mode", "background")
        table = lake.create_table("a.t", SCHEMA)
        for n in range(5):
            table.append(rows(n))
    assert attempts

    with place.open() as lake:
        assert_healthy(lake, {"a.t": [0, 1, 2, 3, 4]})


def test_processes_that_drain_at_once_write_the_same_files(
    sqlite_place: Place, tmp_path: Path
) -> None:
    folder, kept = Path(sqlite_place.uri), tmp_path / "kept"
    with disk_full("/"), sqlite_place.open(create=True) as lake, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("a.t", "a.u"):
            table = lake.create_table(name, SCHEMA)
            for n in range(12):
                table.append(rows(n))
    shutil.copytree(folder, kept)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.map(drain, [sqlite_place.uri], chunksize=1)
        reference = digests(sqlite_place.warehouse)
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)

        pool.map(drain, [sqlite_place.uri] * 8, chunksize=1)

    assert digests(sqlite_place.warehouse) == reference
    with sqlite_place.open() as lake:
        assert_healthy(lake, {"a.t": list(range(12)), "a.u": list(range(12))})


def drain(uri: str) -> None:
    with lakebed.open(uri) as lake:
        lake.publish()


def test_a_data_file_deleted_by_hand_is_named_and_nothing_else_breaks(lake: lakebed.Lake) -> None:
    table = lake.table("a.t")
    [file] = table.files()
    Path(table.location, file.path).unlink()

    with pytest.raises(LakebedError) as caught:
        table.to_arrow()

    assert (caught.value.code, bool(caught.value.hint)) == ("OBJECT_MISSING", True)
    assert file.path in caught.value.message
    [finding] = lake.check().findings
    assert (finding.code, finding.path) == ("DATA_FILE_MISSING", file.path)
    assert table.append(rows(1)).published
    assert table.scan(where="id = 1").to_arrow().num_rows == 1
    assert table.overwrite(rows(2)).published
    assert table.to_arrow()["id"].to_pylist() == [2]


@pytest.mark.parametrize("pattern", ["_delta_log/*1.json", "metadata/*.metadata.json"])
def test_a_published_file_deleted_by_hand_is_found_and_repaired(
    lake: lakebed.Lake, pattern: str
) -> None:
    table = lake.table("a.t")
    gone = max(Path(table.location).glob(pattern))
    gone.unlink()

    assert {f.code for f in lake.check().findings} >= {"PUBLISHED_FILE_MISSING"}
    assert lake.check(repair=True).findings == []
    assert_healthy(lake, {"a.t": [0]})


def test_files_that_cannot_be_purged_are_told_and_tried_again(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: LocalStorage, path: str) -> None:
        raise StorageFull("busy", hint="wait")

    monkeypatch.setattr(LocalStorage, "delete_folder", refuse)
    with pytest.warns(lakebed.PublishWarning, match="not all deleted"):
        lake.drop_table("a.t", purge=True)
    assert lake.tables() == []
    assert len(lake.dropped_tables()) == 1
    monkeypatch.undo()

    lake.publish()

    assert lake.dropped_tables() == []


def table_folder(place: Place) -> str:
    return str(place.warehouse / "a" / "t")


def test_a_purge_that_stops_half_way_goes_on_later(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real, left = Path(lake.table("a.t").location), LocalStorage.delete, [3]

    def delete(self: LocalStorage, path: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise StorageFull("stopped", hint="go on later")
        real(self, path)

    monkeypatch.setattr(LocalStorage, "delete", delete)
    with pytest.warns(lakebed.PublishWarning, match="not all deleted"):
        lake.drop_table("a.t", purge=True)
    monkeypatch.undo()
    assert (folder / MARKER).exists(), "while anything stands, it is known whose it is"

    lake.publish()

    assert not folder.exists()
    assert lake.dropped_tables() == []


def test_who_publishes_a_version_second_records_nothing(lake: lakebed.Lake) -> None:
    """The lock of a table keeps two apart; should it fail, the row is taken by one of them."""
    with disk_full("/"), pytest.warns(lakebed.PublishWarning):
        lake.table("a.t").append(rows(1))
    outbox, publisher = lake._parts.outbox, DeltaPublisher(lake._parts.storage, setting, NoRows())
    row = next(r for r in outbox.all_pending()[0] if r.format == "delta")
    ledger = outbox.ledger(row.table_id)
    first, second = (publisher.publish(ledger, ledger.view(row.version), "commit") for _ in "ab")

    outbox.finish([(row, first)])
    outbox.finish([(row, replace(second, follow_up=("checkpoint",)))])

    assert first == second
    assert [r.format for r in outbox.all_pending()[0]] == ["iceberg"]
    assert_healthy(lake, {"a.t": [0, 1]})


def setting(name: str, properties: object) -> int:
    return 10
