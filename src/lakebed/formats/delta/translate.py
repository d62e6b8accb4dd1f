"""From the rows to Delta's actions: states as metadata, data files as adds and removes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from lakebed.core.ledger import VersionView
from lakebed.formats.delta.actions import (
    Action,
    AddAction,
    CommitInfo,
    MetadataAction,
    Plain,
    RemoveAction,
    TxnAction,
)
from lakebed.formats.delta.features import Start, configuration_of, protocol_of
from lakebed.formats.delta.schema_json import schema_string
from lakebed.formats.delta.values import Bound, Encode, bound_encoders, partition_text
from lakebed.formats.delta.vectors import Descriptors
from lakebed.model.files import ColumnStats, DataFile, LiveFile
from lakebed.model.history import CommitRecord, TableHead, TableState
from lakebed.model.ids import FieldId
from lakebed.model.schema import Schema
from lakebed.model.types import Field, Primitive, StructType, Type, is_scalar
from lakebed.model.version import VERSION

# Delta's words for our operations; others are shown in capitals.
_OPERATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "create": ("CREATE TABLE", {}),
    "append": ("WRITE", {"mode": "Append"}),
    "overwrite": ("WRITE", {"mode": "Overwrite"}),
    "delete": ("DELETE", {}),
}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column with statistics, at its path of physical names."""

    path: tuple[str, ...]
    id: FieldId
    encode: tuple[Encode, Encode] | None  # its bounds, if Delta keeps any
    may_be_nan: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """How a state's files are shown: partition columns as text, the other leaves as statistics."""

    partition: tuple[tuple[str, Type], ...]
    leaves: tuple[Leaf, ...]
    structs: tuple[tuple[str, ...], ...]  # paths


def layout_of(state: TableState) -> Layout:
    sources = _partition_sources(state)
    hidden = {f.id for f in sources}
    shown = [f for f in state.schema.fields if f.id not in hidden]
    partition = tuple((f.physical, f.type) for f in sources)
    return Layout(partition, tuple(_leaves(shown, ())), tuple(_structs(shown, ())))


def _partition_sources(state: TableState) -> list[Field]:
    if not state.delta_partitioned:
        return []
    return [state.schema.field(f.source_id) for f in state.spec.fields]


def _leaves(fields: Iterable[Field], above: tuple[str, ...]) -> Iterable[Leaf]:
    for field in fields:
        path = (*above, field.physical)
        if isinstance(field.type, StructType):
            yield from _leaves(field.type.fields, path)
        elif is_scalar(field.type):
            may_be_nan = field.type in (Primitive("float"), Primitive("double"))
            yield Leaf(path, field.id, bound_encoders(field.type), may_be_nan)


