"""What one version did to the rows of a table, told from its files and deletion vectors alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lakebed.core.ledger import VersionView
from lakebed.core.plan import Plan
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.expressions import Predicate
from lakebed.model.files import LiveFile
from lakebed.model.history import TableState
from lakebed.model.ids import FileId, Version
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
    before, after = positions(view.removed), positions(view.added)
    old, new = {f.id: f for f in view.removed}, {f.id: f for f in view.added}
    gone = _Side([f for i, f in old.items() if i not in new], before)
    came = _Side([f for i, f in new.items() if i not in old], after)
    for file_id in old.keys() & new.keys():
        was, now = before.get(file_id, _NONE), after.get(file_id, _NONE)
        gone.add_rows(old[file_id], now - was)
        came.add_rows(new[file_id], was - now)
    root = view.head.location
    return Step(
        view.commit.version,
        view.commit.time_ms,
        gone.plan(root, view.commit.version, schema),
        came.plan(root, view.commit.version, schema),
        view.previous is not None and view.state.iceberg_version >= 3,
    )


class _Side:
    """Files and the rows of them to leave out."""

    def __init__(self, files: list[LiveFile], deleted: Mapping[FileId, Positions]) -> None:
        self._files = files
        self._deleted = {f.id: deleted[f.id] for f in files if f.id in deleted}

    def add_rows(self, live: LiveFile, rows: Positions) -> None:
        if rows:
            self._files.append(live)
            self._deleted[live.id] = rows.others(live.file.record_count)

    def plan(self, root: str, version: Version, schema: Schema) -> Plan:
        return Plan(
            root=root,
            version=version,
            schema=schema,
            columns=tuple(f.name for f in schema.fields),
            predicate=None,
            files=tuple(sorted(self._files, key=lambda f: f.id)),
            pruned=0,
            deleted=self._deleted,
        )


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
