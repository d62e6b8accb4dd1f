"""The table metadata file: pure, and the same bytes for the same version."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from lakebed.formats.iceberg import types
from lakebed.formats.iceberg.shown import Shown
from lakebed.formats.iceberg.snapshot_text import snapshot_texts
from lakebed.formats.iceberg.types import Json
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.history import BRANCH, MAIN, TableState
from lakebed.model.partitioning import FIRST_PARTITION_FIELD_ID, UNSORTED, PartitionSpec, SortOrder
from lakebed.model.schema import Schema

NAME_MAPPING = "schema.name-mapping.default"


@dataclass(frozen=True, slots=True)
class MetadataParts:
    """What a metadata file is made of."""

    uuid: str
    location: str  # the table's absolute root
    state: TableState
    shown: Shown
    updated_ms: int
    schemas: Sequence[Schema]  # every one the table ever had
    specs: Sequence[PartitionSpec]
    log: Sequence[tuple[int, str]]  # earlier metadata files: time in ms, path; oldest first


def render_metadata(parts: MetadataParts) -> bytes:
    state, shown = parts.state, parts.shown
    if state.schema.needs_iceberg_v3 and state.iceberg_version < 3:
        raise UnsupportedFeature(
            "the schema has types that Iceberg has from version 3 on",
            hint="set lakebed.upgrade to auto, or use timestamps in microseconds",
        )
    plain: Json = {
        "format-version": state.iceberg_version,
        "table-uuid": parts.uuid,
        "location": parts.location,
        "last-sequence-number": shown.newest.sequence_number if shown.newest else 0,
        "last-updated-ms": parts.updated_ms,
        "last-column-id": state.last_column_id,
        "current-schema-id": state.schema.id,
        "schemas": [types.schema_json(s, state.iceberg_version) for s in _schemas(state, parts)],
        "default-spec-id": state.spec.id,
        "partition-specs": [types.spec_json(s) for s in known_specs(state, parts.specs)],
        "last-partition-id": max(state.last_partition_id, FIRST_PARTITION_FIELD_ID - 1),
        "default-sort-order-id": state.sort_order.id,
        "sort-orders": [types.sort_order_json(o) for o in _sort_orders(state)],
        "properties": _properties(state),
        "refs": _refs(shown),
        "snapshots": snapshot_texts(shown.listed, parts.location, shown.published),
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [{"snapshot-id": i, "timestamp-ms": time_ms} for time_ms, i in shown.log],
        "metadata-log": [
            {"timestamp-ms": time_ms, "metadata-file": f"{parts.location}/{path}"}
            for time_ms, path in parts.log
        ],
    }
    if shown.current:
        plain["current-snapshot-id"] = shown.current.id
    if state.iceberg_version >= 3:
        plain["next-row-id"] = _next_row_id(shown)
    return orjson.dumps(plain)


# How much of the past is shown, and which refs: both may change between two tries.
_SHOWN = ("snapshots", "snapshot-log", "schemas", "partition-specs", "refs")


def shows_the_same_version(other: bytes, data: bytes) -> bool:
    """Whether another file says of the version what ours does, though it may list more or less."""
    try:
        theirs, ours = orjson.loads(other), orjson.loads(data)
    except ValueError:
        return False
    return isinstance(theirs, dict) and _version_only(theirs) == _version_only(ours)


def _version_only(plain: Json) -> Json:
    snapshots, main = plain.get("snapshots"), plain.get("current-snapshot-id")
    listed = snapshots if isinstance(snapshots, list) else []
    current = [s for s in listed if isinstance(s, dict) and s.get("snapshot-id") == main]
    return {**{k: v for k, v in plain.items() if k not in _SHOWN}, "snapshots": current}


def known_specs(state: TableState, specs: Sequence[PartitionSpec]) -> tuple[PartitionSpec, ...]:
    """Those there were when the state was made; its own may be an old one, taken again."""
    last = state.last_partition_id
    return tuple(s for s in specs if s == state.spec or all(f.id <= last for f in s.fields))


def known_schemas(state: TableState, schemas: Sequence[Schema]) -> tuple[Schema, ...]:
    """Those whose columns there were by then; files may still have columns dropped since."""
    return tuple(s for s in schemas if s.last_column_id <= state.last_column_id)


def _schemas(state: TableState, parts: MetadataParts) -> list[Schema]:
    """The state's, and those that listed snapshots name: a long past is not listed each time."""
    named = {s.schema_id for s in parts.shown.listed} | {state.schema.id}
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


def _refs(shown: Shown) -> Json:
    refs: Json = {}
    if shown.current:
        refs[MAIN] = {"snapshot-id": shown.current.id, "type": BRANCH}
    for ref, snapshot_id in shown.refs:
        plain = {
            "snapshot-id": snapshot_id,
            "type": ref.kind,
            "max-ref-age-ms": ref.max_age_ms,
            "min-snapshots-to-keep": ref.min_snapshots,
            "max-snapshot-age-ms": ref.max_snapshot_age_ms,
        }
        refs[ref.name] = {name: value for name, value in plain.items() if value is not None}
    return refs


def _next_row_id(shown: Shown) -> int:
    """A branch that was dropped has its row ids still."""
    known = [*shown.listed, *([shown.newest] if shown.newest else [])]
    return max(
        (s.first_row_id + (s.added_rows or 0) for s in known if s.first_row_id is not None),
        default=0,
    )
