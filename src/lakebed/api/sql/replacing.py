"""CREATE OR REPLACE TABLE: other columns, other rows, the same table with its history."""

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from lakebed.api.creating import TableOptions
from lakebed.api.txtable import TransactionTable
from lakebed.model.errors import NoChanges
from lakebed.model.types import Field


def replace_table(
    table: TransactionTable,
    fields: Sequence[Field],
    options: TableOptions,
    rows: pa.RecordBatchReader | None,
) -> None:
    """Columns of the same name and type stay what they are; all others are dropped and added."""
    table.truncate()
    alter = table.alter().replace_columns(tuple(fields))
    if options.get("primary_key"):
        alter.set_primary_key(list(options["primary_key"]))
    if options.get("partition_by"):
        alter.set_partitioning(list(options["partition_by"]))
    if options.get("sort_by"):
        alter.set_sort_order(list(options["sort_by"]))
    for name, text in (options.get("constraints") or {}).items():
        alter.add_constraint(name, text)
    alter.set_table_comment(options.get("comment"))
    with suppress(NoChanges):
        alter.commit()
    if options.get("properties"):
        table.set_properties(options["properties"])
    if rows is not None:
        table.append(rows)
