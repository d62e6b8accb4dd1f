"""The columns of a table or view that a query makes: types as the engine means them."""

from dataclasses import replace

import pyarrow as pa

from lakebed.engines.arrow.types import fields_from_arrow
from lakebed.model.types import Field, FixedType, ListType, MapType, Primitive, StructType, Type

_NANOS = {"timestamp": "timestamptz_ns", "timestamp_ntz": "timestamp_ns"}
_UUID = FixedType(16)  # the engine has no other bytes of a fixed length


def columns_of(schema: pa.Schema) -> tuple[Field, ...]:
    return tuple(
        replace(made, type=_exact(made.type, found.type))
        for made, found in zip(fields_from_arrow(schema), schema, strict=True)
    )


def _exact(kind: Type, found: pa.DataType) -> Type:
    match kind:
        case FixedType() if kind == _UUID:
            return Primitive("uuid")
        case Primitive(name) if name in _NANOS and found.unit == "ns":
            return Primitive(_NANOS[name])
        case ListType():
            return replace(kind, element=_exact(kind.element, found.value_type))
        case MapType():
            key, value = _exact(kind.key, found.key_type), _exact(kind.value, found.item_type)
            return replace(kind, key=key, value=value)
        case StructType(fields):
            members = zip(fields, found, strict=True)
            return StructType(
                tuple(replace(m, type=_exact(m.type, inside.type)) for m, inside in members)
            )
        case _:
            return kind
