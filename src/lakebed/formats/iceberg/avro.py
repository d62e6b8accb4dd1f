"""Avro object containers: primitive encoders, a deterministic writer, a schema-driven decoder.

Knows nothing of Iceberg, and never resolves one schema against another.
"""

import bz2
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa

from lakebed.model.errors import DataCorrupt, InvalidInput, UnsupportedFeature

MAGIC = b"Obj\x01"
SYNC_BYTES = 16

# A small object is one round trip either way, so deflating it costs time (at this size about a
# millisecond) and saves none. Level 1: manifests are mostly paths and bounds, where a higher level
# takes three times as long for three percent.
DEFLATE_FROM_BYTES = 64 * 1024
DEFLATE_LEVEL = 1

NULL = b"\x00"  # the null branch of ["null", T], and the end of an array or a map
SOME = b"\x02"  # the other branch, to be followed by the value
FALSE, TRUE = b"\x00", b"\x01"

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")


# --- encoding -------------------------------------------------------------------------------------


# Values repeat: row counts from column to column, snapshot ids from entry to entry.
@lru_cache(maxsize=4096)
def _varint(value: int) -> bytes:
    if not _LONG_MIN <= value <= _LONG_MAX:
        raise InvalidInput(f"{value} does not fit an Avro long")
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


# Most longs of a manifest are field ids, counts and lengths: a look-up is four times faster.
_SMALL = {value: _varint(value) for value in range(-64, 2048)}
_small = _SMALL.get


def encode_long(value: int) -> bytes:
    """int and long alike: zigzag, then seven bits a byte, lowest first."""
    return _small(value) or _varint(value)


def encode_bytes(value: bytes) -> bytes:
    return encode_long(len(value)) + value


def encode_string(value: str) -> bytes:
    raw = value.encode()
    return encode_long(len(raw)) + raw


def encode_boolean(value: bool) -> bytes:
    return TRUE if value else FALSE


def encode_float(value: float) -> bytes:
    return _FLOAT.pack(value)


def encode_double(value: float) -> bytes:
    return _DOUBLE.pack(value)


def encode_array(items: Sequence[bytes]) -> bytes:
    """Items that are already encoded, as one block."""
    return encode_long(len(items)) + b"".join(items) + NULL if items else NULL


def encode_longs(values: Sequence[int]) -> bytes:
    return encode_array([_small(value) or _varint(value) for value in values])


def encode_long_pairs(values: Mapping[int, int]) -> bytes:
    """An array of (key, value) records, which is how Iceberg writes a map with int keys."""
    if not values:
        return NULL
    out = [encode_long(len(values))]
    for key, value in values.items():
        out.append(_small(key) or _varint(key))
        out.append(_small(value) or _varint(value))
    out.append(NULL)
    return b"".join(out)


def encode_bytes_pairs(values: Mapping[int, bytes]) -> bytes:
    if not values:
        return NULL
    out = [encode_long(len(values))]
    for key, value in values.items():
        out.append(_small(key) or _varint(key))
        size = len(value)
        out.append(_small(size) or _varint(size))
        out.append(value)
    out.append(NULL)
    return b"".join(out)


def encode_map(values: Mapping[str, bytes]) -> bytes:
    """An Avro map whose values are already encoded."""
    if not values:
        return NULL
    pairs = [encode_string(key) + value for key, value in values.items()]
    return encode_long(len(pairs)) + b"".join(pairs) + NULL


def encode_container(
    schema_json: bytes,
    metadata: Mapping[str, bytes],
    blocks: Iterable[tuple[int, bytes]],
    sync: bytes,
) -> bytes:
    """A whole file, the same for the same arguments; a block is (number of records, bytes)."""
    kept = list(blocks)
    codec = codec_for(sum(len(block) for _, block in kept))
    header = encode_header(schema_json, metadata, codec)
    return b"".join((header, sync, *(encode_block(n, block, codec, sync) for n, block in kept)))


def codec_for(size_bytes: int) -> str:
    return "deflate" if size_bytes >= DEFLATE_FROM_BYTES else "null"


