"""The Avro codec against fastavro, against broken bytes, and against itself."""

import bz2
import io
import json
import random
import zlib
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.formats.iceberg import avro
from lakebed.model.errors import DataCorrupt, InvalidInput, UnsupportedFeature

SYNC = bytes(range(16))
LONGS = st.integers(-(2**63), 2**63 - 1)

# One field for every construct an Iceberg writer is known to use.
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "row",
    "namespace": "org.example",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "l", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "f", "type": "float"},
        {"name": "d", "type": ["null", "double"]},
        {"name": "b", "type": "boolean"},
        {"name": "s", "type": ["string", "null"]},
        {"name": "raw", "type": "bytes"},
        {"name": "fix", "type": {"type": "fixed", "name": "four", "size": 4}},
        {"name": "again", "type": "four"},
        {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["A", "B"]}},
        {"name": "list", "type": {"type": "array", "items": "long", "element-id": 9}},
        {"name": "map", "type": {"type": "map", "values": ["null", "int"]}},
        {
            "name": "pairs",
            "type": {
                "type": "array",
                "logicalType": "map",
                "items": {
                    "type": "record",
                    "name": "k1_v2",
                    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
                },
            },
        },
        {
            "name": "nested",
            "type": [
                "null",
                {"type": "record", "name": "inner", "fields": [{"name": "n", "type": "null"}]},
            ],
        },
    ],
}

ROWS = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": LONGS,
        "f": st.floats(width=32, allow_nan=False),
        "d": st.none() | st.floats(allow_nan=False),
        "b": st.booleans(),
        "s": st.none() | st.text(),
        "raw": st.binary(),
        "fix": st.binary(min_size=4, max_size=4),
        "again": st.binary(min_size=4, max_size=4),
        "kind": st.sampled_from(["A", "B"]),
        "list": st.lists(LONGS, max_size=5),
        "map": st.dictionaries(st.text(), st.none() | st.integers(-5, 5), max_size=4),
        "pairs": st.dictionaries(st.integers(0, 99), st.binary(), max_size=4),
        "nested": st.none() | st.just({"n": None}),
    }
)


