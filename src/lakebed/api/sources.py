"""What may be merged into a table: rows in memory of any library, a table, a scan, a stream."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from lakebed.api.scan import Scan
from lakebed.engines.arrow.batches import Batches
from lakebed.engines.arrow.conform import find_name
from lakebed.engines.arrow.ingest import open_batches
from lakebed.engines.arrow.rows import ROWS_PER_BATCH, infer_schema, rows_to_batches
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.schema import Schema

# Told of a dict that lacks columns which others have: its number from 0, itself, those columns.
LeftOut = Callable[[int, Mapping[str, Any], Sequence[str]], None]


def open_source(source: object, schema: Schema, left_out: LeftOut | None = None) -> Batches:
    """The source as a stream; values of dicts take the types of the table's columns they name."""
    scan = getattr(source, "scan", None)
    if callable(scan) and isinstance(getattr(source, "schema", None), Schema):
        source = scan()  # a table
    if isinstance(source, Scan):
        source = source.to_batches()
    whole = isinstance(source, str | bytes | Mapping | Batches)
    if not isinstance(source, Iterable) or whole or hasattr(source, "__arrow_c_stream__"):
        return open_batches(source, schema=schema)
    return _from_items(iter(source), schema, left_out)


def _from_items(items: Any, schema: Schema, left_out: LeftOut | None) -> Batches:
    first = list(islice(items, ROWS_PER_BATCH))
    everything: Iterable[Any] = chain(first, items)
    if not first or not isinstance(first[0], Mapping):
        return open_batches(everything, schema=schema)
    shape = _shape([row for row in first if isinstance(row, Mapping)], schema)
    if left_out is not None:
        everything = _looked_at(everything, [f.name for f in shape.fields], left_out)
    return Batches(to_arrow(shape), rows_to_batches(everything, shape))


def _looked_at(rows: Iterable[Any], names: Sequence[str], left_out: LeftOut) -> Iterator[Any]:
    whole: set[tuple[object, ...]] = set()  # most rows have the same keys
    for number, row in enumerate(rows):
        if isinstance(row, Mapping) and (keys := tuple(row)) not in whole:
            known = {str(key).casefold() for key in keys}
            missing = [name for name in names if name.casefold() not in known]
            if missing:
                left_out(number, row, missing)
            else:
                whole.add(keys)
        yield row


def _shape(rows: list[Mapping[str, Any]], schema: Schema) -> Schema:
    names = dict.fromkeys(str(key) for row in rows for key in row)
    known = {name: find_name(name, schema.fields) for name in names}
    other = [name for name, number in known.items() if number is None]
    guessed = infer_schema([{n: row.get(n) for n in other} for row in rows])[0] if other else None
    found = {f.name: f for f in guessed.fields} if guessed else {}
    fields = tuple(
        found[name] if number is None else replace(schema.fields[number], required=False)
        for name, number in known.items()
    )
    return Schema(schema.id, fields)
