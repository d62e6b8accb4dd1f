"""Sorting a table by a sort order: nulls where it says, NaN as the greatest number."""

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.transform import source_column, transformed
from lakebed.model.partitioning import SortOrder
from lakebed.model.schema import Schema


def sort_batch(batch: pa.RecordBatch, order: SortOrder, schema: Schema) -> pa.RecordBatch:
    keys: dict[str, pa.Array] = {}
    directions: list[tuple[str, str]] = []
    for number, field in enumerate(order.fields):
        column = source_column(batch, schema, field.source_id)
        values = transformed(column, schema.field(field.source_id).type, field.transform)
        direction = "descending" if field.descending else "ascending"
        # Arrow has one place for nulls of all keys and keeps NaN beside them: columns of our own.
        keys[f"null{number}"] = pc.is_null(values).cast(pa.int8())
        directions.append((f"null{number}", "descending" if field.nulls_first else "ascending"))
        if pa.types.is_floating(values.type):
            keys[f"nan{number}"] = pc.fill_null(pc.is_nan(values), False).cast(pa.int8())
            directions.append((f"nan{number}", direction))
        keys[f"value{number}"] = values
        directions.append((f"value{number}", direction))
    return batch.take(pc.sort_indices(pa.table(keys), sort_keys=directions))
