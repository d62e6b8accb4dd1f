"""Pure: how changes move a table's state, and what a state may not be."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from lakebed.model.changes import (
    AppendFiles,
    Change,
    CreateTable,
    DeleteRows,
    FastForward,
    RemoveFiles,
    Republish,
    Restore,
    SetComment,
    SetConstraints,
    SetFormats,
    SetProperties,
    SetSchema,
    SetSortOrder,
    SetSpec,
)
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.files import DataFile
from lakebed.model.history import CHANGE_FEED, DELTA, ICEBERG, TableState
from lakebed.model.ids import StateId
from lakebed.model.partitioning import FIRST_PARTITION_FIELD_ID, PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.types import FixedType, Primitive, Stored, can_widen, is_scalar
from lakebed.model.vectors import Positions

# Delta keeps partition values as text; these types do not survive that in every reader.
_NOT_IN_DELTA_FOLDERS = ("binary", "float", "double")
_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")


def first_state(change: CreateTable) -> TableState:
    return _checked(
        TableState(
            id=StateId(0),
            schema=change.schema,
            spec=change.spec,
            sort_order=change.sort_order,
            properties=dict(change.properties),
            formats=change.formats,
            last_column_id=change.schema.last_column_id,
            last_partition_id=FIRST_PARTITION_FIELD_ID + len(change.spec.fields) - 1,
            iceberg_version=3 if change.schema.needs_iceberg_v3 else 2,
            delta_mapping=change.schema.needs_column_mapping,
            delta_partitioned=_shows_partitions(change.schema, change.spec),
            comment=change.comment,
            constraints=dict(change.constraints),
        )
    )


def created(changes: Sequence[Change]) -> TableState:
    """A table created with data has one state: the one its first files leave behind."""
    first = first_state(next(c for c in changes if isinstance(c, CreateTable)))
    return replace(next_state(first, changes), id=first.id)


def upgrades(before: TableState | None, after: TableState) -> bool:
    """Does a table become Iceberg v3, whose rows have ids?"""
    return before is not None and before.iceberg_version < 3 <= after.iceberg_version


def next_state(state: TableState, changes: Iterable[Change]) -> TableState:
    """The state after the changes; the same object when they leave it as it is."""
    after = state
    for change in changes:
        after = _after(after, change)
    if after == state:
        return state
    return _checked(replace(after, id=StateId(state.id + 1)))


def _after(state: TableState, change: Change) -> TableState:
    match change:
        case SetSchema(schema, last_column_id):
            _refuse_upgrade(state, schema)
            return replace(
                state,
                schema=schema,
                last_column_id=last_column_id,
                delta_mapping=state.delta_mapping or schema.needs_column_mapping,
                delta_partitioned=state.delta_partitioned and _shows_partitions(schema, state.spec),
                iceberg_version=3 if schema.needs_iceberg_v3 else state.iceberg_version,
            )
        case SetSpec(spec, last_partition_id):
            return replace(
                state,
                spec=spec,
                last_partition_id=last_partition_id,
                # Delta has one way to partition all files, and these are of two specs now.
                delta_partitioned=state.delta_partitioned and spec == state.spec,
            )
        case SetSortOrder(sort_order):
            return replace(state, sort_order=sort_order)
        case SetConstraints(constraints):
            return replace(state, constraints=dict(constraints))
        case SetProperties(changed, removed):
            kept = {k: v for k, v in state.properties.items() if k not in removed}
            return replace(state, properties={**kept, **changed})
        case SetComment(comment):
            return replace(state, comment=comment)
        case SetFormats(formats):
            return replace(state, formats=formats)
        case AppendFiles(files, _, deleted):
            return _with_files(_with_vectors(state, deleted), files)
        case DeleteRows(positions):
            return _with_vectors(state, positions)
        case CreateTable() | RemoveFiles() | Republish() | Restore() | FastForward():
            return state


def _refuse_upgrade(state: TableState, schema: Schema) -> None:
    if schema.needs_iceberg_v3 and state.iceberg_version < 3 and _stays_on_v2(state):
        raise UnsupportedFeature(
            "nanoseconds and columns added with a default need Iceberg v3, and lakebed.upgrade is"
            " never for this table",
            hint="set lakebed.upgrade to auto, or add the column without a default",
        )


def _stays_on_v2(state: TableState) -> bool:
    return state.properties.get("lakebed.upgrade") == "never"


def _with_files(state: TableState, files: Sequence[DataFile]) -> TableState:
    fits = all(f.spec_id == state.spec.id and _fits_folders(f) for f in files)
    return state if fits or not state.delta_partitioned else replace(state, delta_partitioned=False)


def _with_vectors(state: TableState, deleted: Mapping[Any, Positions]) -> TableState:
    if not deleted or (state.delta_vectors and state.iceberg_version >= 3):
        return state
    if _stays_on_v2(state):
        raise UnsupportedFeature(
            "deletion vectors need Iceberg v3, and lakebed.upgrade is never for this table",
            hint="set lakebed.upgrade to auto, or rewrite the files (copy-on-write)",
        )
    return replace(state, delta_vectors=True, iceberg_version=3)


def restored(state: TableState, then: TableState) -> TableState:
    """The state that was, on a table that has moved on: what was switched on stays on."""
    after = replace(
        state,
        schema=then.schema,
        spec=then.spec,
        sort_order=then.sort_order,
        properties=_properties_then(state, then),
        constraints=then.constraints,
        comment=then.comment,
        delta_mapping=state.delta_mapping or then.delta_mapping,
        delta_partitioned=state.delta_partitioned and then.delta_partitioned,
    )
    _refuse_narrower(state, after)
    return state if after == state else _checked(replace(after, id=StateId(state.id + 1)))


def _properties_then(state: TableState, then: TableState) -> dict[str, str]:
    """Whoever follows the change feed learns of the restore, and of what comes after it."""
    properties = {k: v for k, v in then.properties.items() if k != CHANGE_FEED}
    now = {k: v for k, v in state.properties.items() if k == CHANGE_FEED}
    return {**properties, **now}


def _refuse_narrower(state: TableState, after: TableState) -> None:
    """Rows that a restore takes away may hold values that its types do not."""
    if not state.delta_change_feed or DELTA not in state.formats:
        return
    was = {f.id: f.type for f in state.schema.walk() if is_scalar(f.type)}
    for field in after.schema.walk():
        if field.id in was and not can_widen(was[field.id], field.type):
            raise UnsupportedFeature(
                f"column {field.name!r} is {was[field.id]} now and was {field.type} then: Delta's"
                " change feed cannot tell of both in one commit",
                hint=f"set {CHANGE_FEED} to false first, or restore a later version",
                column=field.name,
            )


def _checked(state: TableState) -> TableState:
    foreign = state.schema.iceberg_only
    if DELTA in state.formats and foreign:
        names = ", ".join(f"{f.name} {f.type}" for f in foreign)
        raise UnsupportedFeature(
            f"Delta has no type for: {names}",
            hint="publish the table as Iceberg alone (formats=['iceberg']), or use another type",
            columns=[f.name for f in foreign],
        )
    _refuse_initial_defaults(state)
    _refuse_floats(state)
    _refuse_fixed(state)
    _refuse_feed_names(state)
    _refuse_unspoken(state)
    return state


def _refuse_initial_defaults(state: TableState) -> None:
    """Delta's readers show NULL in files that lack a column, whatever its default is."""
    filled = [f.name for f in state.schema.walk() if f.initial_default is not None]
    if DELTA in state.formats and filled:
        raise UnsupportedFeature(
            f"Delta readers would show NULL, not the default, in old rows of: {', '.join(filled)}",
            hint="publish the table as Iceberg alone (formats=['iceberg']); or add the column"
            " without a default, update its rows, then set the default",
            columns=filled,
        )


