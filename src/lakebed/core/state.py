"""Pure: how changes move a table's state, and what a state may not be."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from lakebed.model.changes import (
    AppendFiles,
    Change,
    CreateTable,
    RemoveFiles,
    Republish,
    SetFormats,
    SetProperties,
    SetSchema,
)
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.files import DataFile
from lakebed.model.history import DELTA, ICEBERG, TableState
from lakebed.model.ids import StateId
from lakebed.model.partitioning import FIRST_PARTITION_FIELD_ID, PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.types import Primitive, Stored, is_scalar

# Delta keeps partition values as text; these types do not survive that in every reader.
_NOT_IN_DELTA_FOLDERS = ("binary", "float", "double")


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
        )
    )


def next_state(state: TableState, changes: Iterable[Change]) -> TableState:
    """The state after the changes; the same object when they leave it as it is."""
    after = state
    for change in changes:
        match change:
            case SetSchema(schema, last_column_id):
                after = replace(
                    after,
                    schema=schema,
                    last_column_id=last_column_id,
                    delta_mapping=after.delta_mapping or schema.needs_column_mapping,
                    delta_partitioned=after.delta_partitioned
                    and _shows_partitions(schema, after.spec),
                    iceberg_version=3 if schema.needs_iceberg_v3 else after.iceberg_version,
                )
            case SetProperties(changed, removed):
                kept = {k: v for k, v in after.properties.items() if k not in removed}
                after = replace(after, properties={**kept, **changed})
            case SetFormats(formats):
                after = replace(after, formats=formats)
            case AppendFiles(files):
                if after.delta_partitioned and not all(_fits_folders(f) for f in files):
                    after = replace(after, delta_partitioned=False)
            case CreateTable() | RemoveFiles() | Republish():
                pass
    if after == state:
        return state
    return _checked(replace(after, id=StateId(state.id + 1)))


def _checked(state: TableState) -> TableState:
    foreign = state.schema.iceberg_only
    if DELTA in state.formats and foreign:
        names = ", ".join(f"{f.name} {f.type}" for f in foreign)
        raise UnsupportedFeature(
            f"Delta has no type for: {names}",
            hint="publish the table as Iceberg alone (formats=['iceberg']), or use another type",
            columns=[f.name for f in foreign],
        )
    _refuse_floats(state)
    return state


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


def _shows_partitions(schema: Schema, spec: PartitionSpec) -> bool:
    """Delta has identity partitions on top-level columns only, and needs a column besides them."""
    sources = [next((f for f in schema.fields if f.id == p.source_id), None) for p in spec.fields]
    return (
        bool(sources)
        and spec.is_identity
        and len(sources) < len(schema.fields)
        and all(f is not None and is_scalar(f.type) for f in sources)
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
