"""Deletion vectors as Delta holds them: small ones in the log, large ones packed per snapshot."""

import base64
import struct
from collections.abc import Iterable, Mapping
from uuid import UUID, uuid5

from lakebed.core.ledger import Ledger
from lakebed.formats.delta.actions import DeletionVector
from lakebed.formats.vector_files import FOLDER
from lakebed.model import vectors
from lakebed.model.errors import DataCorrupt, UnsupportedFeature
from lakebed.model.files import LiveFile
from lakebed.model.ids import SnapshotId, VectorId
from lakebed.model.vectors import (
    FRAME_BYTES,
    Positions,
    blob_of,
    payload_of,
    positions_in,
    positions_of,
)
from lakebed.storage.base import Storage

_VERSION = b"\x01"
_UUID_LENGTH = 20  # of a UUID in Z85
# Z85 is Python's base 85 in another alphabet.
_Z85 = (
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
)
_FROM_Z85 = bytes.maketrans(*_Z85)
_DIGITS, _POWERS = _Z85[0], (85**4, 85**3, 85**2, 85, 1)

Descriptors = Mapping[VectorId, DeletionVector]


def describe(ledger: Ledger, table_uuid: str, files: Iterable[LiveFile]) -> Descriptors:
    """How the log names the vectors of some files."""
    found = [f.vector for f in files if f.vector is not None]
    bitmaps = ledger.bitmaps([v.id for v in found if v.delta_offset is None]) if found else {}
    return {
        v.id: _inline(v, bitmaps[v.id]) if v.delta_offset is None else _in_file(table_uuid, v)
        for v in found
    }


def _inline(vector: vectors.DeletionVector, bitmap: bytes) -> DeletionVector:
    payload = payload_of(bitmap)
    return DeletionVector("i", _to_z85(payload), len(payload), vector.cardinality)


def _in_file(table_uuid: str, vector: vectors.DeletionVector) -> DeletionVector:
    name = FOLDER + _to_z85(_file_uuid(table_uuid, vector.snapshot_id).bytes)
    return DeletionVector("u", name, vector.size_bytes, vector.cardinality, vector.delta_offset)


def file_path(table_uuid: str, snapshot_id: SnapshotId) -> str:
    """Where the large vectors that a snapshot made lie together."""
    return _path(FOLDER, _file_uuid(table_uuid, snapshot_id))


def file_bytes(ledger: Ledger, snapshot_id: SnapshotId) -> bytes:
    large = [v.id for v, _ in ledger.vectors_of(snapshot_id) if v.delta_offset is not None]
    bitmaps = ledger.bitmaps(large)
    return _VERSION + b"".join(blob_of(bitmaps[vector_id]) for vector_id in large)


def _file_uuid(table_uuid: str, snapshot_id: SnapshotId) -> UUID:
    return uuid5(UUID(table_uuid), f"delta deletes {snapshot_id}")


def _path(folder: str, uuid: UUID) -> str:
    name = f"deletion_vector_{uuid}.bin"
    return f"{folder}/{name}" if folder else name


def _to_z85(data: bytes) -> str:
    """Padded with zeros to whole groups of four.

    Most are short: Python's own base 85 would first make a table of all pairs of digits.
    """
    whole = data + bytes(-len(data) % 4)
    digits = bytearray()
    for (number,) in struct.iter_unpack(">I", whole):
        digits += bytes(_DIGITS[number // power % 85] for power in _POWERS)
    return digits.decode()


def _from_z85(text: str) -> bytes:
    return base64.b85decode(text.encode("ascii").translate(_FROM_Z85))


def read_vectors(
    storage: Storage, root: str, named: Iterable[tuple[str, DeletionVector]]
) -> dict[str, Positions]:
    """The deleted positions of data files by path, as the log names their vectors.

    Each file of vectors is read once; what is broken or missing raises.
    """
    files: dict[str, bytes] = {}
    return {path: _read(storage, root, path, vector, files) for path, vector in named}


def _read(
    storage: Storage, root: str, path: str, vector: DeletionVector, files: dict[str, bytes]
) -> Positions:
    place = path
    try:
        if vector.storage_type == "i":
            found = positions_of(_from_z85(vector.path_or_inline)[: vector.size_bytes])
        else:
            place = _named_path(vector)
            if place not in files:
                files[place] = storage.get(f"{root}/{place}")
            start = vector.offset or 0
            found = positions_in(files[place][start : start + vector.size_bytes + FRAME_BYTES])
    except (ValueError, DataCorrupt) as error:
        raise _corrupt(f"the deletion vector of {path} cannot be read: {error}", place) from error
    if len(found) != vector.cardinality:
        message = f"the deletion vector of {path} has {len(found)} rows, not {vector.cardinality}"
        raise _corrupt(message, place)
    return found


def _named_path(vector: DeletionVector) -> str:
    if vector.storage_type != "u":
        raise UnsupportedFeature(
            f"deletion vectors of storage type {vector.storage_type!r} cannot be read",
            hint="only those inside the table's own folder can",
        )
    name = vector.path_or_inline
    uuid = UUID(bytes=_from_z85(name[-_UUID_LENGTH:]))
    return _path(name[:-_UUID_LENGTH], uuid)


def _corrupt(message: str, path: str) -> DataCorrupt:
    return DataCorrupt(message, hint="publish the table again from the rows", path=path)