def _structs(fields: Iterable[Field], above: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    for field in fields:
        if isinstance(field.type, StructType):
            path = (*above, field.physical)
            yield path
            yield from _structs(field.type.fields, path)


def metadata_of(head: TableHead, state: TableState, start: Start | None) -> MetadataAction:
    return MetadataAction(
        id=head.uuid,
        name=head.name.name,
        description=state.comment,
        schema_string=schema_string(state.schema, mapped=state.delta_mapping),
        partition_columns=tuple(f.name for f in _partition_sources(state)),
        configuration=configuration_of(state, start),
        created_ms=head.created_ms,
    )


def state_shows(view: VersionView) -> bool:
    """Did the commit change anything that Delta's protocol or metadata says?"""
    before, after = view.previous, view.state
    if before is None:
        return True
    if before.id == after.id:
        return False
    return protocol_of(before) != protocol_of(after) or (
        metadata_of(view.head, before, None) != metadata_of(view.head, after, None)
    )


def add_of(
    layout: Layout,
    live: LiveFile,
    vectors: Descriptors,
    *,
    time_ms: int,
    data_change: bool = True,
) -> AddAction:
    file = live.file
    return AddAction(
        path=file.path,
        partition_values=partition_values(layout, file),
        size_bytes=file.size_bytes,
        modified_ms=time_ms,
        stats=_stats(layout, file, tight=live.vector is None),
        deletion_vector=vectors[live.vector.id] if live.vector else None,
        data_change=data_change,
    )


def remove_of(
    layout: Layout,
    live: LiveFile,
    vectors: Descriptors,
    *,
    time_ms: int,
    data_change: bool = True,
) -> RemoveAction:
    file = live.file
    return RemoveAction(
        path=file.path,
        deleted_ms=time_ms,
        partition_values=partition_values(layout, file),
        size_bytes=file.size_bytes,
        deletion_vector=vectors[live.vector.id] if live.vector else None,
        data_change=data_change,
    )


def partition_values(layout: Layout, file: DataFile) -> dict[str, str | None]:
    """By the physical names of the columns."""
    if not layout.partition:
        return {}
    values = zip(layout.partition, file.partition, strict=True)
    return {name: partition_text(kind, value) for (name, kind), value in values}


def _stats(layout: Layout, file: DataFile, *, tight: bool) -> str:
    """Of all rows there are in the file: bounds are not tight once some of them are deleted."""
    known = [(leaf, file.stats[leaf.id]) for leaf in layout.leaves if leaf.id in file.stats]
    nulls: Plain = {}
    for leaf, stats in known:
        _place(nulls, leaf.path, stats.null_count)
    members = {**_bounds(layout, known, file.record_count), "nullCount": nulls}
    present = {name: value for name, value in members.items() if value}
    whole = {"numRecords": file.record_count, **present, "tightBounds": tight}
    return orjson.dumps(whole).decode()


def _bounds(layout: Layout, known: list[tuple[Leaf, ColumnStats]], rows: int) -> dict[str, Plain]:
    """Of all columns or of none: deltalake's Arrow dataset loses rows when some have none.

    A struct of nulls alone has bounds as well, empty ones.
    """
    lowers: Plain = {}
    uppers: Plain = {}
    for path in layout.structs:
        _place(lowers, path, {})
        _place(uppers, path, {})
    for leaf, stats in known:
        if leaf.encode is None or stats.null_count == rows:
            continue
        if stats.lower is None or stats.upper is None or stats.null_count is None:
            return {}
        # NaN is the greatest number to Delta's readers but never counts into our bounds.
        if leaf.may_be_nan and stats.nan_count != 0:
            return {}
        low, up = leaf.encode[0](stats.lower), leaf.encode[1](stats.upper)
        if low is None or up is None:
            return {}
        _place(lowers, leaf.path, low)
        _place(uppers, leaf.path, up)
    return {"minValues": lowers, "maxValues": uppers}


def _place(tree: Plain, path: tuple[str, ...], value: Bound | Plain | None) -> None:
    if value is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def state_actions(view: VersionView, start: Start | None) -> list[Action]:
    return [protocol_of(view.state), metadata_of(view.head, view.state, start)]


def commit_actions(
    view: VersionView, vectors: Descriptors, anew: Sequence[Action] = ()
) -> list[Action]:
    """What the commit did, without what a changed state says; `anew` are adds of older files."""
    layout, time_ms = layout_of(view.state), view.commit.time_ms
    lines: list[Action] = []
    if view.commit.app_transaction is not None:
        app_id, number = view.commit.app_transaction
        lines.append(TxnAction(app_id, number, time_ms))
    lines += anew
    lines += [add_of(layout, f, vectors, time_ms=time_ms) for f in view.added]
    lines += [remove_of(layout, f, vectors, time_ms=time_ms) for f in view.removed]
    return lines


def commit_info(view: VersionView) -> CommitInfo:
    commit = view.commit
    operation, parameters = _operation(view)
    return CommitInfo(
        time_ms=commit.time_ms,
        in_commit_ms=commit.time_ms,
        transaction_id=commit.transaction_id,
        operation=operation,
        parameters=parameters,
        blind_append=commit.blind_append and bool(view.added),
        engine=f"lakebed/{VERSION}",
        author=commit.author,
        message=commit.message,
    )


def _operation(view: VersionView) -> tuple[str, dict[str, str]]:
    commit = view.commit
    if commit.operation == "alter" and view.previous is not None:
        return _alteration(view.previous, view.state), {}
    if commit.operation == "create" and view.added:
        return "CREATE TABLE AS SELECT", _partition_by(view.state)
    operation, parameters = _OPERATIONS.get(commit.operation, (commit.operation.upper(), {}))
    if operation == "DELETE":
        return operation, _predicate(commit)
    return operation, {**parameters, **_partition_by(view.state), **_predicate(commit)}


def _partition_by(state: TableState) -> dict[str, str]:
    names = [f.name for f in _partition_sources(state)]
    return {"partitionBy": orjson.dumps(names).decode()}


def _predicate(commit: CommitRecord) -> dict[str, str]:
    predicate = commit.summary.get("predicate")
    return {} if predicate is None else {"predicate": orjson.dumps([str(predicate)]).decode()}


def _alteration(before: TableState, after: TableState) -> str:
    if before.schema == after.schema:
        return "SET TBLPROPERTIES"
    old, new = _names(before.schema), _names(after.schema)
    if new.keys() - old.keys():
        return "ADD COLUMNS"
    if old.keys() - new.keys():
        return "DROP COLUMNS"
    return "RENAME COLUMN" if old != new else "CHANGE COLUMN"


def _names(schema: Schema) -> dict[FieldId, str]:
    return {f.id: f.name for f in schema.walk()}
