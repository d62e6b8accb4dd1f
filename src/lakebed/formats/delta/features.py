"""Delta's protocol as records: when a feature is used, by whom, and which properties say so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakebed.formats.delta.actions import ProtocolAction
from lakebed.model.carried import DELTA_CLAIMS
from lakebed.model.history import CHANGE_FEED, TableState
from lakebed.model.ids import Version
from lakebed.model.types import Field, StructType

# No writer knows this feature, so every stock writer and vacuum refuses; readers do not look.
FENCE = "lakebedManaged"


@dataclass(frozen=True, slots=True)
class Feature:
    name: str
    readers: bool  # must readers know it, or writers alone?
    used: Callable[[TableState], bool]
    properties: Callable[[TableState], Mapping[str, str]] = lambda _: {}


@dataclass(frozen=True, slots=True)
class Start:
    """Delta was turned on at a version after the first: the log begins there."""

    version: Version
    time_ms: int


def _has_required(fields: tuple[Field, ...]) -> bool:
    """NOT NULL is an invariant at the top and in structs; elements of lists and maps have none."""
    return any(
        f.required or (isinstance(f.type, StructType) and _has_required(f.type.fields))
        for f in fields
    )


def _is_append_only(state: TableState) -> bool:
    return state.properties.get("delta.appendOnly", "").lower() == "true"


# Spark refuses a table whose schema or properties use a feature that the protocol does not list.
FEATURES: tuple[Feature, ...] = (
    Feature(
        "inCommitTimestamp",
        readers=False,
        used=lambda _: True,
        properties=lambda _: {"delta.enableInCommitTimestamps": "true"},
    ),
    Feature(FENCE, readers=False, used=lambda _: True),
    Feature(
        "columnMapping",
        readers=True,
        used=lambda state: state.delta_mapping,
        properties=lambda state: {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": str(state.last_column_id),
        },
    ),
    Feature(
        "deletionVectors",
        readers=True,
        used=lambda state: state.delta_vectors,
        properties=lambda _: {"delta.enableDeletionVectors": "true"},
    ),
    Feature("appendOnly", readers=False, used=_is_append_only),
    Feature(
        "changeDataFeed",
        readers=False,
        used=lambda state: state.delta_change_feed,
        properties=lambda _: {CHANGE_FEED: "true"},
    ),
    Feature("invariants", readers=False, used=lambda state: _has_required(state.schema.fields)),
    Feature(
        "allowColumnDefaults",
        readers=False,
        used=lambda state: any(f.write_default is not None for f in state.schema.walk()),
    ),
    Feature(
        "checkConstraints",
        readers=False,
        used=lambda state: bool(state.constraints),
        # Delta wants TRUE for every row; NULL passes here, as in standard SQL.
        properties=lambda state: {
            f"delta.constraints.{name}": f"({constraint.spark}) IS NOT FALSE"
            for name, constraint in state.constraints.items()
        },
    ),
    # Files that hold a narrower type than the schema says break the protocol without it.
    Feature(
        "typeWidening",
        readers=True,
        used=lambda state: any(f.widened for f in state.schema.walk()),
        properties=lambda _: {"delta.enableTypeWidening": "true"},
    ),
    Feature("timestampNtz", readers=True, used=lambda state: state.schema.uses_timestamp_ntz),
)


def protocol_of(state: TableState) -> ProtocolAction:
    """The lowest protocol that is true beside the fence."""
    used = [f for f in FEATURES if f.used(state)]
    read = tuple(f.name for f in used if f.readers)
    return ProtocolAction(
        min_reader=3 if read else 1,
        min_writer=7,
        reader_features=read or None,
        writer_features=tuple(f.name for f in used),
    )


def configuration_of(state: TableState, start: Start | None) -> dict[str, str]:
    """The table's properties as they are, but for claims, and those of the features in use."""
    shown = {k: v for k, v in state.properties.items() if not k.startswith(DELTA_CLAIMS)}
    for feature in FEATURES:
        if feature.used(state):
            shown.update(feature.properties(state))
    if CHANGE_FEED in state.properties:
        shown[CHANGE_FEED] = state.properties[CHANGE_FEED]  # deltalake reads on unless it is told
    if start is not None:
        shown["delta.inCommitTimestampEnablementVersion"] = str(start.version)
        shown["delta.inCommitTimestampEnablementTimestamp"] = str(start.time_ms)
    return dict(sorted(shown.items()))
