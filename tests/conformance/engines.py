"""The engines that read plans, each as one line: by itself, and with a filter of its own API."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.core.prune import narrowed
from lakebed.engines.arrow.dataset import PlanDataset
from lakebed.engines.arrow.read import read, read_schema
from lakebed.engines.datafusion.session import new_session
from lakebed.engines.duckdb.instance import Limits
from lakebed.engines.duckdb.session import Session
from lakebed.engines.polars.frame import lazy_frame
from lakebed.model.binding import bind
from lakebed.sql.predicate import parse_predicate
from lakebed.storage.base import Storage
from lakebed.storage.memory import MemoryStorage


@dataclass(frozen=True)
class Filter:
    """One condition in SQL and as Polars writes it."""

    sql: str
    polars: pl.Expr


Engine = Callable[[Plan, Storage, Filter | None], pa.Table]


def by_arrow(plan: Plan, storage: Storage, condition: Filter | None) -> pa.Table:
    """The reference: what the others are compared with."""
    if condition is not None:
        predicate = bind(parse_predicate(condition.sql), plan.schema)
        plan = replace(narrowed(plan, predicate), predicate=predicate)
    return pa.Table.from_batches(read(plan, storage), read_schema(plan))


def by_polars(plan: Plan, storage: Storage, condition: Filter | None) -> pa.Table:
    frame = lazy_frame(plan, storage, nullcontext)
    return (frame if condition is None else frame.filter(condition.polars)).collect().to_arrow()


def by_polars_in_memory(plan: Plan, storage: Storage, condition: Filter | None) -> pa.Table:
    """Where Polars cannot read the files by itself."""
    return by_polars(plan, _copy(plan, storage), condition)


def by_datafusion(plan: Plan, storage: Storage, condition: Filter | None) -> pa.Table:
    session = new_session({"s": {"t": lambda: PlanDataset(plan, storage, nullcontext)}})
    where = "" if condition is None else f" WHERE {condition.sql}"
    return session.sql(f"SELECT * FROM s.t{where}").to_arrow_table()


def by_duckdb(plan: Plan, storage: Storage, condition: Filter | None) -> pa.Table:
    where = "" if condition is None else f" WHERE {condition.sql}"
    columns = "*" if plan.columns else "1"
    with Session(storage, Limits(1 << 30, None)) as session:
        session.bind_plan("t", plan)
        rows = session.batches(f"SELECT {columns} FROM t{where}").read_all()
    return rows if plan.columns else rows.select([])


def by_duckdb_in_memory(plan: Plan, storage: Storage, condition: Filter | None) -> pa.Table:
    """Where DuckDB cannot read the files by itself."""
    return by_duckdb(plan, _copy(plan, storage), condition)


ENGINES: dict[str, Engine] = {
    "arrow": by_arrow,
    "duckdb": by_duckdb,
    "duckdb-in-memory": by_duckdb_in_memory,
    "polars": by_polars,
    "polars-in-memory": by_polars_in_memory,
    "datafusion": by_datafusion,
}


def shaped(value: Any, kind: pa.DataType) -> Any:
    """A plain value whose maps are sorted pairs, however the engine shows a map."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: shaped(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [shaped(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        pairs = [tuple(item.values()) if isinstance(item, dict) else item for item in value]
        shaped_pairs = [(shaped(k, kind.key_type), shaped(v, kind.item_type)) for k, v in pairs]
        return sorted(shaped_pairs, key=repr)
    return value


def _copy(plan: Plan, storage: Storage) -> MemoryStorage:
    copy = MemoryStorage("copy")
    for live in plan.files:
        path = f"{plan.root}/{live.file.path}"
        copy.put_if_absent(path, storage.get(path))
    return copy
