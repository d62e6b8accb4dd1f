"""Column types. A value travels in its *stored form*: date = days, time/timestamp = integer
microseconds (nanoseconds for the _ns types) since the epoch, decimal = Decimal,
uuid/fixed/binary = bytes."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from lakebed.model.ids import FieldId

Stored = bool | int | float | str | bytes | Decimal

# What each format can hold is decided by these names alone.
PRIMITIVES = (
    "boolean",
    "byte",
    "short",
    "int",
    "long",
    "float",
    "double",
    "date",
    "time",
    "timestamp",
    "timestamp_ntz",
    "timestamp_ns",
    "timestamptz_ns",
    "string",
    "uuid",
    "binary",
)
INTEGERS = {"byte": 8, "short": 16, "int": 32, "long": 64}
ICEBERG_ONLY = frozenset({"time", "uuid", "timestamp_ns", "timestamptz_ns"})
ICEBERG_V3_ONLY = frozenset({"timestamp_ns", "timestamptz_ns"})


@dataclass(frozen=True, slots=True)
class Primitive:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType:
    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class FixedType:
    length: int

    def __str__(self) -> str:
        return f"fixed({self.length})"


@dataclass(frozen=True, slots=True)
class Widening:
    """A type that files may still hold; `path` leads from the field to it through lists and maps:
    empty, `element`, `value.element` …"""

    path: str
    before: "Scalar"
    after: "Scalar"


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a struct's member. `physical` is its name in data files, one per id for ever.

    `initial_default` is what files hold that were written before the field was there, and
    `write_default` what rows get that leave it out.
    """

    id: FieldId
    name: str
    type: "Type"
    required: bool = False
    doc: str | None = None
    physical: str = ""
    initial_default: Stored | None = None
    write_default: Stored | None = None
    widened: tuple[Widening, ...] = ()


@dataclass(frozen=True, slots=True)
class StructType:
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        inner = ", ".join(
            f"{f.name}: {f.type}{' not null' if f.required else ''}" for f in self.fields
        )
        return f"struct<{inner}>"


@dataclass(frozen=True, slots=True)
class ListType:
    element_id: FieldId
    element: "Type"
    element_required: bool = False

    def __str__(self) -> str:
        return f"list<{self.element}{' not null' if self.element_required else ''}>"


@dataclass(frozen=True, slots=True)
class MapType:
    key_id: FieldId
    key: "Type"
    value_id: FieldId
    value: "Type"
    value_required: bool = False

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}{' not null' if self.value_required else ''}>"


Scalar = Primitive | DecimalType | FixedType
Type = Scalar | StructType | ListType | MapType


def is_type(value: object) -> bool:
    return isinstance(value, Primitive | DecimalType | FixedType | StructType | ListType | MapType)


def is_scalar(kind: Type) -> bool:
    return isinstance(kind, Primitive | DecimalType | FixedType)


def walk(fields: tuple[Field, ...]) -> Iterator[Field]:
    """Every field, nested ones too; list elements and map sides come as fields of their own."""
    for field in fields:
        yield field
        if below := children(field.type):
            yield from walk(below)


def children(kind: Type) -> tuple[Field, ...]:
    match kind:
        case Primitive():  # first: nearly all are
            return ()
        case StructType(fields):
            return fields
        case ListType(element_id, element, required):
            return (Field(element_id, "element", element, required, None, "element"),)
        case MapType(key_id, key, value_id, value, required):
            return (
                Field(key_id, "key", key, True, None, "key"),
                Field(value_id, "value", value, required, None, "value"),
            )
        case _:
            return ()


def with_children(kind: Type, fields: tuple[Field, ...]) -> Type:
    """The type with other children; the inverse of `children`."""
    match kind:
        case StructType():
            return StructType(fields)
        case ListType():
            return ListType(fields[0].id, fields[0].type, fields[0].required)
        case MapType():
            key, value = fields
            return MapType(key.id, key.type, value.id, value.type, value.required)
        case _:
            return kind


def can_widen(old: Type, new: Type) -> bool:
    """May files written as `old` be read as `new`? The promotions both formats share."""
    match old, new:
        case Primitive(a), Primitive(b) if a in INTEGERS and b in INTEGERS:
            return INTEGERS[a] <= INTEGERS[b]
        case Primitive("float"), Primitive("double"):
            return True
        case DecimalType(p, s), DecimalType(q, t):
            return s == t and p <= q
        case _:
            return old == new
