"""The table metadata file: pure, and the same bytes for the same version."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from lakebed.core.ledger import VersionView
from lakebed.formats.iceberg import types
from lakebed.formats.iceberg.types import Json
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.history import Snapshot, TableState
from lakebed.model.ids import SnapshotId
from lakebed.model.partitioning import FIRST_PARTITION_FIELD_ID, UNSORTED, PartitionSpec, SortOrder
from lakebed.model.schema import Schema

NAME_MAPPING = "schema.name-mapping.default"


@dataclass(frozen=True, slots=True)
class MetadataParts:
    """What a metadata file shows beside the version itself."""

    location: str  # the table's absolute root
    snapshots: Sequence[Snapshot]  # to be listed, newest first, each with its manifest list
    published: frozenset[SnapshotId]  # which parents may be named
    schemas: Sequence[Schema]  # every one the table ever had
    specs: Sequence[PartitionSpec]
    log: Sequence[tuple[int, str]]  # earlier metadata files: time in ms, path; oldest first


def render_metadata(view: VersionView, parts: MetadataParts) -> bytes:
    state, current = view.state, parts.snapshots[0] if parts.snapshots else None
    if state.schema.needs_iceberg_v3 and state.iceberg_version < 3:
        raise UnsupportedFeature(
            "the schema has types that Iceberg has from version 3 on",
            hint="set lakebed.upgrade to auto, or use timestamps in microseconds",
        )
    listed = list(reversed(parts.snapshots))
    plain: Json = {
        "format-version": state.iceberg_version,
        "table-uuid": view.head.uuid,
        "location": parts.location,
        "last-sequence-number": current.sequence_number if current else 0,
        "last-updated-ms": view.commit.time_ms,
        "last-column-id": state.last_column_id,
        "current-schema-id": state.schema.id,
        "schemas": [types.schema_json(s, state.iceberg_version) for s in _schemas(state, parts)],
        "default-spec-id": state.spec.id,
        "partition-specs": [types.spec_json(s) for s in known_specs(state, parts.specs)],
        "last-partition-id": max(state.last_partition_id, FIRST_PARTITION_FIELD_ID - 1),
        "default-sort-order-id": state.sort_order.id,
        "sort-orders": [types.sort_order_json(o) for o in _sort_orders(state)],
        "properties": _properties(state),
        "refs": _main(current) if current else {},
        "snapshots": [_snapshot(s, parts) for s in listed],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [{"snapshot-id": s.id, "timestamp-ms": s.time_ms} for s in listed],
        "metadata-log": [
            {"timestamp-ms": time_ms, "metadata-file": f"{parts.location}/{path}"}
            for time_ms, path in parts.log
        ],
    }
    if current:
        plain["current-snapshot-id"] = current.id
    if state.iceberg_version >= 3:
        plain["next-row-id"] = _next_row_id(parts.snapshots)
    return orjson.dumps(plain)


# How much of the past is shown: that depends on settings, which may change between two tries.
_SHOWN = ("snapshots", "snapshot-log", "schemas", "partition-specs")


def shows_the_same_version(other: bytes, data: bytes) -> bool:
    """Whether another file says of the version what ours does, though it may list more or less."""
    try:
        theirs, ours = orjson.loads(other), orjson.loads(data)
    except ValueError:
        return False
    return isinstance(theirs, dict) and _version_only(theirs) == _version_only(ours)


def _version_only(plain: Json) -> Json:
    snapshots = plain.get("snapshots")
    newest = snapshots[-1:] if isinstance(snapshots, list) else snapshots
    return {**{k: v for k, v in plain.items() if k not in _SHOWN}, "snapshots": newest}


def known_specs(state: TableState, specs: Sequence[PartitionSpec]) -> tuple[PartitionSpec, ...]:
    """Those there were when the state was made; its own may be an old one, taken again."""
    last = state.last_partition_id
    return tuple(s for s in specs if s == state.spec or all(f.id <= last for f in s.fields))


def known_schemas(state: TableState, schemas: Sequence[Schema]) -> tuple[Schema, ...]:
    """Those whose columns there were by then; files may still have columns dropped since."""
    return tuple(s for s in schemas if s.last_column_id <= state.last_column_id)


def _schemas(state: TableState, parts: MetadataParts) -> list[Schema]:
    """The state's, and those that listed snapshots name: a long past is not listed each time."""
    named = {s.schema_id for s in parts.snapshots} | {state.schema.id}
    return sorted((s for s in parts.schemas if s.id in named), key=lambda s: s.id)


def _sort_orders(state: TableState) -> list[SortOrder]:
    return [UNSORTED, state.sort_order] if state.sort_order.id != UNSORTED.id else [UNSORTED]


def _properties(state: TableState) -> dict[str, str]:
    properties = dict(state.properties)
    if state.comment is not None:
        properties["comment"] = state.comment
    # Files are removed by the lake alone: other versions and Delta readers need them still.
    properties["gc.enabled"] = "false"
    properties[NAME_MAPPING] = types.name_mapping_json(state.schema)
    return dict(sorted(properties.items()))


def _main(current: Snapshot) -> Json:
    return {"main": {"snapshot-id": current.id, "type": "branch"}}


def _snapshot(snapshot: Snapshot, parts: MetadataParts) -> Json:
    plain: Json = {"sequence-number": snapshot.sequence_number, "snapshot-id": snapshot.id}
    # A parent that is no longer listed keeps its name, as after an expiry; one that was made while
    # Iceberg was off was never there.
    if snapshot.parent_id in parts.published:
        plain["parent-snapshot-id"] = snapshot.parent_id
    plain |= {
        "timestamp-ms": snapshot.time_ms,
        "summary": {"operation": snapshot.operation, **snapshot.summary},
        "manifest-list": f"{parts.location}/{snapshot.manifest_list}",
        "schema-id": snapshot.schema_id,
    }
    if snapshot.first_row_id is not None:
        plain["first-row-id"] = snapshot.first_row_id
        plain["added-rows"] = snapshot.added_rows or 0
    return plain


def _next_row_id(snapshots: Sequence[Snapshot]) -> int:
    return max(
        (s.first_row_id + (s.added_rows or 0) for s in snapshots if s.first_row_id is not None),
        default=0,
    )
