"""count(*), min and max of a whole table, answered from what the rows know of its files."""

from collections.abc import Sequence

import pyarrow as pa

from lakebed.api.sql.bound import Bound
from lakebed.core.extremes import Answer, Unknown, Wanted, extreme_of
from lakebed.core.plan import Plan
from lakebed.engines.arrow.types import arrow_type
from lakebed.sql.aggregates import Aggregate


def extremes_in(wanted: Sequence[Aggregate]) -> list[Wanted]:
    return [Wanted(e.column, e.function == "max") for e in wanted if e.column is not None]


def answered(wanted: Sequence[Aggregate], answer: Answer) -> pa.Table:
    found = iter(answer.found)
    columns = []
    for each in wanted:
        if each.column is None:
            columns.append(pa.array([answer.rows], pa.int64()))
        else:
            field, value = next(found)
            columns.append(pa.array([value], arrow_type(field.type)))
    return pa.Table.from_arrays(columns, names=[each.name for each in wanted])


def counted(wanted: Sequence[Aggregate], relations: Sequence[Bound]) -> pa.Table | None:
    """Of any version, from all of its files; None when the rows must be read."""
    if len(relations) != 1 or not isinstance(relations[0].rows, Plan):
        return None
    plan = relations[0].rows
    if plan.pruned:
        return None
    found = []
    for each in extremes_in(wanted):
        field = plan.schema.find((each.column,))
        if field is None:
            return None
        try:
            found.append((field, extreme_of(plan.files, field, greatest=each.greatest)))
        except Unknown:
            return None
    return answered(wanted, Answer(sum(f.rows for f in plan.files), found))
