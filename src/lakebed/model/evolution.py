"""Schemas changed at a path: columns, struct members, and what lists and maps hold. Pure.

A path is `address.city`, `items.element.price`, `tags.value.x`, or a tuple of its parts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakebed.model.errors import InvalidInput, InvalidSchema
from lakebed.model.nearest import nearest
from lakebed.model.schema import Schema, assign_ids, check_doc
from lakebed.model.types import (
    DecimalType,
    Field,
    FixedType,
    MapType,
    Primitive,
    Scalar,
    Stored,
    StructType,
    Type,
    Widening,
    can_widen,
    children,
    is_scalar,
    walk,
    with_children,
)

Path = str | Sequence[str]
Fields = tuple[Field, ...]
_ROOT = 0  # the id that stands for the table where a level's parent is meant
_WIDER = {
    "byte": "short, int or long",
    "short": "int or long",
    "int": "long",
    "float": "double",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a column goes among its neighbours; by default behind them."""

    first: bool = False
    after: str | None = None
    before: str | None = None

    def __post_init__(self) -> None:
        if self.first + (self.after is not None) + (self.before is not None) > 1:
            raise InvalidInput("a column has one place", hint="give first, after or before")

    @property
    def is_given(self) -> bool:
        return self.first or self.after is not None or self.before is not None


def parse_path(path: Path) -> tuple[str, ...]:
    parts: object = path.split(".") if isinstance(path, str) else path
    if not isinstance(parts, list | tuple) or not parts or not all(map(_is_text, parts)):
        raise InvalidInput(
            f"{path!r} is no column", hint="write it as 'address.city' or ('address', 'city')"
        )
    return tuple(parts)


def _is_text(part: object) -> bool:
    return isinstance(part, str)


def find_path(fields: Fields, path: tuple[str, ...]) -> Fields:
    """The fields from the root down to the one to change, by exact names."""
    found: list[Field] = []
    for name in path:
        level = children(found[-1].type) if found else fields
        field = next((f for f in level if f.name == name), None)
        if field is None:
            raise _no_column(path[: len(found) + 1], level)
        if found and isinstance(found[-1].type, MapType) and name == "key":
            raise InvalidSchema(
                f"{'.'.join(path)!r} belongs to the key of a map",
                hint="Iceberg does not let keys change: add another map instead",
                column=".".join(path),
            )
        found.append(field)
    return tuple(found)


def _no_column(path: tuple[str, ...], level: Fields) -> InvalidSchema:
    names = [f.name for f in level]
    close = nearest(path[-1], names)
    there = f"there are: {', '.join(names)}" if names else f"{'.'.join(path[:-1])} has no members"
    return InvalidSchema(
        f"there is no column {'.'.join(path)!r}",
        hint=f"did you mean {'.'.join((*path[:-1], close[0]))}?" if close else there,
        column=".".join(path),
    )


def edit_level(
    fields: Fields, parent: tuple[str, ...], change: Callable[[Fields], Fields]
) -> Fields:
    """The schema with the level below `parent` changed; () is the top."""
    if not parent:
        return change(fields)
    name, *rest = parent
    return tuple(
        replace(f, type=with_children(f.type, edit_level(children(f.type), tuple(rest), change)))
        if f.name == name
        else f
        for f in fields
    )


def edit_field(fields: Fields, path: tuple[str, ...], change: Callable[[Field], Field]) -> Fields:
    name = path[-1]
    return edit_level(
        fields, path[:-1], lambda level: tuple(change(f) if f.name == name else f for f in level)
    )


def check_is_struct(fields: Fields, parent: tuple[str, ...]) -> None:
    """Only tables and structs have members that come and go."""
    if parent and not isinstance(find_path(fields, parent)[-1].type, StructType):
        raise InvalidSchema(
            f"{'.'.join(parent)!r} is no struct",
            hint="only members of a struct can be added, dropped, renamed or moved; name a list's"
            " elements 'element' and a map's sides 'key' and 'value'",
            column=".".join(parent),
        )


def taken_names(schemas: Sequence[Schema]) -> dict[int, frozenset[str]]:
    """The physical names each level ever used, by the id of its parent; the top's is 0."""
    taken: dict[int, set[str]] = {}
    for schema in schemas:
        levels = [(_ROOT, schema.fields)]
        levels += [(int(f.id), children(f.type)) for f in schema.walk()]
        for parent, level in levels:
            taken.setdefault(parent, set()).update(f.physical.casefold() for f in level)
    return {parent: frozenset(names) for parent, names in taken.items()}


def level_id(fields: Fields, parent: tuple[str, ...]) -> int:
    return int(find_path(fields, parent)[-1].id) if parent else _ROOT


def add(
    fields: Fields, parent: tuple[str, ...], added: Field, *, taken: frozenset[str], last: int
) -> tuple[Fields, int]:
    """The field behind the others of its level, with ids after `last` and a name not in `taken`."""
    check_is_struct(fields, parent)
    level = children(find_path(fields, parent)[-1].type) if parent else fields
    _refuse_twice((*level, added), (*parent, added.name))
    used = taken | {f.physical.casefold() for f in level}
    placed, last = assign_ids((added,), last_column_id=last, taken=used)
    return edit_level(fields, parent, lambda there: (*there, *placed)), last


