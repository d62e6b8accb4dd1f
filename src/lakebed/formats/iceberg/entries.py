"""Rows of data files as manifest entries, and a manifest as its record; pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import orjson

from lakebed.formats.iceberg import types
from lakebed.formats.iceberg.bounds import (
    fits,
    is_nan,
    lower_to_binary,
    to_avro,
    upper_to_binary,
)
from lakebed.formats.iceberg.listed import Listed, LiveVector, rows_of
from lakebed.formats.iceberg.manifest_files import (
    ADDED,
    DATA_FILE,
    DELETED,
    EXISTING,
    POSITION_DELETES,
    ManifestDataFile,
    ManifestEntry,
    ManifestListEntry,
    PartitionSummary,
    PartitionValue,
    encode_manifest,
)
from lakebed.formats.iceberg.manifest_schemas import PartitionField
from lakebed.model.errors import PublishError
from lakebed.model.files import ColumnStats, DataFile, LiveFile
from lakebed.model.history import DELETES, ManifestRecord, PublicationRecord, Snapshot
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.types import DecimalType, FixedType, Primitive, Scalar, Stored
from lakebed.model.vectors import FRAME_BYTES

Summary: TypeAlias = tuple[bool, bool | None, str | None, str | None]
# Readers disagree whether the first bit of a UUID is a sign, so that bounds would mislead some.
_UNORDERED = Primitive("uuid")
_FLOATS = (Primitive("float"), Primitive("double"))


@dataclass(frozen=True, slots=True)
class SpecShape:
    fields_json: bytes
    kinds: tuple[Scalar, ...]
    partition_type: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """How one version of a table writes its manifests; `location` is the table's absolute root."""

    format_version: int
    location: str
    schema_json: bytes
    leaves: Mapping[int, Scalar]
    specs: Mapping[int, SpecShape]


@lru_cache(maxsize=256)
def shape_of(
    schema: Schema,
    known: tuple[Schema, ...],
    specs: tuple[PartitionSpec, ...],
    format_version: int,
    location: str,
) -> Shape:
    """`known`: the schemas so far, oldest first; a spec's source may be in an earlier one only."""
    ever: dict[int, Scalar] = {}
    for each in (*known, schema):
        ever |= _leaves(each)
    shapes = {}
    for spec in specs:
        kinds = types.partition_scalars(spec, ever)
        fields = orjson.dumps(types.spec_fields_json(spec))
        shapes[int(spec.id)] = SpecShape(fields, kinds, types.partition_type(spec, kinds))
    schema_json = orjson.dumps(types.schema_json(schema, format_version))
    return Shape(format_version, location, schema_json, _leaves(schema), shapes)


def _leaves(schema: Schema) -> dict[int, Scalar]:
    return {
        int(f.id): f.type
        for f in schema.walk()
        if isinstance(f.type, Primitive | DecimalType | FixedType)
    }


@dataclass(frozen=True, slots=True)
class Content:
    """What one manifest lists, by what its snapshot says of it.

    `puffins` are the files of the vectors, by the sequence numbers of those.
    """

    content: int
    spec_id: int
    first_id: int
    last_id: int
    kept: Sequence[Listed] = ()
    added: Sequence[Listed] = ()
    removed: Sequence[Listed] = ()
    puffins: Mapping[int, PublicationRecord] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Listed, ...]:
        return (*self.kept, *self.added, *self.removed)


def encode(shape: Shape, snapshot: Snapshot, content: Content, *, sync: bytes) -> bytes:
    spec = shape.specs[content.spec_id]
    return encode_manifest(
        manifest_entries(shape, snapshot, content),
        schema_json=shape.schema_json,
        spec_json=spec.fields_json,
        spec_id=content.spec_id,
        format_version=shape.format_version,
        content=content.content,
        partition_type=spec.partition_type,
        sync=sync,
    )