def encode_header(schema_json: bytes, metadata: Mapping[str, bytes], codec: str) -> bytes:
    """Everything before the first sync marker; may be kept for the next file of its kind."""
    pairs = {"avro.schema": schema_json, "avro.codec": codec.encode(), **metadata}
    return MAGIC + encode_map({key: encode_bytes(value) for key, value in pairs.items()})


def encode_block(records: int, block: bytes, codec: str, sync: bytes) -> bytes:
    if len(sync) != SYNC_BYTES:
        raise InvalidInput(f"an Avro sync marker has {SYNC_BYTES} bytes, not {len(sync)}")
    if not records:
        return b""  # some readers take an empty block for the end of the file
    if codec == "deflate":
        # Avro wants the bare stream: no zlib header, no checksum.
        block = zlib.compress(block, DEFLATE_LEVEL, wbits=-15)
    return b"".join((encode_long(records), encode_long(len(block)), block, sync))


# --- decoding: the container ----------------------------------------------------------------------

Reader = Callable[[bytes, int], tuple[object, int]]
RecordReader = Callable[[bytes, int], tuple[dict[str, object], int]]

# What broken bytes or a broken schema can raise on the way: an index past the end, bad UTF-8, a bad
# compressed stream, a name that is nowhere, nesting without end.
_BROKEN = (LookupError, ValueError, TypeError, OSError, EOFError, RecursionError)
_BROKEN_STREAM = (struct.error, zlib.error, pa.ArrowException)


def decode_container(data: bytes) -> tuple[dict[str, bytes], Iterator[dict[str, object]]]:
    """The file's metadata and its records, read block by block.

    A logical map (an array of key/value records) comes as a dict, fixed as bytes, an enum as its
    symbol; other logical types keep their plain value. Raises DataCorrupt, also while iterating.
    """
    with _broken_is_corrupt():
        if data[:4] != MAGIC:
            raise DataCorrupt("not an Avro object container: wrong first bytes")
        metadata, pos = _read_metadata(data, 4)
        sync = _take(data, pos, SYNC_BYTES)
        read = _compile(metadata["avro.schema"])
    decompress = _decompressor(metadata.get("avro.codec", b"null"))
    return metadata, _records(data, pos + SYNC_BYTES, sync, decompress, read)


@lru_cache(maxsize=64)
def _compile(schema_json: bytes) -> RecordReader:
    schema = json.loads(schema_json)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise DataCorrupt("the Avro schema of the file is not a record")
    return _Compiler().record(schema, "")


@contextmanager
def _broken_is_corrupt() -> Iterator[None]:
    try:
        yield
    except (*_BROKEN, *_BROKEN_STREAM) as error:
        raise DataCorrupt(f"broken Avro data: {error!r}") from error


def _read_metadata(data: bytes, pos: int) -> tuple[dict[str, bytes], int]:
    metadata: dict[str, bytes] = {}
    count, pos = _read_count(data, pos)
    while count:
        for _ in range(count):
            key, pos = _read_string(data, pos)
            metadata[key], pos = _read_bytes(data, pos)
        count, pos = _read_count(data, pos)
    return metadata, pos


def _records(
    data: bytes, pos: int, sync: bytes, decompress: Callable[[bytes], bytes], read: RecordReader
) -> Iterator[dict[str, object]]:
    while pos < len(data):
        with _broken_is_corrupt():
            count, pos = _read_long(data, pos)
            raw, pos = _read_bytes(data, pos)
            if _take(data, pos, SYNC_BYTES) != sync:
                raise DataCorrupt("an Avro block does not end in the sync marker of its file")
            records = _read_block(decompress(raw), count, read)
        pos += SYNC_BYTES
        yield from records


def _read_block(block: bytes, count: int, read: RecordReader) -> list[dict[str, object]]:
    if not 0 <= count <= len(block):
        raise DataCorrupt(f"an Avro block of {len(block)} bytes claims {count} records")
    records: list[dict[str, object]] = []
    pos = 0
    for _ in range(count):
        record, pos = read(block, pos)
        records.append(record)
    if pos != len(block):
        raise DataCorrupt("an Avro block is longer than its records")
    return records


def _decompressor(codec: bytes) -> Callable[[bytes], bytes]:
    known: dict[bytes, Callable[[bytes], bytes]] = {
        b"null": bytes,
        b"deflate": _inflate,
        b"snappy": _unsnap,
        b"zstandard": _unzstd,
        b"bzip2": bz2.decompress,
    }
    if codec not in known:
        raise UnsupportedFeature(f"Avro codec {codec.decode(errors='replace')!r} cannot be read")
    return known[codec]


