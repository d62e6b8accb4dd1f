"""Any Arrow batches as the table's exact types and column order; what does not fit is refused.

Values are kept exactly or refused by row: nothing is rounded, cut or parsed. Dates and times lie in
the years 0001 to 9999.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.exact import TypeRefused, ValueRefused, exact
from lakebed.engines.arrow.nested import (
    as_list,
    list_like,
    map_like,
    nulls,
    plain,
    repeated,
    struct_like,
    without_nulls,
)
from lakebed.engines.arrow.types import arrow_type, is_list, to_arrow
from lakebed.model.errors import SchemaMismatch
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

BATCH_ROWS = 131_072
_LONGEST_VALUE = 100


def conform(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Batches of at most BATCH_ROWS rows; SchemaMismatch names column and row of the stream."""
    first_row = 0
    for batch in batches:
        for start in range(0, max(batch.num_rows, 1), BATCH_ROWS):
            piece = _conform(batch.slice(start, BATCH_ROWS), schema, first_row)
            first_row += piece.num_rows
            if piece.num_rows:
                yield piece


def match_names(names: Sequence[str], fields: tuple[Field, ...], parent: str) -> list[int | None]:
    """Where each field stands among `names`: by its exact name, else by the only one that fits."""
    found: dict[int, int] = {}
    for index, name in enumerate(names):
        number = find_name(name, fields)
        if number is None:
            raise unknown_name(parent + name, fields)
        if number in found:
            raise _twice(parent + fields[number].name)
        found[number] = index
    for number, field in enumerate(fields):
        if field.required and field.write_default is None and number not in found:
            raise SchemaMismatch(
                f"required column {parent + field.name!r} is missing",
                hint="add the column, or make it optional in the table",
                column=parent + field.name,
            )
    return [found.get(number) for number in range(len(fields))]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an array stands: its path, and for each list above it the parent of every value."""

    path: str
    first_row: int
    parents: tuple[pa.Array, ...] = ()

    def below(self, name: str) -> "_Place":
        return replace(self, path=f"{self.path}.{name}")

    def inside(self, name: str, array: pa.Array) -> "_Place":
        parents = pc.list_parent_indices(array)
        return replace(self, path=f"{self.path}.{name}", parents=(*self.parents, parents))

    def error(self, index: int, what: str, hint: str, value: object = None) -> SchemaMismatch:
        for parents in reversed(self.parents):
            index = parents[index].as_py()
        row = self.first_row + index
        return SchemaMismatch(
            f"column {self.path!r}, row {row + 1}: {what}",
            hint=hint,
            column=self.path,
            row=row,
            value=value,
        )


def _conform(batch: pa.RecordBatch, schema: Schema, first_row: int) -> pa.RecordBatch:
    columns = []
    at = match_names(batch.schema.names, schema.fields, "")
    for field, index in zip(schema.fields, at, strict=True):
        if index is None:
            columns.append(_left_out(field, batch.num_rows))
        else:
            place = _Place(field.name, first_row)
            columns.append(_fit(batch.column(index), field, place))
    return pa.RecordBatch.from_arrays(columns, schema=to_arrow(schema))


def _left_out(field: Field, length: int) -> pa.Array:
    if field.write_default is None:
        return nulls(length, arrow_type(field.type))
    return repeated(field.write_default, length, arrow_type(field.type))


def _fit(array: pa.Array, field: Field, place: _Place, visible: pa.Array | None = None) -> pa.Array:
    """The array as the field's type; `visible` says where its parent is not null."""
    result = _convert(plain(array), field.type, place)
    if not field.required or not result.null_count:
        return result
    missing = pc.is_null(result)
    if visible is not None:
        missing = pc.and_(missing, visible)
    index = pc.index(missing, True).as_py()
    if index >= 0:
        hint = "fill in the value, or make the column optional in the table"
        raise place.error(index, "NULL in a required column", hint)
    # A null parent hides these; Parquet's writer does not take nulls in a required column even so.
    return without_nulls(result)


def _convert(array: pa.Array, kind: Type, place: _Place) -> pa.Array:
    if pa.types.is_null(array.type):
        return nulls(len(array), arrow_type(kind))
    match kind:
        case StructType():
            return _struct(array, kind, place)
        case ListType():
            return _list(array, kind, place)
        case MapType():
            return _map(array, kind, place)
        case Primitive() | DecimalType() | FixedType():
            return _scalar(array, kind, place)


def _struct(array: pa.Array, kind: StructType, place: _Place) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise _wrong_type(array.type, kind, place, "give one struct per row")
    names = [field.name for field in array.type]
    at = match_names(names, kind.fields, f"{place.path}.")
    visible = array.is_valid() if array.null_count else None
    parts, members = array.flatten(), []
    for field, index in zip(kind.fields, at, strict=True):
        if index is None:
            members.append(_left_out(field, len(array)))
        else:
            members.append(_fit(parts[index], field, place.below(field.name), visible))
    return struct_like(array, members, list(arrow_type(kind)))


def _list(array: pa.Array, kind: ListType, place: _Place) -> pa.Array:
    if not is_list(array.type):
        raise _wrong_type(array.type, kind, place, "give one list per row")
    (element,) = children(kind)
    values = _fit(array.flatten(), element, place.inside("element", array))
    return list_like(array, values, arrow_type(kind))


def _map(array: pa.Array, kind: MapType, place: _Place) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise _wrong_type(array.type, kind, place, "give an Arrow map")
    key, value = children(kind)
    pairs = as_list(array)
    keys, values = pairs.flatten().flatten()
    return map_like(
        pairs,
        _fit(keys, key, place.inside("key", pairs)),
        _fit(values, value, place.inside("value", pairs)),
        arrow_type(kind),
    )


def _scalar(array: pa.Array, kind: Primitive | DecimalType | FixedType, place: _Place) -> pa.Array:
    try:
        return exact(array, kind)
    except TypeRefused as refused:
        raise _wrong_type(array.type, kind, place, refused.hint) from None
    except ValueRefused as refused:
        value = _text(array.slice(refused.index, 1))
        hint = f"correct the value, or give the column another type than {kind}"
        what = f"{value} {refused.reason}"
        raise place.error(refused.index, what, hint, value) from None


def _text(one: pa.Array) -> str:
    try:
        text = repr(one[0].as_py())
    except (ValueError, OverflowError, ImportError):
        # Beyond what Python's own types can hold.
        raw = pa.binary() if pa.types.is_string(one.type) else pa.string()
        text = repr(one.cast(raw)[0].as_py())
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"


def find_name(name: str, fields: tuple[Field, ...]) -> int | None:
    for number, field in enumerate(fields):
        if field.name == name:
            return number
    alike = [n for n, f in enumerate(fields) if f.name.casefold() == name.casefold()]
    return alike[0] if len(alike) == 1 else None


def unknown_name(name: str, fields: tuple[Field, ...]) -> SchemaMismatch:
    return SchemaMismatch(
        f"the table has no column {name!r}",
        hint="leave it out, add it to the table, or append with merge_schema=True (--merge-schema);"
        f" there are: {', '.join(f.name for f in fields)}",
        column=name,
    )


def _twice(name: str) -> SchemaMismatch:
    return SchemaMismatch(f"column {name!r} is given twice", hint="give it once", column=name)


def _wrong_type(found: pa.DataType, kind: Type, place: _Place, hint: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"column {place.path!r} has the Arrow type {found}, the table has {kind}",
        hint=hint,
        column=place.path,
    )
