"""Our own reader of Iceberg tables: a snapshot's live files, decoded from its list and manifests.

What is broken or missing raises DataCorrupt, ObjectMissing or UnsupportedFeature, nothing else.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import orjson

from lakebed.formats.iceberg.bounds import from_avro, from_binary
from lakebed.formats.iceberg.manifest_files import (
    DATA_FILE,
    DELETED,
    ManifestDataFile,
    ManifestEntry,
    ManifestListEntry,
    decode_manifest,
    decode_manifest_list,
)
from lakebed.formats.iceberg.names import VERSION_HINT
from lakebed.formats.iceberg.puffin import decode_puffin
from lakebed.formats.iceberg.types import leaf_types, partition_kinds
from lakebed.model.errors import DataCorrupt, LakebedError, NotFound, UnsupportedFeature
from lakebed.model.files import ColumnStats, DataFile
from lakebed.model.history import DATA
from lakebed.model.ids import FieldId, SpecId
from lakebed.model.types import Scalar
from lakebed.model.vectors import Positions
from lakebed.storage.base import Storage

_NEWEST_VERSION = 3
_GZIP = b"\x1f\x8b"
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "file": ""}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """A live data file: its entry with all that it inherits, and the same in our own terms."""

    entry: ManifestEntry
    file: DataFile


@dataclass(frozen=True, slots=True)
class IcebergSnapshot:
    """A table at one snapshot, which is None when the table has none; paths are below its root."""

    metadata_path: str
    metadata: Mapping[str, Any]
    snapshot: Mapping[str, Any] | None
    files: dict[str, IcebergFile]
    vectors: dict[str, ManifestDataFile]  # by the paths of their data files
    deletes: tuple[ManifestEntry, ...]  # of other kinds


def read_snapshot(
    storage: Storage,
    root: str,
    *,
    metadata_path: str | None = None,
    snapshot_id: int | None = None,
) -> IcebergSnapshot:
    """Open a table by its folder or a metadata file of it, at the current snapshot or another."""
    path = metadata_path or _hinted(storage, root)
    metadata = read_metadata(storage, root, path)
    snapshot = _find_snapshot(metadata, snapshot_id)
    reader = _Reader(storage, root, metadata)
    files: dict[str, IcebergFile] = {}
    vectors: dict[str, ManifestDataFile] = {}
    deletes: list[ManifestEntry] = []
    for entry, file in reader.live_entries(snapshot) if snapshot else ():
        if file is not None:
            if file.path in files:
                raise _corrupt(path, f"the snapshot lists {file.path} twice")
            files[file.path] = IcebergFile(entry, file)
        elif entry.file.content_offset is None:
            deletes.append(entry)
        else:
            about = reader.relative(entry.file.referenced_data_file or "")
            if about in vectors:
                raise _corrupt(path, f"{about} has two deletion vectors")
            vectors[about] = entry.file
    if not vectors.keys() <= files.keys():
        raise _corrupt(
            path, f"deletion vectors of no file: {sorted(vectors.keys() - files.keys())}"
        )
    return IcebergSnapshot(path, metadata, snapshot, files, vectors, tuple(deletes))


def read_vectors(storage: Storage, root: str, found: IcebergSnapshot) -> dict[str, Positions]:
    """The deleted positions of data files, by path; each Puffin file is read once."""
    reader = _Reader(storage, root, found.metadata)
    puffins: dict[str, dict[int, tuple[str, Positions]]] = {}
    positions = {}
    for path, vector in found.vectors.items():
        puffin = reader.relative(vector.file_path)
        if puffin not in puffins:
            puffins[puffin] = _puffin(storage, root, puffin, vector.file_size_in_bytes)
        about, positions[path] = puffins[puffin].get(vector.content_offset or 0, ("", Positions()))
        if about != vector.referenced_data_file or len(positions[path]) != vector.record_count:
            raise _corrupt(puffin, f"the vector at {vector.content_offset} is not that of {path}")
    return positions


def _puffin(
    storage: Storage, root: str, path: str, size_bytes: int
) -> dict[int, tuple[str, Positions]]:
    data = storage.get(f"{root}/{path}")
    if len(data) != size_bytes:
        raise _corrupt(path, f"{len(data)} bytes, listed with {size_bytes}")
    return _decoded(path, lambda: decode_puffin(data))


def read_metadata(storage: Storage, root: str, path: str) -> dict[str, Any]:
    data = storage.get(f"{root}/{path}")
    try:
        metadata = orjson.loads(gzip.decompress(data) if data[:2] == _GZIP else data)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise _corrupt(path, f"not a metadata file: {error}") from error
    if not isinstance(metadata, dict) or not isinstance(metadata.get("format-version"), int):
        raise _corrupt(path, "not a metadata file: it has no format version")
    if not 1 <= metadata["format-version"] <= _NEWEST_VERSION:
        raise UnsupportedFeature(
            f"{path} is of Iceberg version {metadata['format-version']}",
            hint=f"versions up to {_NEWEST_VERSION} can be read",
            path=path,
        )
    if not isinstance(metadata.get("location"), str):
        raise _corrupt(path, "the metadata names no location")
    return metadata


def _hinted(storage: Storage, root: str) -> str:
    hint = storage.get(f"{root}/{VERSION_HINT}").decode(errors="replace").strip()
    if not hint or "/" in hint:
        raise _corrupt(VERSION_HINT, f"{hint!r} names no metadata file")
    if hint.endswith(".metadata.json"):
        return f"metadata/{hint}"
    return (
        f"metadata/v{hint}.metadata.json" if hint.isdecimal() else f"metadata/{hint}.metadata.json"
    )


def _find_snapshot(
    metadata: Mapping[str, Any], snapshot_id: int | None
) -> Mapping[str, Any] | None:
    wanted = metadata.get("current-snapshot-id") if snapshot_id is None else snapshot_id
    if wanted is None or (snapshot_id is None and wanted == -1):
        return None
    snapshots = metadata.get("snapshots")
    for snapshot in snapshots if isinstance(snapshots, list) else ():
        if isinstance(snapshot, dict) and snapshot.get("snapshot-id") == wanted:
            return snapshot
    if snapshot_id is None:
        raise _corrupt("metadata", f"the current snapshot {wanted} is not listed")
    raise NotFound(
        f"snapshot {wanted} is not listed in the table's metadata",
        hint="older versions can be read through the lake",
        snapshot_id=wanted,
    )


class _Reader:
    def __init__(self, storage: Storage, root: str, metadata: Mapping[str, Any]) -> None:
        self._storage = storage
        self._root = root
        self._bases = [_plain(metadata["location"]), _plain(storage.location(root))]
        try:
            self._leaves = _all_leaves(metadata)
            specs = metadata.get("partition-specs") or []
            self._kinds = {s["spec-id"]: partition_kinds(s["fields"], self._leaves) for s in specs}
        except (LookupError, TypeError, AttributeError) as error:
            raise _corrupt("metadata", f"broken schemas or partition specs: {error!r}") from error

    def live_entries(
        self, snapshot: Mapping[str, Any]
    ) -> Iterator[tuple[ManifestEntry, DataFile | None]]:
        """Every live entry; without a file of ours when it is a delete file."""
        location = snapshot.get("manifest-list")
        if not isinstance(location, str):
            raise UnsupportedFeature(
                f"snapshot {snapshot.get('snapshot-id')} has no manifest list",
                hint="rewrite the table's manifests with its own writer first",
            )
        path = self.relative(location)
        data = self._storage.get(f"{self._root}/{path}")
        _, manifests = _decoded(path, lambda: decode_manifest_list(data))
        for manifest in manifests:
            yield from self._manifest(manifest)

    def _manifest(
        self, manifest: ManifestListEntry
    ) -> Iterator[tuple[ManifestEntry, DataFile | None]]:
        path = self.relative(manifest.manifest_path)
        data = self._storage.get(f"{self._root}/{path}")
        if len(data) != manifest.manifest_length:
            raise _corrupt(path, f"{len(data)} bytes, listed with {manifest.manifest_length}")
        _, entries = _decoded(path, lambda: decode_manifest(data))
        live = [e for e in _inherited(manifest, entries) if e.status != DELETED]
        if len(live) != manifest.added_files_count + manifest.existing_files_count:
            raise _corrupt(path, f"{len(live)} live entries, which is not what its list says")
        for entry in live:
            is_data = manifest.content == DATA and entry.file.content == DATA_FILE
            file = self._file(entry.file, manifest.partition_spec_id) if is_data else None
            yield entry, file

    def _file(self, found: ManifestDataFile, spec_id: int) -> DataFile:
        path = self.relative(found.file_path)
        kinds = self._kinds.get(spec_id)
        if kinds is None or len(kinds) != len(found.partition):
            raise _corrupt(path, f"its partition does not fit spec {spec_id}")
        partition = zip(kinds, found.partition, strict=True)
        return DataFile(
            path=path,
            size_bytes=found.file_size_in_bytes,
            record_count=found.record_count,
            spec_id=SpecId(spec_id),
            partition=tuple(None if k is None else from_avro(k, v) for k, v in partition),
            stats=_decoded(path, lambda: _stats(found, self._leaves)),
            sort_order_id=found.sort_order_id or 0,
            split_offsets=found.split_offsets or (),
        )

    def relative(self, location: str) -> str:
        plain = _plain(location)
        for base in self._bases:
            if plain.startswith(f"{base}/"):
                return plain[len(base) + 1 :]
        raise UnsupportedFeature(
            f"{location} is not below the table's folder {self._bases[0]}",
            hint="only tables whose files all lie in their own folder can be read",
            path=location,
        )


def _all_leaves(metadata: Mapping[str, Any]) -> dict[int, Scalar]:
    """Of every schema, the newest last: files may know columns that were dropped since."""
    leaves: dict[int, Scalar] = {}
    schemas = metadata.get("schemas") or [metadata.get("schema") or {}]
    for schema in sorted(schemas, key=lambda s: s.get("schema-id", 0)):
        leaves |= leaf_types(schema)
    return leaves


def _inherited(
    manifest: ManifestListEntry, entries: list[ManifestEntry]
) -> Iterator[ManifestEntry]:
    """What an entry leaves empty it has from the manifest's entry in the list."""
    next_row_id = manifest.first_row_id
    for found in entries:
        entry, number = found, manifest.sequence_number
        if entry.snapshot_id is None:
            entry = replace(entry, snapshot_id=manifest.added_snapshot_id)
        if entry.sequence_number is None:
            entry = replace(entry, sequence_number=number)
        if entry.file_sequence_number is None:
            entry = replace(entry, file_sequence_number=number)
        lacks = entry.file.first_row_id is None and entry.status != DELETED
        if lacks and next_row_id is not None:
            entry = replace(entry, file=replace(entry.file, first_row_id=next_row_id))
            next_row_id += entry.file.record_count
        yield entry


