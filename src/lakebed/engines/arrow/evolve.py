"""Columns of a file as a later schema has them: found by physical name at every level, widened,
or filled with what the schema says of files that lack them."""

import pyarrow as pa

from lakebed.engines.arrow.exact import TypeRefused, ValueRefused, exact
from lakebed.engines.arrow.nested import (
    as_list,
    list_like,
    map_like,
    nulls,
    plain,
    repeated,
    struct_like,
)
from lakebed.engines.arrow.types import arrow_type, is_list
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
    walk,
)


def as_field(parent: pa.RecordBatch, field: Field) -> pa.Array:
    """The field's column of a batch as a file holds it; pa.ArrowInvalid if it cannot be that."""
    index = parent.schema.get_field_index(field.physical)
    found = parent.column(index) if index >= 0 else None
    return _member(found, field, parent.num_rows)


def _member(found: pa.Array | None, field: Field, length: int) -> pa.Array:
    if found is not None:
        return _convert(plain(found), field.type)
    if field.initial_default is not None:
        return repeated(field.initial_default, length, arrow_type(field.type))
    if field.required:
        raise pa.ArrowInvalid(f"it has no column {field.physical!r}, which is required")
    return nulls(length, arrow_type(field.type))


def _convert(array: pa.Array, kind: Type) -> pa.Array:
    target = arrow_type(kind)
    # Equal types are not enough below: two members may have exchanged their names.
    if array.type == target and all(f.physical == f.name for f in walk(children(kind))):
        return array
    match kind:
        case StructType(fields) if pa.types.is_struct(array.type):
            parts = {f.name: array.field(i) for i, f in enumerate(array.type)}
            members = [_member(parts.get(f.physical), f, len(array)) for f in fields]
            return struct_like(array, members, list(target))
        case ListType(_, element) if is_list(array.type):
            return list_like(array, _convert(plain(array.flatten()), element), target)
        case MapType(_, key, _, value) if pa.types.is_map(array.type):
            pairs = as_list(array)
            keys, values = pairs.flatten().flatten()
            return map_like(
                pairs, _convert(plain(keys), key), _convert(plain(values), value), target
            )
        case Primitive() | DecimalType() | FixedType():
            return _widened(array, kind)
        case _:
            raise _unfit(array.type, kind)


def _widened(array: pa.Array, kind: Primitive | DecimalType | FixedType) -> pa.Array:
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(arrow_type(kind)):
        # Some writers leave out the mark that says UTC; what is stored is UTC all the same.
        array = array.cast(pa.timestamp(array.type.unit, arrow_type(kind).tz))
    try:
        return exact(array, kind)
    except (TypeRefused, ValueRefused):
        raise _unfit(array.type, kind) from None


def _unfit(found: pa.DataType, kind: Type) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"it holds {found} where the table has {kind}")
