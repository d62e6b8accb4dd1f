"""Checkpoints: one Parquet file, as every Delta reader knows them, written and read in pieces."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.formats.base import measure
from lakebed.formats.delta.actions import Action, AddAction, Plain, from_plain, to_plain
from lakebed.model.errors import DataCorrupt
from lakebed.storage.base import Output, Storage

_TEXTS = pa.map_(pa.string(), pa.string())
_NAMES = pa.list_(pa.field("element", pa.string()))
_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
SCHEMA = pa.schema(
    {
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
                "tags": _TEXTS,
                "deletionVector": _VECTOR,
            }
        ),
        "remove": pa.struct(
            {
                "path": pa.string(),
                "deletionTimestamp": pa.int64(),
                "dataChange": pa.bool_(),
                "extendedFileMetadata": pa.bool_(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "tags": _TEXTS,
                "deletionVector": _VECTOR,
            }
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "description": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": _NAMES,
                "createdTime": pa.int64(),
                "configuration": _TEXTS,
            }
        ),
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": _NAMES,
                "writerFeatures": _NAMES,
            }
        ),
    }
)
_READ = ("protocol", "metaData", "txn", "add", "remove", "sidecar")


@dataclass(frozen=True, slots=True)
class Written:
    size_bytes: int
    digest: str
    actions: int
    adds: int


def write_checkpoint(storage: Storage, path: str, pieces: Iterable[Sequence[Action]]) -> Written:
    """Each piece becomes a row group; StorageError if the path is taken."""
    actions = adds = 0
    with storage.open_output(path) as output:
        sink = _Hashing(output)
        # Without Arrow's own schema in the footer: it is of no use to Delta's readers.
        with pq.ParquetWriter(sink, SCHEMA, compression="snappy", store_schema=False) as writer:
            for piece in pieces:
                writer.write_table(_to_table(piece))
                actions += len(piece)
                adds += sum(isinstance(action, AddAction) for action in piece)
    return Written(sink.tell(), sink.digest(), actions, adds)


def read_checkpoint(storage: Storage, path: str) -> Iterator[Action]:
    """Every action of one file; DataCorrupt when it is not a checkpoint."""
    try:
        with storage.open_input(path) as source, pq.ParquetFile(source) as file:
            present = [name for name in _READ if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=present):
                for name in present:
                    yield from _from_column(name, batch.column(name))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataCorrupt(
            f"{path!r} is not a readable Delta checkpoint: {error}",
            hint="move it away: readers go on from an older checkpoint or the commits",
            path=path,
        ) from error


def existing_checkpoint(storage: Storage, path: str) -> Written:
    """What stands at a path already; DataCorrupt unless it is a whole checkpoint."""
    actions = adds = states = 0
    for action in read_checkpoint(storage, path):
        actions += 1
        adds += isinstance(action, AddAction)
        states += to_plain(action)[0] in ("protocol", "metaData")
    if states != 2:
        raise DataCorrupt(
            f"{path!r} is a Delta checkpoint without protocol or metadata",
            hint="move it away and run `lakebed publish`",
            path=path,
        )
    return Written(*measure(storage, path), actions, adds)


def known_times(storage: Storage, path: str) -> dict[str, int]:
    """The modification time of each file that an earlier checkpoint lists, by encoded path."""
    with storage.open_input(path) as source, pq.ParquetFile(source) as file:
        times: dict[str, int] = {}
        for batch in file.iter_batches(columns=["add.path", "add.modificationTime"]):
            add = batch.column("add")
            pairs = zip(*(column.to_pylist() for column in add.flatten()), strict=True)
            times.update((name, time_ms) for name, time_ms in pairs if name is not None)
    return times


def _to_table(piece: Sequence[Action]) -> pa.Table:
    by_name: dict[str, list[Plain]] = {}
    for action in piece:
        name, plain = to_plain(action)
        by_name.setdefault(name, []).append(plain)
    groups = [_one_kind(name, plains) for name, plains in by_name.items()]
    return pa.Table.from_batches(groups, SCHEMA)


def _one_kind(name: str, plains: list[Plain]) -> pa.RecordBatch:
    columns = [
        _struct(field.type, plains) if field.name == name else pa.nulls(len(plains), field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _struct(kind: pa.StructType, plains: Sequence[Plain | None]) -> pa.Array:
    fields = list(kind)
    columns = [
        _column(field.type, [p.get(field.name) if p else None for p in plains]) for field in fields
    ]
    absent = pa.array([p is None for p in plains], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=fields, mask=absent)


def _column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_struct(kind):
        return _struct(kind, values)
    if pa.types.is_map(kind):
        return pa.array([None if v is None else list(v.items()) for v in values], kind)
    return pa.array(values, kind)


def _from_column(name: str, column: pa.Array) -> Iterator[Action]:
    for plain in column.drop_null().to_pylist():
        action = from_plain(name, plain)
        if action is not None:
            yield action


class _Hashing:
    """A sink that knows the digest of what went through it."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._hashed = hashlib.sha256()

    @property
    def closed(self) -> bool:
        return self._output.closed

    def write(self, data: bytes | bytearray | memoryview) -> int:
        self._hashed.update(data)
        return self._output.write(data)

    def tell(self) -> int:
        return self._output.tell()

    def flush(self) -> None:
        self._output.flush()

    def close(self) -> None:
        """The output is closed by whoever opened it."""

    def digest(self) -> str:
        return self._hashed.hexdigest()
