"""A plan as a relation of a connection that is not ours: rows come through Arrow."""

import duckdb

from lakebed.core.lease import Hold
from lakebed.core.plan import Plan
from lakebed.engines.duckdb.dataset import PlanRows, PlanSource
from lakebed.engines.duckdb.relation import cast_columns
from lakebed.model.errors import InvalidInput
from lakebed.storage.base import Storage


def relation_of(
    plan: Plan, storage: Storage, hold: Hold, connection: duckdb.DuckDBPyConnection | None
) -> duckdb.DuckDBPyRelation:
    """Filters and columns are handed down; without a connection, of DuckDB's default one."""
    if not plan.columns:
        raise InvalidInput("a relation needs a column", hint="ask for at least one column")
    source = PlanSource(PlanRows(plan, range(len(plan.files)), storage, hold=hold))
    rows = (duckdb if connection is None else connection).from_arrow(source)
    return rows.project(", ".join(cast_columns(plan.schema, plan.columns)))
