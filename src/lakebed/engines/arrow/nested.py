"""Taking nested Arrow arrays apart and putting them together again, for every layout of a list.

Only what a visible row refers to is kept: what hides below a null or outside a slice goes.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.types import storage_type
from lakebed.model.types import Stored


def plain(array: pa.Array) -> pa.Array:
    """The array without its encoding, as `storage_type` has its type."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    if kind == pa.bool8():
        return pc.not_equal(array.storage, pa.scalar(0, pa.int8()))
    if kind != storage_type(kind) or kind == pa.uuid():
        return array.storage
    return array


def struct_like(
    array: pa.Array, members: Sequence[pa.Array], fields: Sequence[pa.Field]
) -> pa.Array:
    """A struct that is null where `array` is, with other members."""
    return pa.StructArray.from_arrays(list(members), fields=list(fields), mask=_mask(array))


def as_list(array: pa.Array) -> pa.Array:
    """A map as a list of structs; lists as they are."""
    if not pa.types.is_map(array.type):
        return array
    # Arrow's own list functions do not take maps; `flatten` of one even ends the process.
    entries = pa.StructArray.from_arrays(
        [array.keys, array.items], fields=[array.type.key_field, array.type.item_field]
    )
    return pa.Array.from_buffers(
        pa.list_(pa.field("entries", entries.type, nullable=False)),
        len(array),
        array.buffers()[:2],
        array.null_count,
        array.offset,
        children=[entries],
    )


def list_like(array: pa.Array, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A list of type `kind` with the shape of the list `array` and other values."""
    return pa.ListArray.from_arrays(_offsets(array), values, type=kind, mask=_mask(array))


def map_like(array: pa.Array, keys: pa.Array, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A map of type `kind` with the shape of the list `array`."""
    return pa.MapArray.from_arrays(_offsets(array), keys, values, type=kind, mask=_mask(array))


def retype(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same values under a type that differs in names only, or in the annotation of a uuid."""
    if array.type == kind:
        return array
    if kind == pa.uuid():
        return pa.ExtensionArray.from_storage(kind, array)
    if pa.types.is_struct(kind):
        members = [retype(array.field(i), field.type) for i, field in enumerate(kind)]
        return struct_like(array, members, list(kind))
    if pa.types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
        parts = [retype(array.keys, fields[0].type), retype(array.items, fields[1].type)]
        inner = pa.StructArray.from_arrays(parts, fields=fields)
    else:
        inner = retype(array.values, kind.value_type)
    shape = array.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(array), shape, array.null_count, array.offset, children=[inner]
    )


def nulls(length: int, kind: pa.DataType) -> pa.Array:
    """Nothing but nulls; members that may not be null are not, below them."""
    if not pa.types.is_struct(kind):
        return pa.nulls(length, kind)
    members = [nulls(length, field.type) for field in kind]
    filled = [m if f.nullable else without_nulls(m) for m, f in zip(members, kind, strict=True)]
    every = pa.array([True], pa.bool_()).take(pa.nulls(length, pa.int32()).fill_null(0))
    return pa.StructArray.from_arrays(filled, fields=list(kind), mask=every)


def repeated(value: Stored, length: int, kind: pa.DataType) -> pa.Array:
    """One value, given in stored form, as often as there are rows."""
    return pa.array([value], kind).take(pa.nulls(length, pa.int32()).fill_null(0))


def without_nulls(array: pa.Array) -> pa.Array:
    """The array with its null bits cleared; what stands in those places has no meaning."""
    if not array.null_count:
        return array
    buffers = array.buffers()
    if pa.types.is_struct(array.type):
        members = [array.field(i) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(array.type))
    if pa.types.is_map(array.type):
        entries = as_list(array).values
        return _bare(array, [None, buffers[1]], [entries])
    if pa.types.is_list(array.type):
        return _bare(array, [None, buffers[1]], [array.values])
    return _bare(array, [None, *buffers[1:]], None)


def _bare(
    array: pa.Array, buffers: list[pa.Buffer | None], inner: list[pa.Array] | None
) -> pa.Array:
    return pa.Array.from_buffers(array.type, len(array), buffers, 0, array.offset, children=inner)


def _offsets(array: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths)
    return pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())


def _mask(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None
