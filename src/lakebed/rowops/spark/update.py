"""Updating rows on Spark: those that match are computed once, kept, and written."""

from collections.abc import Mapping

from lakebed.model.errors import InvalidInput
from lakebed.model.expressions import TRUE
from lakebed.model.ids import FieldId
from lakebed.model.schema import Schema
from lakebed.model.types import walk
from lakebed.rowops.assign import find_column
from lakebed.rowops.change import RowChange
from lakebed.rowops.condition import Condition
from lakebed.rowops.delete import PLACE
from lakebed.rowops.rows import ROW_ID
from lakebed.rowops.settle import Tally
from lakebed.rowops.spark.settle import SparkTarget, by_file, settle


def update(
    target: SparkTarget, values: Mapping[str, str], condition: Condition | None
) -> RowChange:
    """Every expression sees the row as it was; without a condition every row changes."""
    table, bench = target.table, target.bench
    assigned = to_fields(table.schema, values, "SET")
    bound = condition.bound(table.schema) if condition else None
    files = table.kept(bound)
    metadata = (*PLACE, ROW_ID) if table.lineage else PLACE
    rows = bench.read(table.plan(files, predicate=bound), metadata)
    if condition is not None and not condition.is_exact:
        rows = bench.where(rows, table.name, condition.text)
    changed = bench.updated(rows, table.schema, assigned, table.name)
    going = by_file(files, bench.hits(changed)) if files else {}
    rows_changed = sum(map(len, going.values()))
    new = [bench.changed(changed, table.schema, lineage=bool(table.lineage))] if going else []
    return settle(
        target,
        going,
        new_rows=new,
        reads=TRUE if bound is None else bound,
        counts=Tally(updated_rows=rows_changed, scanned_files=len(files)),
    )


def to_fields(schema: Schema, values: Mapping[str, str], what: str) -> dict[FieldId, str]:
    """Expressions by the column they go to; `values` are by paths such as `address.city`."""
    if not values:
        raise InvalidInput("no column is set", hint='give {"column": "expression"}')
    found: dict[FieldId, str] = {}
    for path, text in values.items():
        column = find_column(schema, path, what)
        if column.id in found:
            raise InvalidInput(f"{what} sets {path!r} twice", hint="set each column once")
        found[column.id] = text
    for field_id in found:
        column = schema.field(field_id)
        if sum(inner.id in found for inner in walk((column,))) > 1:
            raise InvalidInput(
                f"{what} sets {column.name!r} and a member of it", hint="set one of them"
            )
    return found
