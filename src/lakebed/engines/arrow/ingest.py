"""Rows in memory, of whatever library, as a stream of Arrow batches. Imports none of them.

A pandas index is written when it has a name; pandas' NaN is null.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from lakebed.engines.arrow.batches import Batches
from lakebed.engines.arrow.conform import BATCH_ROWS
from lakebed.engines.arrow.rows import infer_schema, rows_to_batches
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import InvalidInput, UnreadableInput
from lakebed.model.schema import Schema

ACCEPTED = (
    "an Arrow table, batch or reader, a pandas or Polars frame, a DuckDB relation, anything with "
    "__arrow_c_stream__, or an iterable of dicts or of Arrow batches"
)


def open_batches(source: object, *, schema: Schema | None) -> Batches:
    """The source as a stream; rows given as dicts are read by `schema`, or by a guess without."""
    match source:
        case Batches():
            return source
        case pa.Table():
            return Batches(source.schema, source.to_batches(max_chunksize=BATCH_ROWS))
        case pa.RecordBatch():
            return Batches(source.schema, [source])
        case pa.RecordBatchReader():
            return Batches(source.schema, _drained(source))
        case _:
            return _from_others(source, schema)


def _from_others(source: Any, schema: Schema | None) -> Batches:
    if _is_lazy_frame(source):
        return _from_stream(source.collect(engine="streaming"))
    if hasattr(source, "__arrow_c_stream__"):
        return _from_stream(source)
    if hasattr(source, "__arrow_c_array__"):
        return _from_array(source)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | Mapping):
        return _from_items(iter(source), schema)
    raise _unknown(source)


def _is_lazy_frame(source: object) -> bool:
    kind = type(source)
    return kind.__module__.partition(".")[0] == "polars" and kind.__name__ == "LazyFrame"


def _from_stream(source: object) -> Batches:
    try:
        reader = pa.RecordBatchReader.from_stream(source)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise _unreadable(source, error) from error
    dropped = _unnamed_index(reader.schema)
    if not dropped:
        return Batches(reader.schema, _drained(reader))
    kept = [name for name in reader.schema.names if name not in dropped]
    schema = pa.schema([reader.schema.field(name) for name in kept])
    return Batches(schema, (batch.select(kept) for batch in _drained(reader)))


def _from_array(source: object) -> Batches:
    try:
        batch = pa.record_batch(source)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise _unreadable(source, error) from error
    return Batches(batch.schema, [batch])


def _drained(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(reader, error) from error
        yield batch


def _unnamed_index(schema: pa.Schema) -> set[str]:
    """Columns that pandas adds for an index nobody named."""
    about = (schema.metadata or {}).get(b"pandas")
    if about is None:
        return set()
    index = [name for name in json.loads(about)["index_columns"] if isinstance(name, str)]
    return {name for name in index if name.startswith("__index_level_")}


def _from_items(items: Iterator[Any], schema: Schema | None) -> Batches:
    begun = list(islice(items, 1))
    if not begun:
        return _from_nothing(schema)
    first, everything = begun[0], chain(begun, items)
    if isinstance(first, pa.RecordBatch | pa.Table):
        return Batches(first.schema, _from_tables(everything))
    if not isinstance(first, Mapping):
        raise _unknown(first)
    if schema is not None:
        return Batches(to_arrow(schema), rows_to_batches(everything, schema))
    guessed, rows = infer_schema(everything)
    return Batches(to_arrow(guessed), rows_to_batches(rows, guessed))


def _from_nothing(schema: Schema | None) -> Batches:
    if schema is None:
        raise UnreadableInput(
            "there are no rows, so the columns are not known", hint="give a schema, or rows"
        )
    return Batches(to_arrow(schema), ())


def _from_tables(items: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for item in items:
        if isinstance(item, pa.RecordBatch):
            yield item
        elif isinstance(item, pa.Table):
            yield from item.to_batches(max_chunksize=BATCH_ROWS)
        else:
            raise _unknown(item)


def _unknown(source: object) -> InvalidInput:
    hint = f"give {ACCEPTED}"
    if isinstance(source, Mapping):
        hint = "one row is a list with one dict; for columns, use pyarrow.table(…)"
    elif isinstance(source, str | bytes):
        hint = f"to read files, use `lakebed append`; otherwise give {ACCEPTED}"
    return InvalidInput(f"rows cannot be read from {type(source).__name__}", hint=hint)


def _unreadable(source: object, error: Exception) -> UnreadableInput:
    name = type(source).__name__
    return UnreadableInput(f"rows of {name} cannot be read: {error}", hint=f"give {ACCEPTED}")
