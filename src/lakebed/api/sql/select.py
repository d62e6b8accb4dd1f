"""Queries: the engine runs the user's text over relations bound at one set of versions."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pyarrow as pa

from lakebed.api.engine import open_engine
from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.counting import counted
from lakebed.api.sql.relations import Bound, Relations, bind
from lakebed.api.sql.result import Result
from lakebed.core.lease import LeaseKeeper
from lakebed.core.plan import Plan
from lakebed.sql.query import Select
from lakebed.sql.statements import Explain


def run_select(context: Context, select: Select, values: Values) -> Result:
    relations = Relations(context, values).bound(select.tables)
    answer = counted(select, relations)
    if answer is not None:
        return Result(answer)
    reader, close = stream(context, select, values, relations)
    return Result(reader, close=close)


def rows_of(
    context: Context, select: Select, values: Values
) -> tuple[pa.RecordBatchReader, ExitStack]:
    """The rows of a query for another statement; leaving the stack gives the engine back."""
    relations = Relations(context, values).bound(select.tables)
    stack = ExitStack()
    reader, close = stream(context, select, values, relations)
    stack.callback(close)
    return reader, stack


def stream(
    context: Context, select: Select, values: Values, relations: Sequence[Bound]
) -> tuple[pa.RecordBatchReader, Callable[[], None]]:
    stack = ExitStack()
    try:
        engine = stack.enter_context(open_engine(context.parts))
        bind(engine, relations)
        given = {name: values[name] for name in select.parameters}
        reader = engine.batches(select.sql, given)
        leases = [stack.enter_context(each) for each in _leases(context, relations)]
    except BaseException:
        stack.close()
        raise
    return pa.RecordBatchReader.from_batches(reader.schema, _kept(reader, leases)), stack.close


def _kept(reader: pa.RecordBatchReader, leases: Sequence[LeaseKeeper]) -> Iterator[pa.RecordBatch]:
    """While rows are read, the versions they come from are not cleaned."""
    for batch in reader:
        for lease in leases:
            lease.touch()
        yield batch


def _leases(context: Context, relations: Sequence[Bound]) -> list[LeaseKeeper]:
    return [
        context.parts.leases.reading(r.table_id, r.rows.version)
        for r in relations
        if isinstance(r.rows, Plan) and r.table_id is not None
    ]


def run_explain(context: Context, statement: Explain, values: Values) -> Result:
    """What is read of each table, then the engine's own plan."""
    select = statement.select
    relations = Relations(context, values).bound(select.tables)
    lines = [line for relation in relations for line in _told(relation)]
    with open_engine(context.parts) as engine:
        bind(engine, relations)
        verb = "EXPLAIN ANALYZE" if statement.analyze else "EXPLAIN"
        given = {name: values[name] for name in select.parameters}
        for row in engine.batches(f"{verb} {select.sql}", given).read_all().to_pylist():
            lines += str(row["explain_value"]).splitlines()
    return Result(pa.table({"plan": pa.array(lines, pa.string())}))


def _told(relation: Bound) -> list[str]:
    if not isinstance(relation.rows, Plan):
        kind = "view" if isinstance(relation.rows, str) else "metadata"
        return [f"{relation.name} ({kind})"]
    plan = relation.rows
    size = sum(f.file.size_bytes for f in plan.files)
    gone = sum(len(p) for p in plan.deleted.values())
    kept, pruned = len(plan.files), plan.pruned
    told = [f"{relation.name} version {plan.version}: {kept} of {kept + pruned} files kept"]
    told += [f"  {pruned} pruned, {size:,} bytes to read"]
    told += [f"  {len(plan.deleted)} files with {gone:,} deleted rows"] if gone else []
    return told
