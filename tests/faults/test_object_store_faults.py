"""Bad days of an object store: overload, lost answers, cut uploads, wrong keys, no conditions."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.model.errors import (
    StorageDenied,
    StorageError,
    StorageUnavailable,
    UnsupportedFeature,
)
from lakebed.storage.objects.draft import PART_BYTES
from lakebed.storage.probe import decides_races
from tests.faults.small_s3 import KEYS, SmallS3, small_s3
from tests.stores import new_bucket

PARTS = os.urandom(PART_BYTES * 2 + 1000)


@pytest.fixture
def s3() -> Iterator[SmallS3]:
    with small_s3() as server:
        yield server


def test_a_put_whose_answer_was_lost_is_known_to_be_ours(s3: SmallS3) -> None:
    s3.lost_answers = 1

    assert s3.storage().put_if_absent("log/0", b"mine") is True
    assert len([r for r in s3.requests if r.startswith("PUT")]) == 2


def test_a_put_that_lost_its_answer_and_the_race_says_so(s3: SmallS3) -> None:
    storage = s3.storage()
    s3.objects["/bucket/w/log/0"] = b"theirs"
    s3.overloaded = 1

    assert storage.put_if_absent("log/0", b"mine") is False
    assert storage.get("log/0") == b"theirs"


def test_the_same_bytes_put_again_are_not_a_win(s3: SmallS3) -> None:
    storage = s3.storage()
    storage.put_if_absent("log/0", b"same")

    assert storage.put_if_absent("log/0", b"same") is False


@pytest.mark.parametrize("call", ["put_if_absent", "replace", "get", "stat", "open_input"])
def test_an_overloaded_store_is_asked_again(s3: SmallS3, call: str) -> None:
    storage = s3.storage()
    storage.replace("a", b"1")
    s3.requests.clear()
    s3.overloaded = 2

    match call:
        case "put_if_absent":
            assert storage.put_if_absent("b", b"1") is True
        case "replace":
            storage.replace("a", b"2")
        case reading:
            assert getattr(storage, reading)("a")
    assert len(s3.requests) == 3


def test_a_store_that_stays_overloaded_is_an_error_that_may_be_tried_again(s3: SmallS3) -> None:
    s3.overloaded = 10_000
    storage = s3.storage(retry_s=0.3)

    for call in (lambda: storage.put_if_absent("a", b"1"), lambda: storage.get("a")):
        with pytest.raises(StorageUnavailable, match="SlowDown") as caught:
            call()
        assert caught.value.retryable
        assert "'a'" in caught.value.message


def test_a_part_that_is_cut_off_is_sent_again(s3: SmallS3) -> None:
    s3.cut_parts = 2
    storage = s3.storage()

    with storage.open_output("data/1") as output:
        output.write(PARTS)

    assert storage.get("data/1") == PARTS
    assert s3.uploads == {}


def test_an_upload_whose_last_answer_was_lost_is_whole(s3: SmallS3) -> None:
    storage = s3.storage()
    output = storage.open_output("data/1")
    output.write(PARTS[: PART_BYTES + 1])
    s3.lost_answers = 3  # of the two parts and the last step, in whatever order they go out

    output.close()

    assert storage.get("data/1") == PARTS[: PART_BYTES + 1]


def test_an_upload_that_is_given_up_leaves_nothing(s3: SmallS3) -> None:
    storage = s3.storage()

    def fail() -> None:
        with storage.open_output("data/1") as output:
            output.write(PARTS)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert s3.objects == {}
    assert s3.uploads == {}


def test_an_upload_that_fails_for_good_is_no_file(s3: SmallS3) -> None:
    storage = s3.storage(retry_s=0.3)
    s3.cut_parts = 10_000

    def write() -> None:
        with storage.open_output("data/1") as output:
            output.write(PARTS)

    with pytest.raises(StorageError):
        write()
    assert s3.objects == {}


def test_refused_keys_are_told_at_once_and_without_them(s3: SmallS3) -> None:
    s3.denies = True
    storage = s3.storage()

    for call in (lambda: storage.put_if_absent("a", b"1"), lambda: storage.get("a")):
        with pytest.raises(StorageDenied, match="SignatureDoesNotMatch") as caught:
            call()
        assert "secret" not in str(caught.value)
        assert "keys" in caught.value.hint
    assert len(s3.requests) == 2


def test_a_store_that_is_not_there_is_told_with_its_place() -> None:
    with small_s3() as server:
        storage = server.storage(retry_s=0.3)

    with pytest.raises(StorageUnavailable, match="s3://bucket/w"):
        storage.get("a")


@pytest.mark.objects
def test_a_bucket_that_is_gone_is_no_missing_object() -> None:
    from lakebed.storage import open_storage

    bucket = new_bucket()
    storage = open_storage("s3://lakebed-no-such-bucket/x", bucket.options)

    for call in (lambda: storage.put_if_absent("a", b"1"), lambda: storage.get("a")):
        with pytest.raises(StorageError, match="no bucket") as caught:
            call()
        assert caught.value.code == "STORAGE_ERROR"


def test_a_store_that_ignores_conditions_is_found_out(s3: SmallS3) -> None:
    assert decides_races(s3.storage())

    s3.ignores_conditions = True

    assert not decides_races(s3.storage())
    assert s3.objects == {}


def test_a_lake_in_a_folder_warns_about_a_store_that_ignores_conditions(
    s3: SmallS3, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    s3.ignores_conditions = True
    options = {**KEYS, "endpoint": s3.endpoint}

    with caplog.at_level(logging.WARNING):
        lakebed.init(tmp_path / "l", warehouse="s3://bucket/w", storage_options=options).close()

    assert "one host only" in caplog.text


def test_a_lake_in_postgres_refuses_a_store_that_ignores_conditions(
    s3: SmallS3, postgres_url: str
) -> None:
    s3.ignores_conditions = True
    options = {**KEYS, "endpoint": s3.endpoint}

    with pytest.raises(UnsupportedFeature, match="two writers"):
        lakebed.init(postgres_url, warehouse="s3://bucket/w", storage_options=options)


@pytest.fixture
def table(s3: SmallS3, tmp_path: Path) -> Iterator[lakebed.Table]:
    options = {**KEYS, "endpoint": s3.endpoint}
    with lakebed.init(tmp_path / "l", warehouse="s3://bucket/w", storage_options=options) as lake:
        table = lake.create_table("a.t", pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": [1]}))
        yield table


def test_a_store_that_takes_no_data_leaves_the_table_as_it_was(
    s3: SmallS3, table: lakebed.Table
) -> None:
    s3.denied_folder = "data"

    with pytest.raises(StorageDenied):
        table.append(pa.table({"id": [2]}))
    with pytest.raises(StorageDenied):
        table.update({"id": "id + 1"}, "id = 1")

    assert table.version == 1
    assert table.to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("folder", "kept"), [("metadata", "delta"), ("_delta_log", "iceberg"), ("_deletes", "delta")]
)
def test_a_store_that_fails_after_the_commit_gets_what_it_lacks_later(
    s3: SmallS3, table: lakebed.Table, tmp_path: Path, folder: str, kept: str
) -> None:
    table.append(pa.table({"id": [2, 3, 4]}))
    s3.denied_folder = folder

    with pytest.warns(lakebed.PublishWarning, match="STORAGE_DENIED"):
        commit = table.delete("id = 3")

    assert (commit.version, commit.published) == (3, False)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 4]
    options = {**KEYS, "endpoint": s3.endpoint}
    with lakebed.open(tmp_path / "l", storage_options=options) as other:
        assert {lag.format for lag in other.status().lags} == {"delta", "iceberg"} - {kept}
        s3.denied_folder = ""
        other.publish()
        assert other.status().lags == ()
        assert other.check().clean
