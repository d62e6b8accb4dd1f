"""Rows as mappings (dicts) turned into batches: strictly, by the types of a schema."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from lakebed.engines.arrow.conform import find_name, unknown_name
from lakebed.engines.arrow.types import fields_from_arrow, to_arrow
from lakebed.engines.arrow.values import Refused, converter
from lakebed.model.errors import LakebedError, SchemaMismatch, UnreadableInput
from lakebed.model.names import check_column_name
from lakebed.model.schema import Schema, new_schema

ROWS_PER_BATCH = 10_000
# What to raise for a refused value: its index among the rows, its column and the value.
Complain = Callable[[int, str, Refused, object], LakebedError]
_NO_MAPPING = Refused(
    "is not a mapping of column names to values", "give rows as dicts: [{'id': 1, 'name': 'a'}]"
)

_LEFT_OUT = object()  # a row that says nothing of a column; None says NULL
_NAMED_TWICE = Refused("names a column twice, in different case", "name each column once")


def rows_to_batches(rows: Iterable[Any], schema: Schema) -> Iterator[pa.RecordBatch]:
    first_row = 0
    remaining = iter(rows)
    while chunk := list(islice(remaining, ROWS_PER_BATCH)):
        yield convert_rows(chunk, schema, complain=_complain_from(first_row))
        first_row += len(chunk)


def infer_schema(rows: Iterable[Any]) -> tuple[Schema, Iterator[Any]]:
    """A schema from the first rows, and all the rows again."""
    remaining = iter(rows)
    first = list(islice(remaining, ROWS_PER_BATCH))
    names: dict[str, None] = {}
    for number, row in enumerate(first):
        if not isinstance(row, Mapping):
            raise _complain_from(0)(number, "", _NO_MAPPING, row)
        names.update(dict.fromkeys(row))
    for name in names:
        check_column_name(name)
    fields = [pa.field(name, _inferred(name, [row.get(name) for row in first])) for name in names]
    schema = new_schema(fields_from_arrow(pa.schema(fields)))
    return schema, chain(first, remaining)


def convert_rows(
    rows: Sequence[Any], schema: Schema, *, complain: Complain, text: bool = False
) -> pa.RecordBatch:
    """One batch of the schema's types; missing keys get the default, unknown ones are refused."""
    columns = _by_column(rows, schema, complain)
    arrow = to_arrow(schema)
    arrays = []
    for field, kind, values in zip(schema.fields, arrow.types, columns, strict=True):
        convert = converter(field.type, text=text)
        found = []
        for index, value in enumerate(values):
            if value is _LEFT_OUT:
                found.append(field.write_default)
                continue
            try:
                found.append(None if value is None else convert(value))
            except Refused as refused:
                raise complain(index, field.name + refused.path, refused, value) from None
        arrays.append(pa.array(found, kind))
    # Nulls in required columns are found later, where every other input is checked for them too.
    names = [field.name for field in schema.fields]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:100] + "…"


def _by_column(rows: Sequence[Any], schema: Schema, complain: Complain) -> list[list[Any]]:
    columns: list[list[Any]] = [[_LEFT_OUT] * len(rows) for _ in schema.fields]
    places: dict[str, int] = {}
    spelt_twice = False
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise complain(number, "", _NO_MAPPING, row)
        for key, value in row.items():
            place = places.get(key)
            if place is None:
                place = _place(key, schema)
                spelt_twice = spelt_twice or place in places.values()
                places[key] = place
            columns[place][number] = value
        if spelt_twice and len({places[key] for key in row}) < len(row):
            raise complain(number, "", _NAMED_TWICE, row)
    return columns


def _place(key: object, schema: Schema) -> int:
    place = find_name(str(key), schema.fields)
    if place is None:
        raise unknown_name(str(key), schema.fields)
    return place


def _complain_from(first_row: int) -> Complain:
    def complain(index: int, path: str, refused: Refused, value: object) -> LakebedError:
        row = first_row + index
        where = f"column {path!r}, row {row + 1}" if path else f"row {row + 1}"
        return SchemaMismatch(
            f"{where}: {short(value)} {refused.reason}",
            hint=refused.hint,
            column=path,
            row=row,
            value=short(value),
        )

    return complain


def _inferred(name: str, values: list[Any]) -> pa.DataType:
    try:
        return pa.array(values).type
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UnreadableInput(
            f"the type of column {name!r} cannot be told from its values: {error}",
            hint="give a schema, or values of one type",
            column=name,
        ) from None