def plain(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the logical types that fastavro would turn into Python objects."""
    text = json.dumps(schema).replace('"logicalType": "timestamp-micros"', '"x": 1')
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def for_fastavro(row: dict[str, Any]) -> dict[str, Any]:
    pairs = [{"key": key, "value": value} for key, value in row["pairs"].items()]
    return {**row, "pairs": pairs}


def fastavro_file(rows: list[dict[str, Any]], codec: str = "null") -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, plain(SCHEMA), [for_fastavro(row) for row in rows], codec=codec)
    return out.getvalue()


def decoded(data: bytes) -> list[dict[str, Any]]:
    return list(avro.decode_container(data)[1])


def row(**changes: object) -> dict[str, Any]:
    base: dict[str, Any] = {
        "i": -7, "l": 2**40, "f": 0.5, "d": None, "b": True, "s": "é", "raw": b"\x00",
        "fix": b"abcd", "again": b"wxyz", "kind": "B", "list": [1, -2], "map": {"a": 1},
        "pairs": {3: b"x"}, "nested": {"n": None},
    }  # fmt: skip
    return base | changes


def rows_block(rows: list[dict[str, Any]]) -> bytes:
    """The bytes of the one uncompressed block that fastavro writes."""
    out = io.BytesIO()
    for one in rows:
        fastavro.schemaless_writer(out, fastavro.parse_schema(plain(SCHEMA)), for_fastavro(one))
    return out.getvalue()


def by_fastavro(schema: object, value: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)  # type: ignore[arg-type]
    return out.getvalue()


# --- encoding -------------------------------------------------------------------------------------


@given(LONGS | st.sampled_from([0, -1, 63, 64, -64, -65, 2047, 2048, 2**63 - 1, -(2**63)]))
def test_a_long_is_encoded_as_fastavro_does(value: int) -> None:
    assert avro.encode_long(value) == by_fastavro("long", value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_a_number_beyond_64_bits_is_refused(value: int) -> None:
    with pytest.raises(InvalidInput):
        avro.encode_long(value)


@given(st.text(), st.binary(), st.floats(allow_nan=False), st.booleans())
def test_other_primitives_are_encoded_as_fastavro_does(
    text: str, raw: bytes, number: float, flag: bool
) -> None:
    assert avro.encode_string(text) == by_fastavro("string", text)
    assert avro.encode_bytes(raw) == by_fastavro("bytes", raw)
    assert avro.encode_double(number) == by_fastavro("double", number)
    assert avro.encode_float(1.5) == by_fastavro("float", 1.5)
    assert avro.encode_boolean(flag) == by_fastavro("boolean", flag)
    assert by_fastavro(["null", "string"], None) == avro.NULL
    assert avro.SOME + avro.encode_string(text) == by_fastavro(["null", "string"], text)


@given(st.dictionaries(st.integers(0, 3000), LONGS), st.lists(LONGS))
def test_collections_are_encoded_as_fastavro_does(pairs: dict[int, int], longs: list[int]) -> None:
    texts = {str(key): avro.encode_long(value) for key, value in pairs.items()}
    fields = [{"name": "key", "type": "int"}, {"name": "value", "type": "long"}]
    logical = {"type": "array", "items": {"type": "record", "name": "kv", "fields": fields}}
    records = [{"key": key, "value": value} for key, value in pairs.items()]

    assert avro.encode_longs(longs) == by_fastavro({"type": "array", "items": "long"}, longs)
    assert avro.encode_long_pairs(pairs) == by_fastavro(logical, records)
    assert avro.encode_map(texts) == by_fastavro(
        {"type": "map", "values": "long"}, {str(key): value for key, value in pairs.items()}
    )


def test_the_same_arguments_give_the_same_bytes_with_the_given_sync() -> None:
    block = (1, rows_block([row()]))

    first = avro.encode_container(json.dumps(SCHEMA).encode(), {"k": b"v"}, [block], SYNC)
    second = avro.encode_container(json.dumps(SCHEMA).encode(), {"k": b"v"}, [block], SYNC)

    assert first == second
    assert first.endswith(SYNC)
    assert first.count(SYNC) == 2


@given(st.lists(st.lists(ROWS, min_size=1, max_size=3), max_size=3))
@settings(max_examples=40, deadline=None)
def test_fastavro_reads_what_we_write(blocks: list[list[dict[str, Any]]]) -> None:
    parts = [(len(rows), rows_block(rows)) for rows in blocks]
    data = avro.encode_container(json.dumps(plain(SCHEMA)).encode(), {"k": b"v"}, parts, SYNC)

    reader = fastavro.reader(io.BytesIO(data))

    assert reader.metadata["k"] == "v"
    assert list(reader) == [for_fastavro(one) for rows in blocks for one in rows]
    assert decoded(data) == [one for rows in blocks for one in rows]


@pytest.mark.parametrize(
    ("size", "codec"),
    [(10, b"null"), (avro.DEFLATE_FROM_BYTES, b"deflate")],
    ids=["small", "large"],
)
def test_only_large_blocks_are_deflated(size: int, codec: bytes) -> None:
    rows = [row(raw=b"x" * size)]
    data = avro.encode_container(
        json.dumps(plain(SCHEMA)).encode(), {}, [(1, rows_block(rows))], SYNC
    )

    metadata, records = avro.decode_container(data)

    assert metadata["avro.codec"] == codec
    assert list(records) == rows
    assert list(fastavro.reader(io.BytesIO(data))) == [for_fastavro(one) for one in rows]


def test_an_empty_file_has_no_block() -> None:
    data = avro.encode_container(json.dumps(SCHEMA).encode(), {}, [(0, b"")], SYNC)

    assert data.count(SYNC) == 1
    assert decoded(data) == []


def test_a_sync_marker_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(InvalidInput, match="16 bytes"):
        avro.encode_container(b"{}", {}, [(1, b"x")], b"short")


# --- decoding -------------------------------------------------------------------------------------


@given(st.lists(ROWS, max_size=5), st.sampled_from(["null", "deflate", "bzip2"]))
@settings(max_examples=60, deadline=None)
def test_we_read_what_fastavro_writes(rows: list[dict[str, Any]], codec: str) -> None:
    assert decoded(fastavro_file(rows, codec)) == rows


def snappy(block: bytes) -> bytes:
    packed: bytes = pa.compress(block, codec="snappy", asbytes=True)
    return packed + zlib.crc32(block).to_bytes(4, "big")


def zstandard(block: bytes) -> bytes:
    packed: bytes = pa.compress(block, codec="zstd", asbytes=True)
    return packed


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": lambda block: zlib.compress(block, wbits=-15),
    "bzip2": bz2.compress,
    "snappy": snappy,
    "zstandard": zstandard,
}


def container(rows: list[dict[str, Any]], codec: str) -> bytes:
    header = avro.encode_header(json.dumps(SCHEMA).encode(), {}, codec)
    block = CODECS[codec](rows_block(rows))
    return header + SYNC + avro.encode_block(len(rows), block, "null", SYNC)


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read(codec: str) -> None:
    rows = [row(i=number, s="text" * number) for number in range(50)]

    assert decoded(container(rows, codec)) == rows


def test_an_unknown_codec_is_refused_by_name() -> None:
    data = avro.encode_header(json.dumps(SCHEMA).encode(), {}, "xz") + SYNC

    with pytest.raises(UnsupportedFeature, match="xz"):
        avro.decode_container(data)


def test_a_snappy_block_with_a_wrong_checksum_is_corrupt() -> None:
    data = bytearray(container([row()], "snappy"))
    data[-17] ^= 1  # the last byte before the sync marker

    with pytest.raises(DataCorrupt, match="checksum"):
        decoded(bytes(data))


def test_negative_block_counts_carry_the_size_of_the_block() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": {"type": "array", "items": "long"}},
            {"name": "m", "type": {"type": "map", "values": "long"}},
        ],
    }
    long = avro.encode_long
    array = long(-2) + long(2) + long(5) + long(6) + long(1) + long(7) + avro.NULL
    one = avro.encode_string("k") + long(8)
    block = array + long(-1) + long(len(one)) + one + avro.NULL

    data = avro.encode_container(json.dumps(schema).encode(), {}, [(1, block)], SYNC)

    assert decoded(data) == [{"a": [5, 6, 7], "m": {"k": 8}}]
    assert list(fastavro.reader(io.BytesIO(data))) == [{"a": [5, 6, 7], "m": {"k": 8}}]


def test_a_type_may_refer_to_itself() -> None:
    schema = {
        "type": "record",
        "name": "node",
        "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "node"]}],
    }
    record = {"v": 1, "next": {"v": 2, "next": None}}
    out = io.BytesIO()
    fastavro.writer(out, schema, [record])

    assert decoded(out.getvalue()) == [record]


def test_a_logical_map_with_unhashable_keys_stays_a_list() -> None:
    key = {"type": "record", "name": "key", "fields": [{"name": "n", "type": "int"}]}
    fields = [{"name": "key", "type": key}, {"name": "value", "type": "int"}]
    pair = {"type": "record", "name": "kv", "fields": fields}
    array = {"type": "array", "logicalType": "map", "items": pair}
    schema = {"type": "record", "name": "r", "fields": [{"name": "m", "type": array}]}
    record = {"m": [{"key": {"n": 1}, "value": 2}]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [record])

    assert decoded(out.getvalue()) == [record]


@pytest.mark.parametrize(
    "schema",
    [
        b"",
        b"[]",
        b'"int"',
        b'{"type":"record"}',
        b'{"type":"record","name":"r","fields":[1]}',
        b'{"type":"record","name":"r","fields":[{"name":"a","type":"nowhere"}]}',
    ],
)
def test_a_broken_schema_is_corrupt(schema: bytes) -> None:
    data = avro.encode_header(schema, {}, "null") + SYNC

    with pytest.raises(DataCorrupt):
        avro.decode_container(data)


@pytest.mark.parametrize(
    "data", [b"", b"Obj", b"PAR1" + bytes(40), b"Obj\x01", b"Obj\x01" + b"\xff" * 40]
)
def test_bytes_of_another_kind_are_corrupt(data: bytes) -> None:
    with pytest.raises(DataCorrupt):
        decoded(data)


@pytest.mark.parametrize("codec", CODECS)
def test_every_truncation_is_corrupt(codec: str) -> None:
    data = container([row(), row(i=8)], codec)
    between_blocks = data.index(SYNC) + 16

    for size in range(len(data)):
        if size == between_blocks:
            assert decoded(data[:size]) == []
        else:
            with pytest.raises(DataCorrupt):
                decoded(data[:size])


@pytest.mark.parametrize("codec", CODECS)
def test_flipped_bits_never_raise_anything_else(codec: str) -> None:
    data = container([row(i=number) for number in range(5)], codec)
    random_bits = random.Random(codec)
    refused = 0

    for _ in range(1500):
        broken = bytearray(data)
        for _ in range(random_bits.choice((1, 1, 2, 8))):
            broken[random_bits.randrange(len(broken))] ^= 1 << random_bits.randrange(8)
        try:
            decoded(bytes(broken))
        except (DataCorrupt, UnsupportedFeature):
            refused += 1

    assert refused > 100


@given(st.binary(min_size=1, max_size=200))
def test_random_bytes_after_a_good_header_are_corrupt(tail: bytes) -> None:
    data = avro.encode_header(json.dumps(SCHEMA).encode(), {}, "null") + SYNC + tail

    with pytest.raises(DataCorrupt):
        decoded(data)
