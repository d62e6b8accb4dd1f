"""Model types as Arrow types, and back: a decision for every Arrow type there is."""

from dataclasses import dataclass

import pyarrow as pa

from lakebed.model.errors import InvalidSchema, UnsupportedFeature
from lakebed.model.ids import FieldId
from lakebed.model.schema import Schema
from lakebed.model.types import (
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    StructType,
    Type,
    children,
)

_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "uuid": pa.binary(16),
    "binary": pa.binary(),
}
_NEW = FieldId(0)  # ids are given later, by model.schema


@dataclass(frozen=True, slots=True)
class ArrowType:
    """What an Arrow type becomes when a table is made from it; None: it is refused."""

    sample: pa.DataType
    becomes: str | None
    note: str = ""

    @property
    def arrow(self) -> str:
        return str(self.sample)


_ITEM = pa.field("element", pa.int32())
_MICRO = "values with digits below the microsecond are refused, never rounded"
_NO_TWIN = "neither Delta nor Iceberg has such a type"
ARROW_TYPES: tuple[ArrowType, ...] = (
    ArrowType(pa.null(), None, "the column has no type: give it one"),
    ArrowType(pa.bool_(), "boolean"),
    ArrowType(pa.bool8(), "boolean"),
    ArrowType(pa.int8(), "byte"),
    ArrowType(pa.int16(), "short"),
    ArrowType(pa.int32(), "int"),
    ArrowType(pa.int64(), "long"),
    ArrowType(pa.uint8(), "short", "the smallest signed type that holds every value"),
    ArrowType(pa.uint16(), "int", "the smallest signed type that holds every value"),
    ArrowType(pa.uint32(), "long", "the smallest signed type that holds every value"),
    ArrowType(pa.uint64(), "decimal(20,0)", "the smallest type that holds every value"),
    ArrowType(pa.float16(), "float"),
    ArrowType(pa.float32(), "float"),
    ArrowType(pa.float64(), "double"),
    ArrowType(pa.decimal32(9, 2), "decimal(9,2)"),
    ArrowType(pa.decimal64(18, 2), "decimal(18,2)"),
    ArrowType(pa.decimal128(38, 2), "decimal(38,2)", "a negative scale is refused"),
    ArrowType(pa.decimal256(38, 2), "decimal(38,2)"),
    ArrowType(pa.decimal256(76, 2), None, "more than 38 digits: cast to decimal128 or to text"),
    ArrowType(pa.date32(), "date"),
    ArrowType(pa.date64(), "date", "values that are not whole days are refused"),
    ArrowType(pa.time32("s"), "time"),
    ArrowType(pa.time32("ms"), "time"),
    ArrowType(pa.time64("us"), "time"),
    ArrowType(pa.time64("ns"), "time", _MICRO),
    ArrowType(pa.timestamp("s"), "timestamp_ntz"),
    ArrowType(pa.timestamp("ms"), "timestamp_ntz"),
    ArrowType(pa.timestamp("us"), "timestamp_ntz"),
    ArrowType(pa.timestamp("ns"), "timestamp_ntz", _MICRO),
    ArrowType(pa.timestamp("s", "UTC"), "timestamp", "any zone: the instant is kept"),
    ArrowType(pa.timestamp("ms", "UTC"), "timestamp", "any zone: the instant is kept"),
    ArrowType(pa.timestamp("us", "UTC"), "timestamp", "any zone: the instant is kept"),
    ArrowType(pa.timestamp("ns", "UTC"), "timestamp", _MICRO),
    ArrowType(pa.duration("us"), None, f"{_NO_TWIN}: store the microseconds in a long"),
    ArrowType(
        pa.month_day_nano_interval(), None, f"{_NO_TWIN}: store months, days or seconds in a long"
    ),
    ArrowType(pa.string(), "string"),
    ArrowType(pa.large_string(), "string"),
    ArrowType(pa.string_view(), "string"),
    ArrowType(pa.json_(), "string", "the JSON text"),
    ArrowType(pa.uuid(), "uuid", "Iceberg only: Delta has no such type"),
    ArrowType(pa.binary(), "binary"),
    ArrowType(pa.large_binary(), "binary"),
    ArrowType(pa.binary_view(), "binary"),
    ArrowType(pa.binary(16), "fixed(16)", "Iceberg only: Delta has no such type"),
    ArrowType(pa.dictionary(pa.int32(), pa.string()), "string", "the type of its values"),
    ArrowType(pa.run_end_encoded(pa.int32(), pa.int64()), "long", "the type of its values"),
    ArrowType(pa.struct([pa.field("a", pa.int32())]), "struct<a: int>"),
    ArrowType(pa.list_(_ITEM), "list<int>"),
    ArrowType(pa.large_list(_ITEM), "list<int>"),
    ArrowType(pa.list_view(_ITEM), "list<int>"),
    ArrowType(pa.large_list_view(_ITEM), "list<int>"),
    ArrowType(pa.list_(_ITEM, 3), "list<int>", "the fixed length is not kept"),
    ArrowType(pa.map_(pa.string(), pa.int32()), "map<string, int>"),
    ArrowType(pa.dense_union([_ITEM]), None, f"{_NO_TWIN}: use a struct with one member per case"),
    ArrowType(pa.sparse_union([_ITEM]), None, f"{_NO_TWIN}: use a struct with one member per case"),
    ArrowType(
        pa.fixed_shape_tensor(pa.int32(), [2]), None, f"{_NO_TWIN}: cast to a list of its values"
    ),
    ArrowType(
        pa.opaque(pa.binary(), "type", "vendor"), None, "its meaning is not known: use its storage"
    ),
)