def _refuse_feed_names(state: TableState) -> None:
    clash = [f.name for f in state.schema.fields if f.name.casefold() in _FEED_COLUMNS]
    if state.delta_change_feed and DELTA in state.formats and clash:
        raise UnsupportedFeature(
            f"Delta's change feed has columns of its own with the names: {', '.join(clash)}",
            hint=f"rename them, or leave {CHANGE_FEED} off: changes() needs no property",
            columns=clash,
        )


def _refuse_unspoken(state: TableState) -> None:
    """Delta keeps constraints in Spark's SQL."""
    unspoken = [name for name, each in state.constraints.items() if each.spark is None]
    if DELTA in state.formats and unspoken:
        name = unspoken[0]
        raise UnsupportedFeature(
            f"constraint {name!r} cannot be said in Spark's SQL, in which Delta keeps constraints:"
            f" {state.constraints[name].sql}",
            hint="write it with comparisons, arithmetic and common functions, or publish the table"
            " as Iceberg alone (formats=['iceberg'])",
            constraints=unspoken,
        )


def _refuse_floats(state: TableState) -> None:
    """As partition values they lose rows: PyIceberg reads a double as a float, and DuckDB takes a
    manifest's upper bound, which leaves NaN out, for one above all values."""
    sources = [state.schema.field(f.source_id) for f in state.spec.fields]
    floats = [f.name for f in sources if f.type in (Primitive("float"), Primitive("double"))]
    if ICEBERG in state.formats and floats:
        raise UnsupportedFeature(
            f"Iceberg readers lose rows of tables partitioned by a float: {', '.join(floats)}",
            hint="partition by another column, or publish Delta alone (formats=['delta'])",
            columns=floats,
        )


def _refuse_fixed(state: TableState) -> None:
    """Iceberg's Java library looks for a length before such a partition value; there is none."""
    by_value = [f.source_id for f in state.spec.fields if f.transform.name == "identity"]
    fixed = [f.name for f in map(state.schema.field, by_value) if isinstance(f.type, FixedType)]
    if ICEBERG in state.formats and fixed:
        raise UnsupportedFeature(
            f"Spark cannot read tables partitioned by a fixed: {', '.join(fixed)}",
            hint=f"partition by bucket(16, {fixed[0]}), or by another column",
            columns=fixed,
        )


def _shows_partitions(schema: Schema, spec: PartitionSpec) -> bool:
    """Delta has identity partitions on top-level columns only, and needs a column besides them.

    DuckDB shows NULL in a partition column that stands behind a column with another name in files.
    """
    sources = [next((f for f in schema.fields if f.id == p.source_id), None) for p in spec.fields]
    return (
        bool(sources)
        and spec.is_identity
        and len(sources) < len(schema.fields)
        and all(f is not None and is_scalar(f.type) for f in sources)
        and all(f.name == f.physical for f in schema.fields)
        and not any(
            isinstance(f.type, Primitive) and f.type.name in _NOT_IN_DELTA_FOLDERS
            for f in sources
            if f is not None
        )
    )


def _fits_folders(file: DataFile) -> bool:
    """Readers that take values from `name=value` folders must find one for every value."""
    folders = file.path.split("/")[1:-1]
    return all("=" in folder for folder in folders) and not any(map(_is_awkward, file.partition))


def _is_awkward(value: Stored | None) -> bool:
    """Delta cannot tell an empty text from NULL; deltalake cannot read negative decimals here."""
    return value == "" or (isinstance(value, Decimal) and value < 0)