def _inflate(raw: bytes) -> bytes:
    stream = zlib.decompressobj(wbits=-15)
    block = stream.decompress(raw)
    if not stream.eof:
        raise DataCorrupt("a deflated Avro block ends too early")
    return block


def _unsnap(raw: bytes) -> bytes:
    size, shift = 0, 0
    for byte in raw[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    # Snappy cannot shrink below 1/21, so a larger size is a flipped bit, not a reason to allocate.
    if size > 64 * len(raw):
        raise DataCorrupt(f"a snappy block of {len(raw)} bytes claims to hold {size}")
    block: bytes = _arrow_codec("snappy").decompress(raw[:-4], size, asbytes=True)
    if zlib.crc32(block) != int.from_bytes(raw[-4:], "big"):
        raise DataCorrupt("a snappy Avro block fails its checksum")
    return block


def _unzstd(raw: bytes) -> bytes:
    _arrow_codec("zstd")
    with pa.CompressedInputStream(pa.BufferReader(raw), "zstd") as stream:
        block: bytes = stream.read()
    return block


def _arrow_codec(name: str) -> pa.Codec:
    if not pa.Codec.is_available(name):
        raise UnsupportedFeature(
            f"Avro codec {name!r} cannot be read", hint=f"install a pyarrow built with {name}"
        )
    return pa.Codec(name)


# --- decoding: values -----------------------------------------------------------------------------


def _take(data: bytes, pos: int, size: int) -> bytes:
    end = pos + size
    if size < 0 or end > len(data):
        raise DataCorrupt(f"Avro data ends early: {size} bytes wanted at {pos} of {len(data)}")
    return data[pos:end]


def _read_long(data: bytes, pos: int) -> tuple[int, int]:
    byte = data[pos]
    pos += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise DataCorrupt("an Avro long does not end")
    if value >> 64:
        raise DataCorrupt("an Avro long is larger than 64 bits")
    return (value >> 1) ^ -(value & 1), pos


def _read_bytes(data: bytes, pos: int) -> tuple[bytes, int]:
    size, pos = _read_long(data, pos)
    end = pos + size
    if not pos <= end <= len(data):
        raise DataCorrupt(f"Avro data ends early: {size} bytes wanted at {pos} of {len(data)}")
    return data[pos:end], end


def _read_string(data: bytes, pos: int) -> tuple[str, int]:
    raw, pos = _read_bytes(data, pos)
    return raw.decode(), pos


def _read_count(data: bytes, pos: int) -> tuple[int, int]:
    """How many items the next block of an array or a map has; zero ends it."""
    count, pos = _read_long(data, pos)
    if count < 0:  # the size of the block follows, for readers that skip
        _, pos = _read_long(data, pos)
        count = -count
    # An item takes a byte at least (no manifest has an array of nulls): a flipped bit in the count
    # must not make an endless loop.
    if count > len(data) - pos:
        raise DataCorrupt(f"an Avro array claims {count} items in {len(data) - pos} bytes")
    return count, pos


def _read_null(_: bytes, pos: int) -> tuple[None, int]:
    return None, pos


def _read_boolean(data: bytes, pos: int) -> tuple[bool, int]:
    byte = data[pos]
    if byte > 1:
        raise DataCorrupt(f"an Avro boolean is {byte}")
    return byte == 1, pos + 1


def _read_float(data: bytes, pos: int) -> tuple[float, int]:
    return _FLOAT.unpack_from(data, pos)[0], pos + 4


def _read_double(data: bytes, pos: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(data, pos)[0], pos + 8


_PRIMITIVES: dict[str, Reader] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": _read_long,
    "long": _read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": _read_bytes,
    "string": _read_string,
}


class _Compiler:
    """Turns a schema into one reader; holds the named types met so far."""

    def __init__(self) -> None:
        self.named: dict[str, Reader] = {}

    def reader(self, schema: object, namespace: str) -> Reader:
        if isinstance(schema, str):
            return _PRIMITIVES.get(schema) or self.named[_full_name(schema, namespace)]
        if isinstance(schema, list):
            return _union([self.reader(branch, namespace) for branch in schema])
        if not isinstance(schema, dict):
            raise DataCorrupt(f"not an Avro schema: {schema!r}")
        match schema["type"]:
            case "record" | "error":
                return self.record(schema, namespace)
            case "array":
                return self._array(schema, namespace)
            case "map":
                return _map(self.reader(schema["values"], namespace))
            case "fixed":
                return self._name(schema, namespace, _fixed(int(schema["size"])))
            case "enum":
                return self._name(
                    schema, namespace, _enum([str(name) for name in schema["symbols"]])
                )
            case inner:  # a primitive with attributes, or {"type": {…}}
                return self.reader(inner, namespace)

    def _name(self, schema: dict[str, object], namespace: str, reader: Reader) -> Reader:
        self.named[_own_name(schema, namespace)] = reader
        return reader

    def record(self, schema: dict[str, object], namespace: str) -> RecordReader:
        fields: list[tuple[str, Reader]] = []
        full_name = _own_name(schema, namespace)
        # Known before its fields are compiled, since a field may refer to it.
        reader = _record(fields)
        self.named[full_name] = reader
        inner = full_name.rpartition(".")[0]
        for field in _list(schema["fields"]):
            if not isinstance(field, dict):
                raise DataCorrupt(f"not an Avro field: {field!r}")
            fields.append((str(field["name"]), self.reader(field["type"], inner)))
        return reader

    def _array(self, schema: dict[str, object], namespace: str) -> Reader:
        items = schema["items"]
        if schema.get("logicalType") == "map" and isinstance(items, dict):
            # Compiled as a record too: the type has a name that another field may use.
            reader = self.reader(items, namespace)
            types = [field["type"] for field in _list(items["fields"]) if isinstance(field, dict)]
            if len(types) == 2 and types[0] in ("int", "long", "string"):
                return _pairs(self.reader(types[0], namespace), self.reader(types[1], namespace))
            return _array(reader)
        return _array(self.reader(items, namespace))


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise DataCorrupt(f"an Avro schema has {value!r} where a list belongs")
    return value


def _own_name(schema: dict[str, object], namespace: str) -> str:
    return _full_name(str(schema["name"]), str(schema.get("namespace") or namespace))


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _record(fields: list[tuple[str, Reader]]) -> RecordReader:
    def read(data: bytes, pos: int) -> tuple[dict[str, object], int]:
        record: dict[str, object] = {}
        for name, read_field in fields:
            record[name], pos = read_field(data, pos)
        return record, pos

    return read


def _union(branches: list[Reader]) -> Reader:
    def read(data: bytes, pos: int) -> tuple[object, int]:
        byte = data[pos]
        if byte & 0x81:  # negative, or beyond 63: an Iceberg union has two branches
            raise DataCorrupt("an Avro union names a branch that it does not have")
        return branches[byte >> 1](data, pos + 1)

    return read


def _array(read_item: Reader) -> Reader:
    def read(data: bytes, pos: int) -> tuple[object, int]:
        items: list[object] = []
        count, pos = _read_count(data, pos)
        while count:
            for _ in range(count):
                item, pos = read_item(data, pos)
                items.append(item)
            count, pos = _read_count(data, pos)
        return items, pos

    return read


def _pairs(read_key: Reader, read_value: Reader) -> Reader:
    def read(data: bytes, pos: int) -> tuple[object, int]:
        pairs: dict[object, object] = {}
        count, pos = _read_count(data, pos)
        while count:
            for _ in range(count):
                key, pos = read_key(data, pos)
                pairs[key], pos = read_value(data, pos)
            count, pos = _read_count(data, pos)
        return pairs, pos

    return read


def _map(read_value: Reader) -> Reader:
    return _pairs(_read_string, read_value)


def _fixed(size: int) -> Reader:
    return lambda data, pos: (_take(data, pos, size), pos + size)


def _enum(symbols: list[str]) -> Reader:
    def read(data: bytes, pos: int) -> tuple[object, int]:
        index, pos = _read_long(data, pos)
        if index < 0:
            raise DataCorrupt(f"an Avro enum has no symbol {index}")
        return symbols[index], pos

    return read
