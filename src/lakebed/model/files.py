"""Data files and their column statistics; the statistics travel in one compact value."""

import base64
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lakebed.model.ids import FieldId, FileId, SnapshotId, SpecId, Version
from lakebed.model.types import DecimalType, FixedType, Primitive, Stored, Type
from lakebed.model.vectors import DeletionVector

# Longer text and binary bounds are cut to this many characters or bytes, the upper one rounded up.
BOUND_LENGTH = 32


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Of one leaf field in one file. A bound is None when unknown; NaN never counts into bounds."""

    value_count: int
    null_count: int | None = None
    nan_count: int | None = None
    size_bytes: int | None = None
    lower: Stored | None = None
    upper: Stored | None = None


@dataclass(frozen=True, slots=True)
class DataFile:
    """An immutable Parquet file; `path` is relative to the table's root."""

    path: str
    size_bytes: int
    record_count: int
    spec_id: SpecId
    partition: tuple[Stored | None, ...]
    stats: Mapping[FieldId, ColumnStats]
    sort_order_id: int = 0
    split_offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file with its place in a table's history: one interval in which it is visible."""

    id: FileId
    file: DataFile
    added_version: Version
    removed_version: Version | None
    sequence_number: int
    snapshot_id: SnapshotId  # the one that added it
    first_row_id: int | None
    vector: DeletionVector | None = None  # the rows of it that are gone

    @property
    def rows(self) -> int:
        """Those that are still there."""
        return self.file.record_count - (self.vector.cardinality if self.vector else 0)


def staged(files: Iterable[DataFile], version: Version) -> list[LiveFile]:
    """Files that are in no version yet, as if in this one; their ids are below zero."""
    return [
        LiveFile(FileId(-1 - n), file, version, None, 0, SnapshotId(0), None)
        for n, file in enumerate(files)
    ]


def to_plain(value: Stored | None) -> Any:
    """A stored value as a JSON value; exact for every type."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def from_plain(kind: Type, plain: Any) -> Stored | None:
    if plain is None:
        return None
    match kind:
        case DecimalType():
            return Decimal(plain)
        case FixedType() | Primitive("binary" | "uuid"):
            return base64.b64decode(plain)
        case Primitive("float" | "double"):
            return float(plain)
        case _:
            return plain  # type: ignore[no-any-return]  # JSON gave bool, int or str


def stats_to_plain(stats: Mapping[FieldId, ColumnStats]) -> list[list[Any]]:
    return [
        [
            field_id,
            s.value_count,
            s.null_count,
            s.nan_count,
            s.size_bytes,
            to_plain(s.lower),
            to_plain(s.upper),
        ]
        for field_id, s in stats.items()
    ]


def column_from_plain(plain: list[Any], kind: Type) -> ColumnStats:
    """What `stats_to_plain` made of one column."""
    _, values, nulls, nans, size, low, up = plain
    return ColumnStats(values, nulls, nans, size, from_plain(kind, low), from_plain(kind, up))
