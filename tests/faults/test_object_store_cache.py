"""What the cache asks a store for, request by request, and what it never hides."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.model.errors import ObjectMissing
from lakebed.storage import open_storage
from lakebed.storage.cache.blocks import BLOCK_BYTES, BlockCache
from lakebed.storage.objects.storage import ObjectStorage
from lakebed.storage.place import parse_place
from tests.faults.small_s3 import KEYS, SmallS3, small_s3
from tests.stores import kinds, new_bucket

PATH = "shop/t/data/0123456789abcdef0123456789abcdef-00000.parquet"
BODY = os.urandom(5 * BLOCK_BYTES + 1000)


@pytest.fixture
def s3() -> Iterator[SmallS3]:
    with small_s3() as server:
        server.objects[f"/bucket/w/{PATH}"] = BODY
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> BlockCache:
    return BlockCache(str(tmp_path), 10**8)


def storage_of(s3: SmallS3, cache: BlockCache) -> ObjectStorage:
    options = {**KEYS, "endpoint": s3.endpoint}
    return ObjectStorage(parse_place("s3://bucket/w"), options, retry_s=20.0, cache=cache)


def test_blocks_side_by_side_come_in_one_request(s3: SmallS3, cache: BlockCache) -> None:
    with storage_of(s3, cache).open_input(PATH, size_bytes=len(BODY)) as source:
        assert len(s3.requests) == 1  # the tail

        assert source.read_at(3 * BLOCK_BYTES, 10) == BODY[10 : 10 + 3 * BLOCK_BYTES]

    assert len(s3.requests) == 2


def test_only_what_is_missing_between_blocks_is_asked_for(s3: SmallS3, cache: BlockCache) -> None:
    with storage_of(s3, cache).open_input(PATH, size_bytes=len(BODY)) as source:
        source.read_at(1, 2 * BLOCK_BYTES)
        s3.requests.clear()

        assert source.read_at(len(BODY), 0) == BODY

    assert len(s3.requests) == 2  # the two before it, the one after it; the tail is there
    assert cache.use().bytes_from_store == len(BODY)


def test_small_reads_of_one_block_make_one_request(s3: SmallS3, cache: BlockCache) -> None:
    with storage_of(s3, cache).open_input(PATH, size_bytes=len(BODY)) as source:
        s3.requests.clear()
        for offset in range(0, BLOCK_BYTES - 100, 100_000):
            assert source.read_at(100, offset) == BODY[offset : offset + 100]

    assert len(s3.requests) == 1


def test_a_small_file_comes_whole_with_the_first_request(s3: SmallS3, cache: BlockCache) -> None:
    s3.objects[f"/bucket/w/{PATH}"] = BODY[:5000]

    for _ in range(2):
        with storage_of(s3, cache).open_input(PATH, size_bytes=5000) as source:
            assert source.read() == BODY[:5000]

    assert len(s3.requests) == 1


def test_who_names_no_size_sees_the_store(s3: SmallS3, cache: BlockCache) -> None:
    storage = storage_of(s3, cache)
    with storage.open_input(PATH, size_bytes=len(BODY)) as source:
        source.read()
    s3.objects[f"/bucket/w/{PATH}"] = b"damaged"

    with storage.open_input(PATH) as source:
        assert source.read() == b"damaged"


def test_names_that_may_come_back_are_read_anew(s3: SmallS3, cache: BlockCache) -> None:
    path = "shop/t/_delta_log/00000000000000000010.checkpoint.parquet"
    storage = storage_of(s3, cache)

    for body in (b"before", b"behind"):
        s3.objects[f"/bucket/w/{path}"] = body
        with storage.open_input(path, size_bytes=6) as source:
            assert source.read() == body


def test_an_object_of_another_size_than_told_is_not_kept(s3: SmallS3, cache: BlockCache) -> None:
    for told in (len(BODY) + 5, len(BODY) - 5, 7):
        with storage_of(s3, cache).open_input(PATH, size_bytes=told) as source:
            assert source.size() == len(BODY)
            assert source.read() == BODY

    assert cache.use().used_bytes == 0


def test_a_missing_object_is_told_when_it_is_opened(s3: SmallS3, cache: BlockCache) -> None:
    s3.objects.clear()

    with pytest.raises(ObjectMissing):
        storage_of(s3, cache).open_input(PATH, size_bytes=len(BODY))


@pytest.mark.objects
@pytest.mark.parametrize("kind", kinds())
def test_every_store_is_read_once(kind: str, tmp_path: Path) -> None:
    bucket = new_bucket(kind)
    with open_storage(bucket.uri, bucket.options).open_output(PATH) as output:
        output.write(BODY)

    uses = []
    for _ in range(2):
        cache = BlockCache(str(tmp_path), 10**8)
        storage = open_storage(bucket.uri, bucket.options, cache=cache)
        with storage.open_input(PATH, size_bytes=len(BODY)) as source:
            assert source.read_at(10, len(BODY) - 10) == BODY[-10:]
            assert source.read_at(len(BODY), 0) == BODY
        uses.append(cache.use())

    assert uses[0].bytes_from_store == len(BODY)
    assert (uses[1].misses, uses[1].bytes_from_store) == (0, 0)
