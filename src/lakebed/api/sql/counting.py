"""count(*), min and max of a whole table, answered from what the rows know of its files."""

import math
from collections.abc import Sequence

import pyarrow as pa

from lakebed.api.sql.bound import Bound
from lakebed.core.plan import Plan
from lakebed.engines.arrow.types import arrow_type
from lakebed.model.files import BOUND_LENGTH, ColumnStats, LiveFile
from lakebed.model.types import Field, Primitive, Stored
from lakebed.sql.aggregates import Aggregate

_TEXTS = (Primitive("string"), Primitive("binary"))
_FLOATS = (Primitive("float"), Primitive("double"))


class _Unknown(Exception):
    """The files do not tell; the rows must be read."""


def all_rows(wanted: Sequence[Aggregate], rows: int) -> pa.Table:
    """The answer when nothing but count(*) is wanted."""
    count = pa.array([rows], pa.int64())
    return pa.Table.from_arrays([count] * len(wanted), names=[each.name for each in wanted])


def counted(wanted: Sequence[Aggregate], relations: Sequence[Bound]) -> pa.Table | None:
    """None when the rows must be read."""
    if len(relations) != 1 or not isinstance(relations[0].rows, Plan):
        return None
    plan = relations[0].rows
    if plan.pruned:
        return None
    try:
        columns = [_column(plan, each) for each in wanted]
    except _Unknown:
        return None
    return pa.Table.from_arrays(columns, names=[each.name for each in wanted])


def _column(plan: Plan, wanted: Aggregate) -> pa.Array:
    if wanted.column is None:
        return pa.array([sum(f.rows for f in plan.files)], pa.int64())
    field = plan.schema.find((wanted.column,))
    if field is None or field.initial_default is not None:
        raise _Unknown
    greatest = wanted.function == "max"
    found = [_bound(f, field, greatest=greatest) for f in plan.files if f.rows]
    known = [(value, exact) for value, exact in found if value is not None]
    if not known:
        return pa.array([None], arrow_type(field.type))
    best = max(v for v, _ in known) if greatest else min(v for v, _ in known)
    if not any(exact for value, exact in known if value == best):
        raise _Unknown
    return pa.array([best], arrow_type(field.type))


def _bound(live: LiveFile, field: Field, *, greatest: bool) -> tuple[Stored | None, bool]:
    """A file's bound, and whether a row that is still there has exactly that value."""
    stats = live.file.stats.get(field.id)
    if stats is None:
        raise _Unknown
    if stats.null_count == live.file.record_count:
        return None, True
    value = stats.upper if greatest else stats.lower
    if value is None or _hides(stats, field):
        raise _Unknown
    if isinstance(value, float) and (math.isnan(value) or value == 0):
        raise _Unknown  # the two zeros are one value in bounds
    cut = field.type in _TEXTS and isinstance(value, str | bytes) and len(value) >= BOUND_LENGTH
    return value, not cut and live.vector is None


def _hides(stats: ColumnStats, field: Field) -> bool:
    """NaN is above all numbers for the engine, and in no bound."""
    return field.type in _FLOATS and stats.nan_count != 0