def manifest_entries(shape: Shape, snapshot: Snapshot, content: Content) -> list[ManifestEntry]:
    """In the order of the ids; that of the files is the order of the row ids."""

    def shown(listed: Listed) -> ManifestDataFile:
        if isinstance(listed, LiveVector):
            return delete_file(shape, listed, content.puffins[listed.sequence_number])
        assert isinstance(listed, LiveFile)
        return data_file(shape, listed)

    entries = [(f.id, _existing(f, shown(f))) for f in content.kept]
    entries += [(f.id, _added(f, shown(f), snapshot)) for f in content.added]
    entries += [(f.id, _deleted(f, shown(f), snapshot)) for f in content.removed]
    return [entry for _, entry in sorted(entries, key=lambda pair: pair[0])]


def _existing(listed: Listed, shown: ManifestDataFile) -> ManifestEntry:
    number = listed.sequence_number
    return ManifestEntry(EXISTING, listed.snapshot_id, number, number, shown)


def _added(listed: Listed, shown: ManifestDataFile, snapshot: Snapshot) -> ManifestEntry:
    # Null is inherited from the manifest list; what comes back keeps its number.
    number = None if listed.snapshot_id == snapshot.id else listed.sequence_number
    return ManifestEntry(ADDED, snapshot.id, number, None, shown)


def _deleted(listed: Listed, shown: ManifestDataFile, snapshot: Snapshot) -> ManifestEntry:
    number = listed.sequence_number
    return ManifestEntry(DELETED, snapshot.id, number, number, shown)


def delete_file(shape: Shape, live: LiveVector, puffin: PublicationRecord) -> ManifestDataFile:
    vector, file = live.vector, live.file
    return ManifestDataFile(
        content=POSITION_DELETES,
        file_path=f"{shape.location}/{puffin.path}",
        file_format="PUFFIN",
        partition=_partition(shape, file),
        record_count=vector.cardinality,
        file_size_in_bytes=puffin.size_bytes,
        referenced_data_file=f"{shape.location}/{file.path}",
        content_offset=vector.puffin_offset,
        content_size_in_bytes=vector.size_bytes + FRAME_BYTES,
    )


def _partition(shape: Shape, file: DataFile) -> tuple[PartitionValue, ...]:
    kinds = shape.specs[file.spec_id].kinds
    return tuple(
        to_avro(kind, value) if value is not None and fits(kind, value) else None
        for kind, value in zip(kinds, file.partition, strict=True)
    )


def data_file(shape: Shape, live: LiveFile) -> ManifestDataFile:
    file, leaves = live.file, shape.leaves
    stats = {int(i): s for i, s in file.stats.items() if i in leaves}
    return ManifestDataFile(
        content=DATA_FILE,
        file_path=f"{shape.location}/{file.path}",
        file_format="PARQUET",
        partition=_partition(shape, file),
        record_count=file.record_count,
        file_size_in_bytes=file.size_bytes,
        column_sizes=_counts(stats, lambda s: s.size_bytes),
        value_counts=_counts(stats, lambda s: s.value_count),
        null_value_counts=_counts(stats, lambda s: s.null_count),
        nan_value_counts=_counts(stats, lambda s: s.nan_count),
        lower_bounds=_bounds(stats, leaves, lambda s: s.lower, lower_to_binary),
        upper_bounds=_bounds(stats, leaves, lambda s: s.upper, upper_to_binary),
        split_offsets=tuple(file.split_offsets) or None,
        sort_order_id=file.sort_order_id,
        first_row_id=_first_row_id(shape, live),
    )


def _counts(
    stats: Mapping[int, ColumnStats], take: Callable[[ColumnStats], int | None]
) -> dict[int, int] | None:
    found = {i: n for i, s in stats.items() if (n := take(s)) is not None}
    return found or None


def _bounds(
    stats: Mapping[int, ColumnStats],
    leaves: Mapping[int, Scalar],
    take: Callable[[ColumnStats], Stored | None],
    encoded: Callable[[Scalar, Stored], bytes],
) -> dict[int, bytes] | None:
    found = {}
    for field_id, column in stats.items():
        bound, kind = take(column), leaves[field_id]
        if bound is None or is_nan(bound) or kind == _UNORDERED or not fits(kind, bound):
            continue
        found[field_id] = encoded(kind, bound)
    return found or None


