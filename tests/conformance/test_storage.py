"""What every storage promises, asked of each of them."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from unittest.mock import ANY

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.model.errors import InvalidName, ObjectMissing, StorageError
from lakebed.storage import Stat, Storage, open_storage
from lakebed.storage.local import LocalStorage
from lakebed.storage.objects.storage import ObjectStorage
from tests.stores import Bucket, kinds, new_bucket

UNSAFE = [
    "/",
    "/etc/passwd",
    "..",
    "../outside",
    "a/../../outside",
    "a/./b",
    "a//b",
    "a/",
    "%2e%2e/outside",
    "a/%2E%2E",
    ".%2e/outside",
    "%252e%252e/outside",
    "a%2f..%2fb",
    "..\\outside",
    "a\\b",
    "%5c..%5coutside",
    "a\0b",
    "lone \udc80 surrogate",
    ".tmp-0123",
    "a/.tmp-0123/b",
]
STORES = kinds()
ODD_BUT_SAFE = [
    "grüße/東京/🦆.parquet",
    "ns%2Fx/100%.parquet",
    "day=2024-01-01 00%3A00%3A00/part 1.parquet",
    "a+b&c=d?e#f/'quoted'.json",
    "..a/b..c/...",
    ".hidden/_delta_log/x",
    "line\nbreak",
]
CALLS: dict[str, Callable[[Storage, str], object]] = {
    "get": lambda storage, path: storage.get(path),
    "input": lambda storage, path: storage.open_input(path),
    "output": lambda storage, path: storage.open_output(path),
    "put": lambda storage, path: storage.put_if_absent(path, b""),
    "replace": lambda storage, path: storage.replace(path, b""),
    "stat": lambda storage, path: storage.stat(path),
    "delete": lambda storage, path: storage.delete(path),
    "list": lambda storage, path: storage.list(path),
    "location": lambda storage, path: storage.location(path),
}
PUTTER = """
import json, sys
from lakebed.storage import open_storage
root, options, letter = sys.argv[1:]
storage = open_storage(root, json.loads(options))
print("ready", flush=True)
for path in sys.stdin.read().split():
    print(storage.put_if_absent(path, letter.encode() * 100_000), flush=True)
