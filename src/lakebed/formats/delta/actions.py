"""Delta's actions as values: to and from the plain objects of log lines and checkpoint rows.

Paths are those of real files: the percent-encoding that Delta wants exists on the wire only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import orjson

T = TypeVar("T")
Plain = dict[str, Any]  # JSON, or a row of a checkpoint


@dataclass(frozen=True, slots=True)
class ProtocolAction:
    min_reader: int
    min_writer: int
    reader_features: tuple[str, ...] | None = None  # None below reader version 3
    writer_features: tuple[str, ...] | None = None  # None below writer version 7


@dataclass(frozen=True, slots=True)
class MetadataAction:
    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_ms: int | None = None
    provider: str = "parquet"


@dataclass(frozen=True, slots=True)
class TxnAction:
    app_id: str
    version: int
    updated_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeletionVector:
    storage_type: str
    path_or_inline: str
    size_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline}{at}"


@dataclass(frozen=True, slots=True)
class AddAction:
    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    modified_ms: int
    stats: str | None = None
    deletion_vector: DeletionVector | None = None
    data_change: bool = True


@dataclass(frozen=True, slots=True)
class RemoveAction:
    path: str
    deleted_ms: int | None
    partition_values: Mapping[str, str | None] | None = None
    size_bytes: int | None = None
    deletion_vector: DeletionVector | None = None
    data_change: bool = True


@dataclass(frozen=True, slots=True)
class CdcAction:
    """A file of the change feed. Whoever reads changes reads such files alone, if there are any."""

    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """Free text for people, but for the time and the transaction it belongs to."""

    time_ms: int | None
    in_commit_ms: int | None
    transaction_id: str | None
    operation: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    blind_append: bool = False
    engine: str | None = None
    author: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class SidecarAction:
    """Another file with rows of the same checkpoint."""

    path: str


Action = (
    CommitInfo
    | ProtocolAction
    | MetadataAction
    | TxnAction
    | AddAction
    | RemoveAction
    | CdcAction
    | SidecarAction
)


def encode_path(path: str) -> str:
    """Everything but unreserved characters is encoded, percent signs of real names once more."""
    return quote(path, safe="/=")


def encode_lines(actions: list[Action]) -> bytes:
    return b"".join(encode_line(action) for action in actions)


def encode_line(action: Action) -> bytes:
    name, plain = to_plain(action)
    return orjson.dumps({name: plain}, option=orjson.OPT_APPEND_NEWLINE)


def to_plain(action: Action) -> tuple[str, Plain]:
    """The action's word and its members in fixed order, absent ones left out."""
    match action:
        case CommitInfo():
            return "commitInfo", _present(_commit_info(action))
        case ProtocolAction():
            return "protocol", _present(_protocol(action))
        case MetadataAction():
            return "metaData", _present(_metadata(action))
        case TxnAction(app_id, version, updated_ms):
            txn = {"appId": app_id, "version": version, "lastUpdated": updated_ms}
            return "txn", _present(txn)
        case AddAction():
            return "add", _present(_add(action))
        case RemoveAction():
            return "remove", _present(_remove(action))
        case CdcAction():
            return "cdc", _cdc(action)
        case SidecarAction(path):
            return "sidecar", {"path": path}


def _present(plain: Plain) -> Plain:
    return {name: value for name, value in plain.items() if value is not None}


def _commit_info(info: CommitInfo) -> Plain:
    return {
        "timestamp": info.time_ms,
        "inCommitTimestamp": info.in_commit_ms,
        "operation": info.operation,
        "operationParameters": dict(info.parameters),
        "isBlindAppend": info.blind_append,
        "engineInfo": info.engine,
        "txnId": info.transaction_id,
        "userName": info.author,
        "userMetadata": info.message,
    }


def _protocol(protocol: ProtocolAction) -> Plain:
    return {
        "minReaderVersion": protocol.min_reader,
        "minWriterVersion": protocol.min_writer,
        "readerFeatures": _list(protocol.reader_features),
        "writerFeatures": _list(protocol.writer_features),
    }


def _list(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)


def _metadata(metadata: MetadataAction) -> Plain:
    return {
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": metadata.provider, "options": {}},
        "schemaString": metadata.schema_string,
        "partitionColumns": list(metadata.partition_columns),
        "createdTime": metadata.created_ms,
        "configuration": dict(metadata.configuration),
    }


def _add(add: AddAction) -> Plain:
    return {
        "path": encode_path(add.path),
        "partitionValues": dict(add.partition_values),
        "size": add.size_bytes,
        "modificationTime": add.modified_ms,
        "dataChange": add.data_change,
        "stats": add.stats,
        "deletionVector": _vector(add.deletion_vector),
    }


def _remove(remove: RemoveAction) -> Plain:
    known = remove.partition_values is not None and remove.size_bytes is not None
    return {
        "path": encode_path(remove.path),
        "deletionTimestamp": remove.deleted_ms,
        "dataChange": remove.data_change,
        "extendedFileMetadata": known,
        "partitionValues": dict(remove.partition_values or {}) if known else None,
        "size": remove.size_bytes,
        "deletionVector": _vector(remove.deletion_vector),
    }


def _cdc(cdc: CdcAction) -> Plain:
    return {
        "path": encode_path(cdc.path),
        "partitionValues": dict(cdc.partition_values),
        "size": cdc.size_bytes,
        "dataChange": False,
    }


