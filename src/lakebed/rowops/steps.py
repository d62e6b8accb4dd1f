"""What one version did to the rows of a table, told from its files and deletion vectors alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lakebed.core.ledger import VersionView
from lakebed.core.plan import Plan
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.expressions import Predicate
from lakebed.model.files import LiveFile
from lakebed.model.history import TableState
from lakebed.model.ids import FieldId, FileId, Version
from lakebed.model.schema import Schema
from lakebed.model.types import Field, Type, can_widen, children, is_scalar, with_children
from lakebed.model.vectors import Positions

PositionsOf = Callable[[Sequence[LiveFile]], Mapping[FileId, Positions]]
_NONE = Positions()


@dataclass(frozen=True, slots=True)
class Step:
    """The rows that a version no longer shows, and those it shows anew: plans to read them.

    A row that was only copied into another file is in both.
    """

    version: Version
    time_ms: int
    gone: Plan
    came: Plan
    has_row_ids: bool  # rows keep their ids when they are copied or updated


def step_of(view: VersionView, schema: Schema, positions: PositionsOf) -> Step:
    """`schema` is the one to read all rows as."""
    old, new = Seen(view.removed, positions), Seen(view.added, positions)
    names = tuple(f.name for f in schema.fields)
    shown = Plan(view.head.location, view.commit.version, schema, names, None, (), 0)
    gone, came = difference(old, new, shown)
    return Step(
        view.commit.version,
        view.commit.time_ms,
        gone,
        came,
        view.previous is not None and view.state.iceberg_version >= 3,
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """Files that are visible, and who knows which of their rows are gone."""

    files: Sequence[LiveFile]
    positions: PositionsOf


def difference(old: Seen, new: Seen, shown: Plan) -> tuple[Plan, Plan]:
    """The rows that are only in the old files, and those only in the new ones, as `shown` says.

    Vectors are looked at only where a file has another one than before.
    """
    was, now = {f.id: f for f in old.files}, {f.id: f for f in new.files}
    same = {i for i in was.keys() & now.keys() if was[i].vector == now[i].vector}
    left = [f for i, f in was.items() if i not in same]
    right = [f for i, f in now.items() if i not in same]
    before, after = old.positions(left), new.positions(right)
    gone = _Side([f for f in left if f.id not in now], before)
    came = _Side([f for f in right if f.id not in was], after)
    for file_id in (was.keys() & now.keys()) - same:
        gone.add_rows(was[file_id], after.get(file_id, _NONE) - before.get(file_id, _NONE))
        came.add_rows(now[file_id], before.get(file_id, _NONE) - after.get(file_id, _NONE))
    return gone.plan(shown), came.plan(shown)


class _Side:
    """Files and the rows of them to leave out."""

    def __init__(self, files: list[LiveFile], deleted: Mapping[FileId, Positions]) -> None:
        self._files = files
        self._deleted = {f.id: deleted[f.id] for f in files if f.id in deleted}

    def add_rows(self, live: LiveFile, rows: Positions) -> None:
        if rows:
            self._files.append(live)
            self._deleted[live.id] = rows.others(live.file.record_count)

    def plan(self, shown: Plan) -> Plan:
        files = tuple(sorted(self._files, key=lambda f: f.id))
        return replace(shown, files=files, deleted=self._deleted)


def narrowed(plan: Plan, columns: tuple[str, ...], predicate: Predicate | None) -> Plan:
    """The same rows, fewer of them and of their columns; `predicate` is bound."""
    return replace(plan, columns=columns, predicate=predicate)


def open_to_all(schema: Schema) -> Schema:
    """The schema without NOT NULL: rows of other versions may lack a value."""
    return replace(schema, fields=tuple(_optional(f) for f in schema.fields))


def _optional(field: Field) -> Field:
    return replace(field, required=False, type=_loose(field.type))


def _loose(kind: Type) -> Type:
    return with_children(kind, tuple(_optional(f) for f in children(kind)))


def widest(schema: Schema, states: Sequence[TableState]) -> Schema:
    """The schema in types that hold the values of all states: a restore may narrow a column."""
    kinds = {f.id: f.type for f in schema.walk() if is_scalar(f.type)}
    for state in states:
        for field in state.schema.walk():
            shown = kinds.get(field.id)
            if shown is not None and can_widen(shown, field.type):
                kinds[field.id] = field.type
            elif shown is not None and not can_widen(field.type, shown):
                raise UnsupportedFeature(
                    f"column {field.name!r} was {shown} and {field.type} on the way: its values"
                    " cannot be shown as one type",
                    hint="ask for the changes of fewer versions at once",
                    column=field.name,
                )
    return replace(schema, fields=tuple(_retyped(f, kinds) for f in schema.fields))


def _retyped(field: Field, kinds: Mapping[FieldId, Type]) -> Field:
    if field.id in kinds:
        return replace(field, type=kinds[field.id])
    below = tuple(_retyped(f, kinds) for f in children(field.type))
    return replace(field, type=with_children(field.type, below))


def refuse_narrower(states: Sequence[TableState], schema: Schema) -> None:
    """After a restore a type may be narrower than values of the versions between."""
    fields = {f.id: f for f in schema.walk() if is_scalar(f.type)}
    for state in states:
        for field in state.schema.walk():
            shown = fields.get(field.id)
            if shown is not None and not can_widen(field.type, shown.type):
                raise UnsupportedFeature(
                    f"column {shown.name!r} is {shown.type} at the last version and was"
                    f" {field.type} on the way: its values cannot be shown as one type",
                    hint="ask for the changes up to the version before the restore, and after it",
                    column=shown.name,
                )