def _stats(found: ManifestDataFile, leaves: Mapping[int, Scalar]) -> dict[FieldId, ColumnStats]:
    lower, upper = found.lower_bounds or {}, found.upper_bounds or {}
    nulls, nans = found.null_value_counts or {}, found.nan_value_counts or {}
    sizes = found.column_sizes or {}
    return {
        FieldId(i): ColumnStats(
            count,
            nulls.get(i),
            nans.get(i),
            sizes.get(i),
            from_binary(leaves[i], lower[i]) if i in lower else None,
            from_binary(leaves[i], upper[i]) if i in upper else None,
        )
        for i, count in (found.value_counts or {}).items()
        if i in leaves
    }


def _plain(location: str) -> str:
    """One spelling for the same place: file:///a and /a, s3a://b and s3://b."""
    scheme, colon, rest = location.partition(":")
    if colon and scheme in _SAME_STORE:
        other = _SAME_STORE[scheme]
        location = f"{other}:{rest}" if other else f"/{rest.lstrip('/')}"
    return location.rstrip("/")


def _decoded(path: str, decode: Callable[[], _T]) -> _T:
    try:
        return decode()
    except LakebedError as error:
        raise _corrupt(path, error.message) from error


def _corrupt(path: str, why: str) -> DataCorrupt:
    return DataCorrupt(
        f"{path}: {why}",
        hint="run `lakebed check`; what was published can be written again from the rows",
        path=path,
    )