def to_arrow(schema: Schema, *, physical: bool = False) -> pa.Schema:
    """The schema as Arrow has it; `physical`: with the names, ids and types of data files."""
    return pa.schema([_arrow_field(f, physical) for f in schema.fields])


def arrow_type(kind: Type, *, physical: bool = False) -> pa.DataType:
    inner = [_arrow_field(f, physical) for f in children(kind)]
    match kind:
        case Primitive("uuid") if physical:
            return pa.uuid()  # only the extension type gives Parquet's UUID annotation
        case Primitive(name):
            return _ARROW[name]
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case FixedType(length):
            return pa.binary(length)
        case StructType():
            return pa.struct(inner)
        case ListType():
            return pa.list_(inner[0])
        case MapType():
            return pa.map_(inner[0], inner[1])


def _arrow_field(field: Field, physical: bool) -> pa.Field:
    kind = arrow_type(field.type, physical=physical)
    if not physical:
        return pa.field(field.name, kind, not field.required)
    metadata = {"PARQUET:field_id": str(field.id)}
    return pa.field(field.physical, kind, not field.required, metadata)


def fields_from_arrow(schema: pa.Schema) -> tuple[Field, ...]:
    """The columns of a table made from an Arrow schema, without ids; docs come from comments."""
    return tuple(_field(f, ()) for f in schema)


def _field(field: pa.Field, parents: tuple[str, ...]) -> Field:
    kind = type_from_arrow(field.type, (*parents, field.name))
    comment = (field.metadata or {}).get(b"comment")
    doc = comment.decode("utf-8", "replace") if comment else None
    return Field(_NEW, field.name, kind, not field.nullable, doc)


def type_from_arrow(kind: pa.DataType, path: tuple[str, ...]) -> Type:
    kind = storage_type(kind)
    if pa.types.is_struct(kind) and kind.num_fields:
        return StructType(tuple(_field(f, path) for f in kind))
    if is_list(kind):
        item = kind.value_field
        return ListType(_NEW, type_from_arrow(item.type, (*path, "element")), not item.nullable)
    if pa.types.is_map(kind):
        key = type_from_arrow(kind.key_type, (*path, "key"))
        value = type_from_arrow(kind.item_type, (*path, "value"))
        return MapType(_NEW, key, _NEW, value, not kind.item_field.nullable)
    return _scalar(kind, ".".join(path))


def is_list(kind: pa.DataType) -> bool:
    """Lists of every layout; a map is no list."""
    return any(
        test(kind)
        for test in (
            pa.types.is_list,
            pa.types.is_large_list,
            pa.types.is_list_view,
            pa.types.is_large_list_view,
            pa.types.is_fixed_size_list,
        )
    )


def storage_type(kind: pa.DataType) -> pa.DataType:
    """The type without its encoding: of a dictionary's values, of a JSON text, and so on."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return storage_type(kind.value_type)
    if kind == pa.bool8():
        return pa.bool_()
    if isinstance(kind, pa.JsonType):
        return storage_type(kind.storage_type)
    return kind


_PLAIN: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.uint8(): "short",
    pa.uint16(): "int",
    pa.uint32(): "long",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.uuid(): "uuid",
}


def _scalar(kind: pa.DataType, column: str) -> Type:
    if kind in _PLAIN:
        return Primitive(_PLAIN[kind])
    if kind == pa.uint64():
        return DecimalType(20, 0)
    if pa.types.is_decimal(kind):
        return _decimal(kind, column)
    if pa.types.is_time(kind):
        return Primitive("time")
    if pa.types.is_timestamp(kind):
        return Primitive("timestamp_ntz" if kind.tz is None else "timestamp")
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width:
        return FixedType(kind.byte_width)
    raise _refused(kind, column)


def _decimal(kind: pa.DataType, column: str) -> Type:
    if kind.precision > 38 or not 0 <= kind.scale <= kind.precision:
        raise InvalidSchema(
            f"column {column!r} has the Arrow type {kind}, which no table format can hold",
            hint="use 1 to 38 digits with a scale between 0 and that, or text",
            column=column,
        )
    return DecimalType(kind.precision, kind.scale)


def _refused(kind: pa.DataType, column: str) -> InvalidSchema | UnsupportedFeature:
    if pa.types.is_null(kind):
        return InvalidSchema(
            f"column {column!r} holds nothing but nulls, so its type is not known",
            hint="give the column a type: pass a schema, or cast it before",
            column=column,
        )
    if pa.types.is_struct(kind):
        return InvalidSchema(
            f"struct column {column!r} has no members",
            hint="give it at least one member",
            column=column,
        )
    return UnsupportedFeature(
        f"column {column!r} has the Arrow type {kind}, which cannot be kept",
        hint=_note(kind),
        column=column,
    )


def _note(kind: pa.DataType) -> str:
    for known in ARROW_TYPES:
        same = (
            type(kind) is type(known.sample) if _is_extension(kind) else kind.id == known.sample.id
        )
        if same and known.becomes is None:
            return known.note
    return "cast the column to its storage type first"


def _is_extension(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)
