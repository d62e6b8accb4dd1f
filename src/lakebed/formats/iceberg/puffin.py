"""Puffin files that hold deletion vectors: encoded and decoded, pure."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from lakebed.model.errors import DataCorrupt
from lakebed.model.vectors import Positions, blob_of, positions_in

_MAGIC = b"PFA1"
_KIND = "deletion-vector-v1"
_ROW_POSITION = 2147483645  # the field id of row positions
_TAIL = struct.Struct("<i4s4s")  # size of the footer's text, flags, magic


@dataclass(frozen=True, slots=True)
class VectorBlob:
    """A deletion vector, the absolute location of its data file, and where its blob begins."""

    data_file: str
    cardinality: int
    bitmap: bytes
    offset: int


def encode_puffin(vectors: Iterable[VectorBlob]) -> bytes:
    """The vectors in the order of their offsets."""
    parts, footer = [_MAGIC], []
    end = len(_MAGIC)
    for vector in vectors:
        blob = blob_of(vector.bitmap)
        parts += [bytes(vector.offset - end), blob]
        end = vector.offset + len(blob)
        footer.append(_blob_metadata(vector, len(blob)))
    text = orjson.dumps({"blobs": footer, "properties": {"created-by": "lakebed"}})
    return b"".join([*parts, _MAGIC, text, _TAIL.pack(len(text), bytes(4), _MAGIC)])


def _blob_metadata(vector: VectorBlob, length: int) -> dict[str, object]:
    return {
        "type": _KIND,
        "fields": [_ROW_POSITION],
        # The manifest has both; a blob may be written before they are known.
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": vector.offset,
        "length": length,
        "properties": {
            "referenced-data-file": vector.data_file,
            "cardinality": str(vector.cardinality),
        },
    }


def decode_puffin(data: bytes) -> dict[int, tuple[str, Positions]]:
    """(location of the data file, deleted positions) by offset; DataCorrupt if it is broken."""
    try:
        return {
            blob["offset"]: (
                str(blob["properties"]["referenced-data-file"]),
                positions_in(data[blob["offset"] : blob["offset"] + blob["length"]]),
            )
            for blob in _footer(data)["blobs"]
            if blob["type"] == _KIND
        }
    except (struct.error, ValueError, LookupError, TypeError) as error:
        raise DataCorrupt(f"not a Puffin file of deletion vectors: {error!r}") from error


def _footer(data: bytes) -> dict[str, list[dict[str, Any]]]:
    size, flags, magic = _TAIL.unpack(data[-_TAIL.size :])
    start = len(data) - _TAIL.size - size
    marks = (data[:4], data[start - 4 : start], magic)
    if marks != (_MAGIC,) * 3 or flags != bytes(4) or size < 0:
        raise ValueError("wrong marks, or a compressed footer")
    return orjson.loads(data[start : start + size])  # type: ignore[no-any-return]  # JSON has no types


def same_vectors(other: bytes, data: bytes) -> bool:
    """Whether two files hold the same, though their footers may be written otherwise."""
    try:
        return decode_puffin(other) == decode_puffin(data)
    except DataCorrupt:
        return False
