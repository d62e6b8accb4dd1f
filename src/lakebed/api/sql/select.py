"""Queries: the engine runs the user's text over relations bound at one set of versions."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pyarrow as pa

from lakebed.api.engine import open_engine
from lakebed.api.sql.bound import Bound
from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.counting import answered, counted, extremes_in
from lakebed.api.sql.engine import engine_for
from lakebed.api.sql.relations import Relations, bind, refuse_doubts
from lakebed.api.sql.result import Result
from lakebed.api.sql.wording import readable_name
from lakebed.core.lease import LeaseKeeper
from lakebed.core.plan import Plan
from lakebed.rowops.literal import literal
from lakebed.sql.aggregates import aggregates_of
from lakebed.sql.inline import inlined
from lakebed.sql.query import Select
from lakebed.sql.statements import Explain


def run_select(context: Context, select: Select, values: Values) -> Result:
    found = Relations(context, values)
    wanted = aggregates_of(select) or ()
    known = found.known(select.tables[0], extremes_in(wanted)) if wanted else None
    if known is not None:
        return Result(answered(wanted, known))
    relations = found.bound(select.tables)
    answer = counted(wanted, relations) if wanted else None
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
    wording = context.wording
    stack = ExitStack()
    try:
        sql, given = _run_as(select, values)
        engine = stack.enter_context(engine_for(context.parts, sql, relations))
        with wording.of_query(select, relations):
            bind(engine, relations)
            with wording.of_statement(select.span):
                refuse_doubts(engine, relations)
            reader = engine.batches(sql, given)
        leases = [stack.enter_context(each) for each in _leases(context, relations)]
    except BaseException:
        stack.close()
        raise
    tables = [relation.reference for relation in relations]
    names = [readable_name(name, tables) for name in reader.schema.names]
    schema = pa.schema([f.with_name(n) for f, n in zip(reader.schema, names, strict=True)])

    def kept() -> Iterator[pa.RecordBatch]:
        """While rows are read, the versions they come from are not cleaned."""
        with wording.of_query(select, relations):
            for batch in reader:
                for lease in leases:
                    lease.touch()
                yield batch.rename_columns(names)

    return pa.RecordBatchReader.from_batches(schema, kept()), stack.close


def _run_as(select: Select, values: Values) -> tuple[str, Values]:
    """The text for the engine, and the parameters left in it: a pivot can have none."""
    given = {name: values[name] for name in select.parameters}
    if given and "pivot" in select.sql.casefold():
        return inlined(select, values, literal), {}
    return select.sql, given


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
    verb = "EXPLAIN ANALYZE" if statement.analyze else "EXPLAIN"
    tables = [relation.reference for relation in relations]
    wording = context.wording.of_statement(select.span, tables)
    with wording, open_engine(context.parts) as engine:
        bind(engine, relations)
        sql, given = _run_as(select, values)
        for row in engine.batches(f"{verb} {sql}", given).read_all().to_pylist():
            told = readable_name(str(row["explain_value"]), tables)
            lines += told.splitlines()
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