def _vector(vector: DeletionVector | None) -> Plain | None:
    if vector is None:
        return None
    return _present(
        {
            "storageType": vector.storage_type,
            "pathOrInlineDv": vector.path_or_inline,
            "offset": vector.offset,
            "sizeInBytes": vector.size_bytes,
            "cardinality": vector.cardinality,
        }
    )


def from_plain(name: str, plain: object) -> Action | None:
    """The action, or None for one that says nothing about files; ValueError if it is malformed."""
    if not isinstance(plain, dict):
        raise ValueError(f"{name} is not an object")  # noqa: TRY004 - data, not code
    match name:
        case "commitInfo":
            return _read_commit_info(plain)
        case "protocol":
            return _read_protocol(plain)
        case "metaData":
            return _read_metadata(plain)
        case "txn":
            app_id, number = _need(plain, "appId", str), _need(plain, "version", int)
            return TxnAction(app_id, number, _maybe(plain, "lastUpdated", int))
        case "add":
            return _read_add(plain)
        case "remove":
            return _read_remove(plain)
        case "cdc":
            return _read_cdc(plain)
        case "sidecar":
            return SidecarAction(unquote(_need(plain, "path", str)))
        case _:
            return None


def _read_commit_info(plain: Plain) -> CommitInfo:
    # Writers put what they like here, so only what has a meaning is insisted on.
    parameters = plain.get("operationParameters")
    return CommitInfo(
        time_ms=_maybe(plain, "timestamp", int),
        in_commit_ms=_maybe(plain, "inCommitTimestamp", int),
        transaction_id=_text(plain.get("txnId")),
        operation=_text(plain.get("operation")),
        parameters={k: str(v) for k, v in parameters.items()}
        if isinstance(parameters, dict)
        else {},
        blind_append=plain.get("isBlindAppend") is True,
        engine=_text(plain.get("engineInfo")),
        author=_text(plain.get("userName")),
        message=_text(plain.get("userMetadata")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _read_protocol(plain: Plain) -> ProtocolAction:
    return ProtocolAction(
        _need(plain, "minReaderVersion", int),
        _need(plain, "minWriterVersion", int),
        _maybe_names(plain, "readerFeatures"),
        _maybe_names(plain, "writerFeatures"),
    )


def _maybe_names(plain: Plain, name: str) -> tuple[str, ...] | None:
    names = _maybe(plain, name, list)
    return None if names is None else tuple(str(n) for n in names)


def _read_metadata(plain: Plain) -> MetadataAction:
    storage = _maybe(plain, "format", dict) or {}
    return MetadataAction(
        id=_need(plain, "id", str),
        schema_string=_need(plain, "schemaString", str),
        partition_columns=_maybe_names(plain, "partitionColumns") or (),
        configuration=_texts(plain, "configuration") or {},
        name=_maybe(plain, "name", str),
        description=_maybe(plain, "description", str),
        created_ms=_maybe(plain, "createdTime", int),
        provider=str(storage.get("provider", "parquet")),
    )


def _read_add(plain: Plain) -> AddAction:
    return AddAction(
        path=unquote(_need(plain, "path", str)),
        partition_values=_texts(plain, "partitionValues") or {},
        size_bytes=_need(plain, "size", int),
        modified_ms=_maybe(plain, "modificationTime", int) or 0,
        stats=_maybe(plain, "stats", str),
        deletion_vector=_read_vector(plain),
        data_change=plain.get("dataChange") is not False,
    )


def _read_remove(plain: Plain) -> RemoveAction:
    return RemoveAction(
        path=unquote(_need(plain, "path", str)),
        deleted_ms=_maybe(plain, "deletionTimestamp", int),
        partition_values=_texts(plain, "partitionValues"),
        size_bytes=_maybe(plain, "size", int),
        deletion_vector=_read_vector(plain),
        data_change=plain.get("dataChange") is not False,
    )


def _read_cdc(plain: Plain) -> CdcAction:
    return CdcAction(
        path=unquote(_need(plain, "path", str)),
        partition_values=_texts(plain, "partitionValues") or {},
        size_bytes=_need(plain, "size", int),
    )


def _read_vector(plain: Plain) -> DeletionVector | None:
    vector = _maybe(plain, "deletionVector", dict)
    if vector is None:
        return None
    return DeletionVector(
        _need(vector, "storageType", str),
        _need(vector, "pathOrInlineDv", str),
        _need(vector, "sizeInBytes", int),
        _need(vector, "cardinality", int),
        _maybe(vector, "offset", int),
    )


def _texts(plain: Plain, name: str) -> dict[str, Any] | None:
    """A map of texts; checkpoints give maps as pairs."""
    found = plain.get(name)
    if found is None:
        return None
    pairs = found if isinstance(found, list) else _need(plain, name, dict).items()
    try:
        return {str(key): value for key, value in pairs}
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not a map") from None


def _need(plain: Plain, name: str, kind: type[T]) -> T:
    value = _maybe(plain, name, kind)
    if value is None:
        raise ValueError(f"{name} is missing")
    return value


def _maybe(plain: Plain, name: str, kind: type[T]) -> T | None:
    value = plain.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name} is not of type {kind.__name__}")  # noqa: TRY004 - data, not code
    return value
