"""Updating rows: the old ones go by their positions, the new ones are written beside the rest."""

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa

from lakebed.model.errors import InvalidInput
from lakebed.model.expressions import TRUE
from lakebed.model.quoting import quoted
from lakebed.rowops.assign import parse_assignments, projected
from lakebed.rowops.change import RowChange
from lakebed.rowops.condition import Condition
from lakebed.rowops.delete import PLACE
from lakebed.rowops.found import Found
from lakebed.rowops.rows import ROW_ID, fitted, refuse_misfits
from lakebed.rowops.settle import Tally, settle
from lakebed.rowops.target import Target
from lakebed.rowops.workbench import Workbench


def update(
    target: Target, values: Mapping[str, str], condition: Condition | None, bench: Workbench
) -> RowChange:
    """Every expression sees the row as it was; without a condition every row changes."""
    if not values:
        raise InvalidInput("no column is set", hint='give {"column": "expression"}')
    assigned = parse_assignments(bench, target.schema, values, "SET")
    bound = condition.bound(target.schema) if condition else None
    files = target.kept(bound)
    found, tally = Found(files), Tally(scanned_files=len(files))

    def changed() -> Iterator[pa.RecordBatch]:
        plan = target.plan(files, predicate=bound)
        metadata = (*PLACE, ROW_ID) if target.lineage else PLACE
        relation, alias = bench.bind(plan, metadata), quoted(target.name)
        refuse_misfits(bench, target, assigned, f"{relation} AS {alias}")
        columns = [
            projected(f, assigned, partial("{}.{}".format, alias, quoted(f.name)))
            for f in target.schema.fields
        ]
        listed = ", ".join([*columns, *metadata])
        where = ""
        if condition is not None and not condition.is_exact:
            test = bench.expression(condition.text, "the condition")
            bench.refuse_no_condition([test], f"{relation} AS {alias}")
            where = f" WHERE {test.sql}"
            if not files:
                bench.try_on_nulls(test, f"{relation} AS {alias}")
        if not files:
            return
        for batch in bench.batches(f"SELECT {listed} FROM {relation} AS {alias}{where}"):
            found.add(batch.column("_file"), batch.column("_pos"))
            tally.updated_rows += batch.num_rows
            yield batch

    return settle(
        target,
        found.by_file(),
        new_rows=fitted(changed(), target, assigned.columns(target.schema)),
        reads=TRUE if bound is None else bound,
        counts=tally,
    )