def _first_row_id(shape: Shape, live: LiveFile) -> int | None:
    """Always written out, though an added file could inherit it: the rows decided it already."""
    if shape.format_version < 3:
        return None
    if live.first_row_id is None:
        raise PublishError(
            f"file {live.file.path} has no row ids, which Iceberg v3 demands",
            hint="the commit that made the table v3 must give them to all live files",
            path=live.file.path,
        )
    return live.first_row_id


@dataclass(frozen=True, slots=True)
class Written:
    """Where a manifest was put."""

    id: int
    path: str
    size_bytes: int
    digest: str


def record_of(
    shape: Shape, snapshot: Snapshot, content: Content, written: Written
) -> ManifestRecord:
    live = [*content.kept, *content.added]
    groups = (content.added, content.kept, content.removed)
    added, kept, removed = (len(group) for group in groups)
    added_rows, kept_rows, removed_rows = (sum(map(rows_of, group)) for group in groups)
    return ManifestRecord(
        id=written.id,
        path=written.path,
        size_bytes=written.size_bytes,
        digest=written.digest,
        spec_id=content.spec_id,
        sequence_number=snapshot.sequence_number,
        min_sequence_number=min(
            (f.sequence_number for f in live), default=snapshot.sequence_number
        ),
        snapshot_id=snapshot.id,
        counts=(added, kept, removed, added_rows, kept_rows, removed_rows),
        partitions=summarise(shape.specs[content.spec_id].kinds, content.all),
        first_row_id=_manifest_row_id(shape, snapshot, content),
        first_id=content.first_id,
        last_id=content.last_id,
        content=content.content,
    )


def _manifest_row_id(shape: Shape, snapshot: Snapshot, content: Content) -> int | None:
    """What entries without row ids would inherit; ours all have them."""
    if shape.format_version < 3 or content.content == DELETES:
        return None
    files = [f for f in content.all if isinstance(f, LiveFile)]
    new = [f for f in content.added if isinstance(f, LiveFile) and f.snapshot_id == snapshot.id]
    ids = [f.first_row_id for f in new or files if f.first_row_id is not None]
    return min(ids, default=snapshot.first_row_id or 0)


def summarise(kinds: Sequence[Scalar], files: Iterable[Listed]) -> tuple[Summary, ...]:
    """One summary per partition field; none at all when one has no order readers agree on."""
    if _UNORDERED in kinds:
        return ()
    partitions = [f.file.partition for f in files]
    return tuple(_summary(kind, [p[at] for p in partitions]) for at, kind in enumerate(kinds))


def _summary(kind: Scalar, values: list[Stored | None]) -> Summary:
    filled = [v for v in values if v is not None and not is_nan(v) and fits(kind, v)]
    bounds: list[str | None] = [None, None]
    if filled:
        low, high = min(filled), max(filled)
        bounds = [lower_to_binary(kind, low).hex(), upper_to_binary(kind, high).hex()]
    nans = any(is_nan(v) for v in values) if kind in _FLOATS else False
    return any(v is None for v in values), nans, bounds[0], bounds[1]


def list_entry(shape: Shape, manifest: ManifestRecord) -> ManifestListEntry:
    files_added, kept, deleted, rows_added, rows_kept, rows_deleted = manifest.counts
    summarised = len(manifest.partitions) == len(shape.specs[manifest.spec_id].kinds)
    return ManifestListEntry(
        manifest_path=f"{shape.location}/{manifest.path}",
        manifest_length=manifest.size_bytes,
        partition_spec_id=manifest.spec_id,
        content=manifest.content,
        sequence_number=manifest.sequence_number,
        min_sequence_number=manifest.min_sequence_number,
        added_snapshot_id=manifest.snapshot_id,
        added_files_count=files_added,
        existing_files_count=kept,
        deleted_files_count=deleted,
        added_rows_count=rows_added,
        existing_rows_count=rows_kept,
        deleted_rows_count=rows_deleted,
        partitions=tuple(map(_summary_entry, manifest.partitions)) if summarised else None,
        first_row_id=manifest.first_row_id if shape.format_version >= 3 else None,
    )


def _summary_entry(summary: Summary) -> PartitionSummary:
    null, nan, low, high = summary
    return PartitionSummary(
        null,
        nan,
        None if low is None else bytes.fromhex(low),
        None if high is None else bytes.fromhex(high),
    )
