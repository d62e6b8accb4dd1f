"""A table's schema: fields with ids that are never reused; the rules for ids and names."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lakebed.model.errors import InvalidSchema
from lakebed.model.ids import FieldId, SchemaId
from lakebed.model.names import check_column_name, is_text
from lakebed.model.types import (
    ICEBERG_ONLY,
    ICEBERG_V3_ONLY,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    StructType,
    Type,
    can_widen,
    children,
    is_scalar,
    walk,
)

# Characters that Delta forbids in column names unless columns are mapped.
DELTA_FORBIDDEN = frozenset(" ,;{}()\n\t=")


@dataclass(frozen=True, slots=True)
class Schema:
    id: SchemaId
    fields: tuple[Field, ...]
    primary_key: tuple[FieldId, ...] = ()

    def walk(self) -> Iterator[Field]:
        return walk(self.fields)

    def field(self, field_id: int) -> Field:
        for field in self.walk():
            if field.id == field_id:
                return field
        raise KeyError(field_id)

    def find(self, path: tuple[str, ...]) -> Field | None:
        """The field at a path of struct members; exact names first, then without regard to case."""
        fields, found = self.fields, None
        for name in path:
            found = next((f for f in fields if f.name == name), None) or next(
                (f for f in fields if f.name.casefold() == name.casefold()), None
            )
            if found is None:
                return None
            fields = found.type.fields if isinstance(found.type, StructType) else ()
        return found

    def path_of(self, field_id: int) -> tuple[Field, ...]:
        """The fields from the root down to this id."""
        path = _path(self.fields, field_id)
        if path is None:
            raise KeyError(field_id)
        return path

    @property
    def last_column_id(self) -> int:
        return max((f.id for f in self.walk()), default=0)

    @property
    def iceberg_only(self) -> tuple[Field, ...]:
        """Fields whose type has no twin in Delta."""
        return tuple(f for f in self.walk() if _named(f.type, ICEBERG_ONLY) or _is_fixed(f.type))

    @property
    def needs_iceberg_v3(self) -> bool:
        return any(
            _named(f.type, ICEBERG_V3_ONLY) or f.initial_default is not None for f in self.walk()
        )

    @property
    def uses_timestamp_ntz(self) -> bool:
        return any(_named(f.type, frozenset({"timestamp_ntz"})) for f in self.walk())

    @property
    def needs_column_mapping(self) -> bool:
        """Delta shows physical names as they are unless a name differs from its physical one."""
        return any(f.physical != f.name for f in self.walk())


def _named(kind: Type, names: frozenset[str]) -> bool:
    return isinstance(kind, Primitive) and kind.name in names


def _is_fixed(kind: Type) -> bool:
    return isinstance(kind, FixedType)


def _path(fields: tuple[Field, ...], field_id: int) -> tuple[Field, ...] | None:
    for field in fields:
        if field.id == field_id:
            return (field,)
        below = _path(children(field.type), field_id)
        if below is not None:
            return (field, *below)
    return None


def new_schema(fields: tuple[Field, ...], *, primary_key: tuple[str, ...] = ()) -> Schema:
    """A first schema: fresh ids in reading order, physical names, names checked."""
    if not fields:
        raise InvalidSchema(
            "a table needs at least one column", hint="give a schema such as 'id long not null'"
        )
    placed, _ = assign_ids(fields, last_column_id=0, taken=frozenset())
    return with_primary_key(Schema(SchemaId(0), placed), primary_key)


def with_primary_key(schema: Schema, names: tuple[str, ...]) -> Schema:
    key = []
    for name in names:
        field = next((f for f in schema.fields if f.name == name), None)
        if field is None:
            raise InvalidSchema(
                f"primary key column {name!r} is not in the schema",
                hint=f"the columns are: {', '.join(f.name for f in schema.fields)}",
                column=name,
            )
        if not is_scalar(field.type) or str(field.type) in ("float", "double"):
            raise InvalidSchema(
                f"primary key column {name!r} has type {field.type}",
                hint="use a column whose values compare exactly (not float, double or nested)",
                column=name,
            )
        key.append(field.id)
    if len(set(key)) != len(key):
        raise InvalidSchema("a primary key names a column twice", hint="name each column once")
    members = frozenset(key)
    fields = tuple(replace(f, required=True) if f.id in members else f for f in schema.fields)
    return Schema(schema.id, fields, tuple(key))


def assign_ids(
    fields: tuple[Field, ...], *, last_column_id: int, taken: frozenset[str]
) -> tuple[tuple[Field, ...], int]:
    """Give fresh ids (level by level, as Iceberg does) and physical names to new fields.

    `taken` holds the physical names this level has ever used: a name dropped and added again
    must get another one, because readers find columns in old files by that name.
    """
    _check_level(fields)
    names = taken | {f.name.casefold() for f in fields}
    numbered, last = [], last_column_id
    for field in fields:
        last += 1
        physical = field.name if _is_plain(field.name, taken) else _fresh(f"col_{last}", names)
        numbered.append(replace(field, id=FieldId(last), physical=physical))
    placed = []
    for field in numbered:
        kind, last = _assign_type(field.type, last)
        placed.append(replace(field, type=kind))
    return tuple(placed), last


def _is_plain(name: str, taken: frozenset[str]) -> bool:
    return not (set(name) & DELTA_FORBIDDEN) and name.casefold() not in taken


def _fresh(name: str, names: frozenset[str]) -> str:
    while name in names:
        name += "_"
    return name


def _assign_type(kind: Type, last: int) -> tuple[Type, int]:
    match kind:
        case StructType(fields):
            placed, last = assign_ids(fields, last_column_id=last, taken=frozenset())
            return StructType(placed), last
        case ListType(_, element, required):
            element_id = FieldId(last + 1)
            element, last = _assign_type(element, last + 1)
            return ListType(element_id, element, required), last
        case MapType(_, key, _, value, required):
            key_id, value_id = FieldId(last + 1), FieldId(last + 2)
            key, last = _assign_type(key, last + 2)
            value, last = _assign_type(value, last)
            return MapType(key_id, key, value_id, value, required), last
        case _:
            return kind, last


def _check_level(fields: tuple[Field, ...]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        check_column_name(field.name)
        check_doc(field)
        if isinstance(field.type, StructType) and not field.type.fields:
            raise InvalidSchema(
                f"struct column {field.name!r} has no members",
                hint="give it at least one member",
                column=field.name,
            )
        other = seen.get(field.name.casefold())
        if other is not None:
            raise InvalidSchema(
                f"columns {other!r} and {field.name!r} differ only in case or not at all",
                hint="many engines do not see case; rename one of them",
                column=field.name,
            )
        seen[field.name.casefold()] = field.name


def check_doc(field: Field) -> None:
    if field.doc is not None and not is_text(field.doc):
        raise InvalidSchema(
            f"the comment of column {field.name!r} is no text, or has NUL or lone surrogates",
            hint="use plain text",
            column=field.name,
        )


def _fits(before: Field, after: Field) -> bool:
    return can_widen(before.type, after.type) and (before.required or not after.required)


def files_fit(written: Schema, current: Schema) -> bool:
    """May files written under one schema be read under a later one without breaking it?"""
    old = {f.id: f for f in written.walk()}
    for field in current.walk():
        before = old.get(field.id)
        if before is None:
            # Without an initial default such files read NULL, where rows left out get a value.
            promised = field.required or field.write_default is not None
            if promised and field.initial_default is None:
                return False
        elif is_scalar(field.type) and not _fits(before, field):
            return False
    return True