"""


@pytest.fixture(
    params=["local", "memory", *(pytest.param(s, marks=pytest.mark.objects) for s in STORES)]
)
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Bucket:
    match request.param:
        case "local":
            return Bucket(str(tmp_path / "ware house"))
        case "memory":
            return Bucket("memory://")
        case kind:
            return new_bucket(kind)


@pytest.fixture
def options(bucket: Bucket) -> Mapping[str, str] | None:
    return bucket.options


@pytest.fixture
def storage(bucket: Bucket) -> Storage:
    return open_storage(bucket.uri, bucket.options)


def keeps_times(storage: Storage) -> bool:
    return not isinstance(storage, ObjectStorage)


def paths(storage: Storage, prefix: str = "") -> list[str]:
    return [stat.path for stat in storage.list(prefix)]


def test_what_was_put_is_read_back(storage: Storage) -> None:
    won = storage.put_if_absent("ns/t/_delta_log/0.json", b"zero")

    assert won is True
    assert storage.get("ns/t/_delta_log/0.json") == b"zero"
    assert storage.open_input("ns/t/_delta_log/0.json").read() == b"zero"


def test_an_empty_object_is_an_object(storage: Storage) -> None:
    storage.put_if_absent("empty", b"")

    assert storage.get("empty") == b""
    assert paths(storage) == ["empty"]


def test_put_over_something_changes_nothing(storage: Storage) -> None:
    storage.put_if_absent("a", b"first", modified_ms=1_000)

    assert storage.put_if_absent("a", b"second", modified_ms=2_000) is False
    assert storage.get("a") == b"first"
    assert storage.stat("a") == Stat("a", 5, 1_000 if keeps_times(storage) else ANY)
    assert paths(storage) == ["a"]


def test_the_modification_time_is_the_one_given_where_it_can_be_kept(storage: Storage) -> None:
    storage.put_if_absent("a", b"abc", modified_ms=1_700_000_000_123)

    expected = Stat("a", 3, 1_700_000_000_123 if keeps_times(storage) else ANY)
    assert storage.stat("a") == expected
    assert list(storage.list("")) == [expected]


def test_without_a_given_time_the_clock_is_used(storage: Storage) -> None:
    storage.put_if_absent("a", b"")
    with storage.open_output("b"):
        pass

    stats = list(storage.list(""))
    assert all(stat.modified_ms > 1_700_000_000_000 for stat in stats)
    assert abs(stats[0].modified_ms - stats[1].modified_ms) < 60_000


def test_a_bundle_is_all_there_when_its_block_ends_in_the_order_of_its_puts(
    storage: Storage,
) -> None:
    storage.put_if_absent("t/old", b"old")
    order: list[str] = []

    with storage.bundle(order.append) as bundle:
        assert bundle.put_if_absent("t/b", b"1", modified_ms=42) is True
        assert bundle.put_if_absent("t/old", b"other") is False
        assert bundle.put_if_absent("u/a", b"2") is True
        bundle.replace("t/hint", b"3")
        assert bundle.get("t/old") == b"old"
        assert bundle.location("t/b") == storage.location("t/b")

    assert order == ["t/b", "u/a", "t/hint"]
    found = [storage.get(path) for path in ("t/b", "t/old", "u/a", "t/hint")]
    assert found == [b"1", b"old", b"2", b"3"]
    if keeps_times(storage):
        stat = storage.stat("t/b")
        assert stat is not None
        assert stat.modified_ms == 42


def test_replace_writes_and_overwrites(storage: Storage) -> None:
    storage.replace("t/metadata/version-hint.text", b"1")
    storage.replace("t/metadata/version-hint.text", b"22")

    assert storage.get("t/metadata/version-hint.text") == b"22"
    assert paths(storage) == ["t/metadata/version-hint.text"]


def test_readers_of_a_replaced_object_see_one_whole_value(storage: Storage) -> None:
    values = [letter.encode() * 50_000 for letter in "abcdefgh"]
    storage.replace("hint", values[0])

    def replace_often() -> None:
        for value in values * 5:
            storage.replace("hint", value)

    with ThreadPoolExecutor(2) as pool:
        writes = pool.submit(replace_often)
        seen = set()
        while not writes.done():
            seen.add(storage.get("hint"))
        writes.result()

    assert seen <= set(values)


@pytest.mark.parametrize("read", ["get", "open_input"])
def test_reading_what_is_missing_says_which_object(storage: Storage, read: str) -> None:
    storage.put_if_absent("folder/object", b"")

    for path in ("nothing", "folder/nothing", "folder", "folder/object/below"):
        with pytest.raises(ObjectMissing, match=path) as caught:
            getattr(storage, read)(path)
        assert caught.value.hint


def test_stat_of_what_is_missing_or_a_folder_is_none(storage: Storage) -> None:
    storage.put_if_absent("folder/object", b"")

    for path in ("nothing", "folder/nothing", "folder", "folder/object/below"):
        assert storage.stat(path) is None


def test_delete_removes_one_object_and_may_be_repeated(storage: Storage) -> None:
    storage.put_if_absent("a/b", b"")
    storage.put_if_absent("a/c", b"")

    storage.delete("a/b")
    storage.delete("a/b")
    storage.delete("never/was")
    storage.delete("a")
    storage.delete("a/c/below")

    assert paths(storage) == ["a/c"]


def test_a_deleted_path_can_be_written_again(storage: Storage) -> None:
    storage.put_if_absent("a/b", b"old")
    storage.delete("a/b")

    assert storage.put_if_absent("a/b", b"new") is True
    assert storage.get("a/b") == b"new"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_path_that_could_leave_the_root_is_refused(
    storage: Storage, call: Callable[[Storage, str], object]
) -> None:
    for path in UNSAFE:
        with pytest.raises(InvalidName) as caught:
            call(storage, path)
        assert caught.value.hint

    assert paths(storage) == []


def test_the_root_itself_is_no_object(storage: Storage) -> None:
    with pytest.raises(InvalidName):
        storage.get("")
    with pytest.raises(InvalidName):
        storage.put_if_absent("", b"")


@pytest.mark.parametrize("path", ODD_BUT_SAFE)
def test_odd_names_round_trip(storage: Storage, path: str) -> None:
    if isinstance(storage, ObjectStorage) and "\n" in path:
        with pytest.raises(InvalidName, match="control"):
            storage.put_if_absent(path, b"1")
        return
    storage.put_if_absent(path, b"1")
    storage.replace(path, b"22")

    assert storage.get(path) == b"22"
    assert storage.open_input(path).read() == b"22"
    assert paths(storage) == [path]
    storage.delete(path)
    with storage.open_output(path) as output:
        output.write(b"333")
    assert storage.get(path) == b"333"


def test_list_is_sorted_by_whole_path_at_every_depth(storage: Storage) -> None:
    written = ["b", "a/z", "a-b", "a.b", "a/b/c", "a/b.c", "a0", "é", "A"]
    for path in written:
        storage.put_if_absent(path, b"")

    assert paths(storage) == sorted(written)


def test_list_takes_a_folder_not_the_start_of_a_name(storage: Storage) -> None:
    for path in ("ns/t/1", "ns/t/data/2", "ns/t2/3", "ns/t-4", "other"):
        storage.put_if_absent(path, b"")

    assert paths(storage, "ns/t") == ["ns/t/1", "ns/t/data/2"]
    assert paths(storage, "ns") == ["ns/t-4", "ns/t/1", "ns/t/data/2", "ns/t2/3"]


def test_list_of_what_is_missing_is_empty(storage: Storage) -> None:
    assert paths(storage) == []

    storage.put_if_absent("a/b", b"")

    assert paths(storage, "nothing/here") == []
    assert paths(storage, "a/b") == []


def test_list_streams_and_bears_deletes_on_the_way(storage: Storage) -> None:
    for number in range(20):
        storage.put_if_absent(f"f{number % 2}/{number:02}", b"")

    listing = storage.list("")
    first = next(listing)
    for path in ("f0/02", "f1/01", "f1/19"):
        storage.delete(path)
    rest = [stat.path for stat in listing]

    assert first.path == "f0/00"
    gone = {"f0/02", "f1/01", "f1/19"}
    assert len(set(rest) - gone) == 16
    # A store tells what there was when it was asked.
    assert isinstance(storage, ObjectStorage) or not gone & set(rest)


def test_an_output_is_seen_only_after_close(storage: Storage) -> None:
    output = storage.open_output("ns/t/data/1.parquet")
    assert output.write(b"abc") == 3
    output.write(memoryview(b"def"))
    output.flush()

    assert output.tell() == 6
    assert not output.closed
    assert storage.stat("ns/t/data/1.parquet") is None
    assert paths(storage) == []

    output.close()
    output.close()

    assert output.closed
    assert storage.get("ns/t/data/1.parquet") == b"abcdef"
    assert paths(storage) == ["ns/t/data/1.parquet"]


def test_an_aborted_output_leaves_nothing(storage: Storage) -> None:
    output = storage.open_output("a/b")
    output.write(b"abc")

    output.abort()
    output.abort()
    output.close()

    assert output.closed
    assert paths(storage) == []
    assert storage.put_if_absent("a/b", b"") is True


def test_an_output_block_that_fails_leaves_nothing(storage: Storage) -> None:
    def fail() -> None:
        with storage.open_output("a/b") as output:
            output.write(b"abc")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert paths(storage) == []


def test_writing_to_a_closed_output_is_refused(storage: Storage) -> None:
    with storage.open_output("a") as output:
        output.write(b"1")

    with pytest.raises(ValueError, match="closed"):
        output.write(b"2")
    assert storage.get("a") == b"1"


def test_an_output_is_not_opened_over_something(storage: Storage) -> None:
    storage.put_if_absent("a", b"first")

    with pytest.raises(StorageError, match="'a'"):
        storage.open_output("a")
    assert storage.get("a") == b"first"


def test_of_two_outputs_for_one_path_the_first_to_close_wins(storage: Storage) -> None:
    one, two = storage.open_output("a"), storage.open_output("a")
    one.write(b"one")
    two.write(b"two")
    two.close()

    with pytest.raises(StorageError, match="'a'"):
        one.close()
    assert storage.get("a") == b"two"
    assert paths(storage) == ["a"]


def test_parquet_is_written_and_read_through_the_storage(storage: Storage) -> None:
    table = pa.table({"id": range(10_000), "name": [f"n{i % 7}" for i in range(10_000)]})

    with storage.open_output("t/data/1.parquet") as output:
        with pq.ParquetWriter(output, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=1_000):
                writer.write_batch(batch)
        assert storage.stat("t/data/1.parquet") is None
        written = output.tell()

    stat = storage.stat("t/data/1.parquet")
    assert stat is not None
    assert stat.size_bytes == written
    assert pq.read_table(storage.open_input("t/data/1.parquet")) == table
    assert pq.ParquetFile(storage.open_input("t/data/1.parquet")).num_row_groups == 10


def test_an_abandoned_parquet_writer_does_not_publish_half_a_file(storage: Storage) -> None:
    output = storage.open_output("a.parquet")
    writer = pq.ParquetWriter(output, pa.schema({"id": pa.int64()}))
    writer.write_table(pa.table({"id": [1, 2]}))

    del writer
    output.abort()

    assert paths(storage) == []


def test_of_16_threads_that_put_one_path_exactly_one_wins(storage: Storage) -> None:
    barrier = Barrier(16)
    wanted = [f"t/{number}/log" for number in range(10)]

    def put(letter: str) -> list[bool]:
        wins = []
        for path in wanted:
            barrier.wait()
            wins.append(storage.put_if_absent(path, letter.encode() * 50_000))
        return wins

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(put, "abcdefghijklmnop"))

    for path, outcomes in zip(wanted, zip(*won, strict=True), strict=True):
        winner = "abcdefghijklmnop"[outcomes.index(True)]
        assert outcomes.count(True) == 1
        assert storage.get(path) == winner.encode() * 50_000
    assert paths(storage) == sorted(wanted)


@pytest.mark.parametrize("kind", ["local", pytest.param("s3", marks=pytest.mark.objects)])
def test_of_8_processes_that_put_one_path_exactly_one_wins(tmp_path: Path, kind: str) -> None:
    bucket = new_bucket(kind) if kind == "s3" else Bucket(str(tmp_path / "w"))
    letters = "abcdefgh"
    wanted = [f"t/{number}/log" for number in range(20)]
    command = [sys.executable, "-c", PUTTER, bucket.uri, json.dumps(bucket.options)]
    pipe = subprocess.PIPE
    putters = [subprocess.Popen([*command, x], stdin=pipe, stdout=pipe, text=True) for x in letters]
    for putter in putters:
        assert putter.stdout is not None
        assert putter.stdout.readline() == "ready\n"

    with ThreadPoolExecutor(len(putters)) as pool:
        answers = list(pool.map(lambda putter: putter.communicate("\n".join(wanted))[0], putters))

    storage = open_storage(bucket.uri, bucket.options)
    outcomes = zip(*(answer.split() for answer in answers), strict=True)
    for path, outcome in zip(wanted, outcomes, strict=True):
        assert outcome.count("True") == 1
        assert storage.get(path) == letters[outcome.index("True")].encode() * 100_000
    assert paths(storage) == sorted(wanted)
    assert [putter.returncode for putter in putters] == [0] * len(putters)


def test_threads_write_into_new_folders_at_once(storage: Storage) -> None:
    def put(number: int) -> bool:
        return storage.put_if_absent(f"x/{number % 3}/y/{number % 5}/{number}", b"")

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(put, range(150)))

    assert len(paths(storage)) == 150


def test_the_root_uri_opens_the_same_bytes(
    storage: Storage, options: Mapping[str, str] | None
) -> None:
    storage.put_if_absent("a", b"abc")

    again = open_storage(storage.root_uri, options)

    assert again.get("a") == b"abc"
    assert again.root_uri == storage.root_uri


def test_locations_are_absolute_and_below_the_root(storage: Storage) -> None:
    root = storage.location("")

    assert storage.location("ns/t") == f"{root}/ns/t"
    absolute = "/" if isinstance(storage, LocalStorage) else storage.root_uri
    assert root.startswith(absolute)
    assert "%20" not in root


def test_delete_folder_removes_everything_below_it_and_nothing_beside_it(storage: Storage) -> None:
    for path in ("t/a", "t/b/c", "t2/a"):
        storage.put_if_absent(path, b"x")

    storage.delete_folder("t")
    storage.delete_folder("t")

    assert [s.path for s in storage.list("")] == ["t2/a"]
    assert storage.put_if_absent("t/b/c", b"again")
