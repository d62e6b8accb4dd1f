"""Data files of a warehouse on S3 are read from it once, by any engine; then from the disk."""

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import lakebed
from lakebed import Lake
from tests.faults.proxy import Proxy
from tests.stores import Bucket, new_bucket

pytestmark = pytest.mark.objects
_READ = re.compile(rb"^(?:GET|HEAD) (\S+) HTTP/1", re.MULTILINE)
SUM = "SELECT sum(id)::BIGINT AS id, sum(octet_length(body))::BIGINT AS size FROM shop.t"
# Row 3 of each of the two files is deleted.
EXPECTED = {"id": sum(range(40)) - 3 - 23, "size": 38 * 100_000}


class Listening(Proxy):
    """A way to the store that hears which objects are asked for."""

    def __init__(self, endpoint: str) -> None:
        self.reads: list[str] = []
        super().__init__(endpoint)
        self.endpoint = f"http://127.0.0.1:{urlsplit(self.url).port}"

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 20):
                self.reads += [path.decode() for path in _READ.findall(data)]
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def data_reads(self) -> list[str]:
        return [path for path in self.reads if "/data/" in path]


@pytest.fixture(scope="module")
def bucket() -> Bucket:
    return new_bucket()


@pytest.fixture(scope="module")
def folder(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with two files of several blocks each, and a deleted row in both."""
    place = tmp_path_factory.mktemp("lake")
    with lakebed.open(
        place, create=True, warehouse=bucket.uri, storage_options=bucket.options
    ) as lake:
        lake.create_namespace("shop")
        made = lake.create_table("shop.t", "id long, body binary")
        for start in (0, 20):
            bodies = [os.urandom(100_000) for _ in range(20)]
            made.append(pa.table({"id": range(start, start + 20), "body": bodies}))
        made.delete("id IN (3, 23)")
    return place


@pytest.fixture
def store(bucket: Bucket) -> Iterator[Listening]:
    with closing(Listening(bucket.endpoint)) as listening:
        yield listening


def opened(folder: Path, bucket: Bucket, store: Listening, **settings: object) -> Lake:
    options = {**bucket.options, "endpoint": store.endpoint}
    return lakebed.open(folder, settings=settings, storage_options=options)


def total(rows: pa.Table) -> dict[str, int]:
    sizes = [len(body) for body in rows["body"].to_pylist()]
    return {"id": sum(rows["id"].to_pylist()), "size": sum(sizes)}


def by_datafusion(lake: Lake) -> dict[str, int]:
    batches = lake.datafusion().sql("SELECT id, body FROM shop.t").collect()
    return total(pa.Table.from_batches(batches))


ENGINES: dict[str, Callable[[Lake], dict[str, int]]] = {
    "arrow": lambda lake: total(lake.table("shop.t").scan().to_arrow()),
    "sql": lambda lake: lake.sql(SUM).to_arrow().to_pylist()[0],
    "duckdb": lambda lake: total(lake.table("shop.t").scan().to_duckdb().to_arrow_table()),
    "polars": lambda lake: total(lake.table("shop.t").scan().to_polars().collect().to_arrow()),
    "datafusion": by_datafusion,
}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_second_read_asks_the_store_for_nothing(
    engine: str, folder: Path, bucket: Bucket, store: Listening, tmp_path: Path
) -> None:
    cache = {"cache.dir": str(tmp_path / "cache"), "cache.size": "50 MB"}

    with opened(folder, bucket, store, **cache) as lake:
        assert ENGINES[engine](lake) == EXPECTED
        first = lake.status().cache
    assert len(store.data_reads()) >= 2
    store.reads.clear()
    with opened(folder, bucket, store, **cache) as lake:
        assert ENGINES[engine](lake) == EXPECTED
        second = lake.status().cache

    assert store.reads == []
    assert first is not None
    assert second is not None
    assert first.bytes_from_store > 3_900_000
    assert first.used_bytes >= first.bytes_from_store
    assert (second.hit_rate, second.misses, second.bytes_from_store) == (1.0, 0, 0)
    assert second.bytes_from_cache >= first.bytes_from_store


def test_what_one_engine_read_serves_the_others(
    folder: Path, bucket: Bucket, store: Listening, tmp_path: Path
) -> None:
    cache = {"cache.dir": str(tmp_path)}
    with opened(folder, bucket, store, **cache) as lake:
        ENGINES["arrow"](lake)
    store.reads.clear()

    with opened(folder, bucket, store, **cache) as lake:
        for engine in ENGINES.values():
            assert engine(lake) == EXPECTED

    assert store.reads == []


def test_a_cache_of_no_size_is_none(
    folder: Path, bucket: Bucket, store: Listening, tmp_path: Path
) -> None:
    cache = {"cache.dir": str(tmp_path / "cache"), "cache.size": 0}
    for _ in range(2):
        store.reads.clear()
        with opened(folder, bucket, store, **cache) as lake:
            assert ENGINES["arrow"](lake) == EXPECTED
            assert lake.status().cache is None
        assert len(store.data_reads()) >= 2

    assert not (tmp_path / "cache").exists()


def test_a_cache_smaller_than_the_table_still_gives_its_rows(
    folder: Path, bucket: Bucket, store: Listening, tmp_path: Path
) -> None:
    cache = {"cache.dir": str(tmp_path), "cache.size": "1500 KiB"}
    for _ in range(2):
        with opened(folder, bucket, store, **cache) as lake:
            assert ENGINES["arrow"](lake) == EXPECTED

    assert sum(path.stat().st_size for path in tmp_path.rglob("*-*") if path.is_file()) < 1500 << 10


def test_damaged_blocks_come_from_the_store_again(
    folder: Path, bucket: Bucket, store: Listening, tmp_path: Path
) -> None:
    cache = {"cache.dir": str(tmp_path)}
    with opened(folder, bucket, store, **cache) as lake:
        ENGINES["arrow"](lake)
    blocks = [path for path in tmp_path.glob("*/??/*") if path.is_file()]
    for path in blocks:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    store.reads.clear()

    with opened(folder, bucket, store, **cache) as lake:
        assert ENGINES["arrow"](lake) == EXPECTED
        use = lake.status().cache

    assert len(blocks) >= 4
    assert len(store.data_reads()) >= 2
    assert use is not None
    assert use.misses >= len(blocks)


def test_check_looks_at_the_store_and_not_at_the_cache(
    folder: Path, bucket: Bucket, store: Listening, tmp_path: Path
) -> None:
    cache = {"cache.dir": str(tmp_path)}
    with opened(folder, bucket, store, **cache) as lake:
        ENGINES["arrow"](lake)
        store.reads.clear()

        assert not lake.check().findings

    assert len(set(store.data_reads())) == 2
