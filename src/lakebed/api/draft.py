"""A table's shape while it is changed: columns, key, partitioning, sort order, constraints."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lakebed.api.constraints import columns_of, parse_constraint
from lakebed.api.defaults import to_default
from lakebed.model import evolution
from lakebed.model.changes import (
    Change,
    SetComment,
    SetConstraints,
    SetSchema,
    SetSortOrder,
    SetSpec,
)
from lakebed.model.constraints import Constraint
from lakebed.model.errors import InvalidInput, InvalidSchema, NoChanges, UnsupportedFeature
from lakebed.model.evolution import Place
from lakebed.model.history import DELTA, TableState
from lakebed.model.ids import FieldId, SchemaId
from lakebed.model.names import check_column_name, is_text
from lakebed.model.partitioning import (
    UNSORTED,
    PartitionSpec,
    SortOrder,
    evolve_sort_order,
    evolve_spec,
    partition_terms,
)
from lakebed.model.schema import Schema, assign_ids, with_primary_key
from lakebed.model.types import Field, Type, walk


@dataclass(frozen=True, slots=True)
class Basis:
    """What a draft starts from: a state, and all that the table ever was."""

    state: TableState
    schemas: Sequence[Schema]
    specs: Sequence[PartitionSpec]
    orders: Sequence[SortOrder]
    has_files: bool


# PyIceberg leaves rows out that have one of these as a column's initial default, when filtered.
_MISREAD = frozenset({"date", "time", "timestamp", "timestamp_ntz", "uuid"})


def _refuse_misread(column: str, kind: Type) -> None:
    if str(kind) in _MISREAD:
        raise UnsupportedFeature(
            f"column {column!r} of type {kind} cannot be added with a default: PyIceberg would lose"
            " the rows there are when they are filtered by it",
            hint="add it without, update the rows, then set_default",
            column=column,
        )


def refuse_lost_in_maps(schemas: Sequence[Schema], fields: tuple[Field, ...]) -> None:
    """deltalake takes members of structs inside maps by their place: it refuses files that have
    fewer or more, but shows wrong values once one was dropped and another added."""
    now = {int(f.id) for f in walk(fields)}
    for schema in schemas:
        for field in evolution.maps_of(schema.fields):
            lost = {int(f.id) for f in walk((field,))} - now if int(field.id) in now else set()
            if lost:
                name = ".".join(f.name for f in schema.path_of(min(lost)))
                raise UnsupportedFeature(
                    f"{name!r} lies inside a map: Delta readers would mix it up with others in the"
                    " rows there are",
                    hint="leave it unused, or publish the table as Iceberg alone"
                    " (formats=['iceberg'])",
                    column=name,
                )


class Draft:
    def __init__(self, basis: Basis) -> None:
        state = basis.state
        self._basis = basis
        self._schema = state.schema
        self._last_column_id = max(state.last_column_id, *(s.last_column_id for s in basis.schemas))
        self._taken = evolution.taken_names(basis.schemas)
        self._spec = state.spec
        self._sort_order = state.sort_order
        self._constraints = dict(state.constraints)
        self._comment = state.comment
        # What was decided holds only if no row came in between.
        self.sees_all_rows = False

    def check_delta(self) -> None:
        """Refuse to show the table in Delta if its past stands against that."""
        refuse_lost_in_maps(self._basis.schemas, self._schema.fields)

    @property
    def schema(self) -> Schema:
        return self._schema

    def add_column(
        self, path: tuple[str, ...], added: Field, default: object, place: Place
    ) -> None:
        """`default` None: none. Its place is beside a neighbour of its own level."""
        check_column_name(path[-1])
        self._check_no_partition(path)
        field = added if default is None else self._with_default(path, added, default)
        parent = path[:-1]
        fields, self._last_column_id = evolution.add(
            self._schema.fields,
            parent,
            field,
            taken=self._taken.get(evolution.level_id(self._schema.fields, parent), frozenset()),
            last=self._last_column_id,
        )
        if place.is_given:
            fields = evolution.move(fields, path, place)
        self._set_fields(fields)

    def rename_column(self, path: tuple[str, ...], new_name: str) -> None:
        """Files keep their column: it is found by its physical name, which stays."""
        check_column_name(new_name)
        self._check_no_partition((*path[:-1], new_name), of=path)
        self._refuse_constrained(path, "renamed")
        self._set_fields(evolution.rename(self._schema.fields, path, new_name))

    def drop_column(self, path: tuple[str, ...]) -> None:
        self._refuse_used(path)
        self._refuse_constrained(path, "dropped")
        fields = evolution.drop(self._schema.fields, path)
        if DELTA in self._basis.state.formats:
            refuse_lost_in_maps([*self._basis.schemas, self._schema], fields)
        self._set_fields(fields)

    def set_comment(self, path: tuple[str, ...], doc: str | None) -> None:
        self._set_fields(evolution.comment(self._schema.fields, path, doc))

    def move_column(self, path: tuple[str, ...], place: Place) -> None:
        self._set_fields(evolution.move(self._schema.fields, path, place))

    def widen_column(self, path: tuple[str, ...], kind: Type) -> None:
        self._set_fields(evolution.widen(self._schema.fields, path, kind))

    def make_optional(self, path: tuple[str, ...]) -> None:
        *_, field = evolution.find_path(self._schema.fields, path)
        if field.id in self._schema.primary_key:
            raise InvalidSchema(
                f"column {'.'.join(path)!r} is in the primary key",
                hint="change the key first: set_primary_key([…])",
                column=".".join(path),
            )
        self._set_fields(evolution.make_optional(self._schema.fields, path))

    def set_default(self, path: tuple[str, ...], value: object) -> None:
        """For rows written from now on; those that are there stay as they are."""
        *_, field = evolution.find_path(self._schema.fields, path)
        default = to_default(".".join(path), field.type, value)
        self._set_fields(evolution.set_write_default(self._schema.fields, path, default))

    def drop_default(self, path: tuple[str, ...]) -> None:
        self._set_fields(evolution.set_write_default(self._schema.fields, path, None))

    def set_primary_key(self, names: tuple[str, ...]) -> None:
        for name in names:
            *_, field = evolution.find_path(self._schema.fields, (name,))
            if not field.required:
                raise InvalidSchema(
                    f"column {name!r} may be NULL, so it cannot be in a primary key",
                    hint="choose NOT NULL columns; a column becomes NOT NULL only when it is made",
                    column=name,
                )
        self._schema = with_primary_key(self._schema, names)

    def set_partitioning(self, texts: tuple[str, ...]) -> None:
        specs = [*self._basis.specs, self._spec]
        self._spec = evolve_spec(texts, self._schema, specs)

    def add_partition_field(self, term: str) -> None:
        self.set_partitioning((*partition_terms(self._spec, self._schema), term))

    def drop_partition_field(self, term: str) -> None:
        """`term` is written as in create_table, or the name of a partition field."""
        terms = partition_terms(self._spec, self._schema)
        wanted = re.sub(r"\s+", "", term).casefold()
        named = zip(terms, self._spec.fields, strict=True)
        gone = {t for t, f in named if wanted in (t.replace(" ", "").casefold(), f.name.casefold())}
        if not gone:
            raise InvalidSchema(
                f"the table is not partitioned by {term!r}",
                hint=f"it is partitioned by: {', '.join(terms) or 'nothing'}",
            )
        self.set_partitioning(tuple(t for t in terms if t not in gone))

    def set_table_comment(self, comment: str | None) -> None:
        if comment is not None and not is_text(comment):
            raise InvalidInput("comment is not plain text", hint="write what the table holds")
        self._comment = comment

    def replace_columns(self, fields: tuple[Field, ...]) -> None:
        """Other columns for a table without rows: one of the same name and kind stays itself."""
        self._spec = evolve_spec((), self._schema, [*self._basis.specs, self._spec])
        self._sort_order, self._constraints = UNSORTED, {}
        old = {f.name: f for f in self._schema.fields}
        kept = {f.name: old[f.name] for f in fields if _is_same(old.get(f.name), f)}
        new = tuple(f for f in fields if f.name not in kept)
        placed, last = assign_ids(
            new, last_column_id=self._last_column_id, taken=self._taken.get(0, frozenset())
        )
        self._last_column_id = last
        by_name = {f.name: f for f in (*placed, *kept.values())}
        self._schema = Schema(self._schema.id, tuple(by_name[f.name] for f in fields))

    def set_sort_order(self, texts: tuple[str, ...]) -> None:
        orders = [*self._basis.orders, self._sort_order]
        self._sort_order = evolve_sort_order(texts, self._schema, orders)

    def add_constraint(self, name: str, text: str) -> None:
        added = parse_constraint(name, text, self._schema)
        if any(name.casefold() == other.casefold() for other in self._constraints):
            raise InvalidSchema(
                f"there is a constraint {name!r} already", hint="drop it first", constraint=name
            )
        self._constraints |= added
        self.sees_all_rows = True

    def drop_constraint(self, name: str, *, if_exists: bool = False) -> None:
        if name not in self._constraints:
            if if_exists:
                return
            raise InvalidSchema(
                f"there is no constraint {name!r}",
                hint=f"there are: {', '.join(self._constraints) or 'none'}",
                constraint=name,
            )
        del self._constraints[name]

    def new_constraints(self) -> Mapping[str, Constraint]:
        """Those that the rows there are have not passed yet."""
        before = self._basis.state.constraints
        return {n: each for n, each in self._constraints.items() if before.get(n) != each}

    def changes(self) -> list[Change]:
        """What differs from the basis, in the order it has to be applied."""
        state, found = self._basis.state, list[Change]()
        if self._schema != state.schema:
            number = SchemaId(max(s.id for s in (*self._basis.schemas, state.schema)) + 1)
            found.append(SetSchema(replace(self._schema, id=number), self._last_column_id))
        if self._spec != state.spec:
            numbers = [f.id for s in (*self._basis.specs, self._spec) for f in s.fields]
            found.append(SetSpec(self._spec, max([state.last_partition_id, *numbers])))
        if self._sort_order != state.sort_order:
            found.append(SetSortOrder(self._sort_order))
        if self._constraints != state.constraints:
            found.append(SetConstraints(dict(self._constraints)))
        if self._comment != state.comment:
            found.append(SetComment(self._comment))
        if not found:
            raise NoChanges("the alteration changes nothing", hint="add a column before committing")
        return found

    def _set_fields(self, fields: tuple[Field, ...]) -> None:
        self._schema = replace(self._schema, fields=fields)

    def _with_default(self, path: tuple[str, ...], added: Field, value: object) -> Field:
        name = ".".join(path)
        default = to_default(name, added.type, value)
        if DELTA not in self._basis.state.formats:
            _refuse_misread(name, added.type)
            return replace(added, initial_default=default, write_default=default)
        if self._basis.has_files:
            raise UnsupportedFeature(
                f"column {name!r} cannot be added with a default to a table that publishes Delta:"
                " its readers would show NULL in the rows there are",
                hint="add it without, update the rows, then set_default; or publish the table as"
                " Iceberg alone (formats=['iceberg'])",
                column=name,
            )
        self.sees_all_rows = True
        return replace(added, write_default=default)

    def _refuse_used(self, path: tuple[str, ...]) -> None:
        below = evolution.ids_below(self._schema.fields, path)
        uses: dict[FieldId, str] = {
            f.source_id: "in the sort order" for f in self._sort_order.fields
        }
        uses |= dict.fromkeys(self._schema.primary_key, "in the primary key")
        for spec in self._basis.specs:
            uses |= {f.source_id: "what files are partitioned by" for f in spec.fields}
        uses |= {f.source_id: "partitioned by" for f in self._spec.fields}
        for field_id, use in uses.items():
            if field_id in below:
                raise InvalidSchema(
                    f"column {'.'.join(path)!r} is {use}",
                    hint="only other columns can be dropped",
                    column=".".join(path),
                )

    def _refuse_constrained(self, path: tuple[str, ...], what: str) -> None:
        below = evolution.ids_below(self._schema.fields, path)
        for name, constraint in self._constraints.items():
            if columns_of(constraint, self._schema) & below:
                raise InvalidSchema(
                    f"constraint {name!r} looks at column {'.'.join(path)!r}, so it cannot be"
                    f" {what}",
                    hint=f"drop_constraint({name!r}) first, and add it again if it is still meant",
                    column=".".join(path),
                    constraint=name,
                )

    def _check_no_partition(self, path: tuple[str, ...], of: tuple[str, ...] = ()) -> None:
        """A partition field keeps its name when its column is renamed; Iceberg allows no column of
        that name beside it."""
        if len(path) > 1:
            return
        own = evolution.find_path(self._schema.fields, of)[-1].id if of else None
        for spec in (*self._basis.specs, self._spec):
            for field in spec.fields:
                if field.name.casefold() == path[0].casefold() and field.source_id != own:
                    raise InvalidSchema(
                        f"{path[0]!r} is the name of a partition field",
                        hint="choose another name for the column",
                        column=path[0],
                    )


def _is_same(old: Field | None, new: Field) -> bool:
    """May files that hold the old column be read as the new one, and the other way round?"""
    return (
        old is not None
        and str(old.type) == str(new.type)
        and old.required == new.required
        and old.initial_default is None
    )