def rename(fields: Fields, path: tuple[str, ...], new_name: str) -> Fields:
    find_path(fields, path)
    check_is_struct(fields, path[:-1])
    renamed = edit_field(fields, path, lambda f: replace(f, name=new_name))
    parent = path[:-1]
    level = children(find_path(renamed, parent)[-1].type) if parent else renamed
    _refuse_twice(level, (*parent, new_name))
    return renamed


def drop(fields: Fields, path: tuple[str, ...]) -> Fields:
    *_, field = find_path(fields, path)
    check_is_struct(fields, path[:-1])
    parent = path[:-1]
    level = children(find_path(fields, parent)[-1].type) if parent else fields
    if len(level) == 1:
        whole = "drop the struct" if parent else "drop the table"
        raise InvalidSchema(
            f"{'.'.join(path)!r} is the only column", hint=f"{whole} instead", column=".".join(path)
        )
    return edit_level(fields, parent, lambda there: tuple(f for f in there if f.id != field.id))


def move(fields: Fields, path: tuple[str, ...], place: Place) -> Fields:
    *_, field = find_path(fields, path)
    check_is_struct(fields, path[:-1])
    beside = place.after if place.after is not None else place.before
    if beside is not None:
        neighbour = (*path[:-1], parse_path(beside)[-1])
        find_path(fields, neighbour)
        if neighbour == path:
            raise InvalidInput(f"{beside!r} cannot stand beside itself", hint="name another column")
    return edit_level(fields, path[:-1], lambda level: _moved(level, field, place))


def _moved(level: Fields, field: Field, place: Place) -> Fields:
    others = [f for f in level if f.id != field.id]
    if place.first:
        at = 0
    elif place.after is not None or place.before is not None:
        beside = parse_path(place.after or place.before or "")[-1]
        at = next(n for n, f in enumerate(others) if f.name == beside)
        at += 1 if place.after is not None else 0
    else:
        at = len(others)
    others.insert(at, field)
    return tuple(others)


def comment(fields: Fields, path: tuple[str, ...], doc: str | None) -> Fields:
    *_, field = find_path(fields, path)
    check_is_struct(fields, path[:-1])
    check_doc(replace(field, doc=doc))
    return edit_field(fields, path, lambda f: replace(f, doc=doc))


def make_optional(fields: Fields, path: tuple[str, ...]) -> Fields:
    find_path(fields, path)
    return edit_field(fields, path, lambda f: replace(f, required=False))


def set_write_default(fields: Fields, path: tuple[str, ...], default: Stored | None) -> Fields:
    find_path(fields, path)
    check_is_struct(fields, path[:-1])
    return edit_field(fields, path, lambda f: replace(f, write_default=default))


def widen(fields: Fields, path: tuple[str, ...], kind: Type) -> Fields:
    """The field with a wider type; the struct member it belongs to remembers the narrower one."""
    above = find_path(fields, path)
    before = above[-1].type
    if not is_scalar(before) or not is_scalar(kind) or not can_widen(before, kind):
        raise _not_wider(path, before, kind)
    if before == kind:
        return fields
    owner = max(n for n, _ in enumerate(above) if n == 0 or _is_struct(above[n - 1]))
    below = ".".join(path[owner + 1 :])
    assert isinstance(before, Scalar) and isinstance(kind, Scalar)
    change = Widening(below, before, kind)
    changed = edit_field(fields, path, lambda f: replace(f, type=kind))
    return edit_field(
        changed, path[: owner + 1], lambda f: replace(f, widened=(*f.widened, change))
    )


def _is_struct(field: Field) -> bool:
    return isinstance(field.type, StructType)


def _not_wider(path: tuple[str, ...], before: Type, kind: Type) -> InvalidSchema:
    match before:
        case Primitive(name) if name in _WIDER:
            hint = f"{name} can become {_WIDER[name]}"
        case DecimalType(precision, scale) if precision < 38:
            hint = f"it can become decimal({precision + 1},{scale}) up to decimal(38,{scale})"
        case Primitive("date"):
            hint = "most Iceberg readers cannot read a date as a timestamp: add a column instead"
        case FixedType() | Primitive() | DecimalType():
            hint = f"no type is wider than {before} in both formats: add a column instead"
        case _:
            hint = "name the member to widen, such as 'items.element.price'"
    return InvalidSchema(
        f"column {'.'.join(path)!r} of type {before} cannot be widened to {kind}",
        hint=hint,
        column=".".join(path),
    )


def _refuse_twice(level: Fields, path: tuple[str, ...]) -> None:
    if sum(f.name.casefold() == path[-1].casefold() for f in level) > 1:
        raise InvalidSchema(
            f"there is a column {'.'.join(path)!r} already",
            hint="names may not differ in case only; choose another",
            column=".".join(path),
        )


def maps_of(fields: Fields) -> list[Field]:
    """The outermost maps, wherever they lie."""
    found: list[Field] = []
    for field in fields:
        is_map = isinstance(field.type, MapType)
        found += [field] if is_map else maps_of(children(field.type))
    return found


def ids_below(fields: Fields, path: tuple[str, ...]) -> frozenset[int]:
    """The ids of a field and all it holds."""
    return frozenset(int(f.id) for f in walk((find_path(fields, path)[-1],)))
