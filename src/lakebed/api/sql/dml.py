"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE: each is one commit, or part of the transaction."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

import pyarrow as pa

from lakebed.api.merge import Clauses, MergeRows, to_aliases, to_on
from lakebed.api.rowops import open_bench
from lakebed.api.sql.assigning import default_text, default_texts, fitted_rows, known_field
from lakebed.api.sql.constants import constant
from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.relations import Relations, bind
from lakebed.api.sql.result import Result
from lakebed.api.sql.select import rows_of
from lakebed.api.txtable import TransactionTable
from lakebed.model.binding import bind as bind_predicate
from lakebed.model.counts import RowCounts
from lakebed.model.errors import InvalidExpression, InvalidInput, SchemaMismatch
from lakebed.model.expressions import columns
from lakebed.model.history import Commit
from lakebed.model.quoting import quoted
from lakebed.model.schema import Schema
from lakebed.rowops.clause import Clause, When
from lakebed.rowops.condition import Condition
from lakebed.rowops.literal import literal
from lakebed.rowops.workbench import Prepare, Workbench, unused
from lakebed.sql.defaults import with_defaults
from lakebed.sql.inline import inlined
from lakebed.sql.predicate import parse_predicate
from lakebed.sql.query import Expression, Reference, Select
from lakebed.sql.sieve import parse_sieve
from lakebed.sql.statements import (
    Assignment,
    Delete,
    Insert,
    Merge,
    MergeClause,
    Target,
    Truncate,
    Update,
)
from lakebed.sql.where import where_of

_WHEN = {
    "matched": When.MATCHED,
    "not_matched": When.NOT_MATCHED,
    "not_matched_by_source": When.BY_SOURCE,
}


def run_insert(context: Context, statement: Insert, values: Values) -> Result:
    fixed = {
        p.column: constant(context.parts, p.value, values)
        for p in statement.partition
        if p.value is not None
    }
    room = _overwriting(statement, fixed, values)
    source = statement.source
    if statement.has_defaults:
        schema = _schema(context, statement.target)
        source = with_defaults(source, default_texts(schema, statement, fixed))
    rows, stack = rows_of(context, source, values)
    with stack, context.wording.of_statement(statement.span):
        if context.transaction is not None:
            table = context.staged(statement.target)
            fitted = fitted_rows(rows, table.schema, statement, fixed)
            if statement.overwrite:
                table.overwrite(fitted, **room)
            else:
                table.append(fitted)
            return told("insert", None)
        stored, options = context.table(statement.target)
        fitted = fitted_rows(rows, stored.schema, statement, fixed)
        if statement.overwrite:
            commit = stored.overwrite(fitted, **room, **options)
        else:
            commit = stored.append(fitted, **options)
    return committed(commit)


def _schema(context: Context, target: Target) -> Schema:
    if context.transaction is not None:
        return context.staged(target).schema
    return context.table(target)[0].schema


class _Room(TypedDict, total=False):
    """Which rows an overwrite replaces, as `overwrite` takes it."""

    where: str
    partitions: bool


def _overwriting(statement: Insert, fixed: Mapping[str, object], values: Values) -> _Room:
    """Which rows make room: named partitions, those of a condition, or all."""
    if statement.replace_where is not None:
        return {"where": _text(statement.replace_where, values)}
    if len(fixed) < len(statement.partition):
        return {"partitions": True}
    if not fixed:
        return {}
    told = [
        f"{quoted(name)} {'IS NULL' if value is None else '= ' + literal(value)}"
        for name, value in fixed.items()
    ]
    return {"where": " AND ".join(told)}


def run_delete(context: Context, statement: Delete, values: Values) -> Result:
    tables = _tables(statement.where, statement.source)
    where = "TRUE" if statement.where is None else _text(statement.where, values)
    if statement.source is not None:
        where = f"EXISTS (SELECT 1 FROM {_text(statement.source, values)} WHERE {where})"

    def stage(table: TransactionTable) -> RowCounts:
        prepare = _prepare(context, values, tables, table)
        condition = _condition(where, statement.target, table.schema, values)
        return table.rows(prepare, statement.target.alias).delete(condition)

    return _change(context, statement, "delete", stage, (where, tables, values), tables=tables)


def run_update(context: Context, statement: Update, values: Values) -> Result:
    if statement.source is not None:
        return _update_from(context, statement, statement.source, values)
    tables = _tables(statement.where, *(a.value for a in statement.assignments))
    where = "TRUE" if statement.where is None else _text(statement.where, values)

    def stage(table: TransactionTable) -> RowCounts:
        assigned = _assigned(statement.assignments, table.schema, values)
        condition = _condition(where, statement.target, table.schema, values)
        prepare = _prepare(context, values, tables, table)
        return table.rows(prepare, statement.target.alias).update(assigned, condition)

    request = (where, [(a.path, a.value and a.value.sql) for a in statement.assignments], values)
    return _change(context, statement, "update", stage, request, tables=tables)


def _update_from(context: Context, statement: Update, source: Expression, values: Values) -> Result:
    """A MERGE with one clause: a row that several rows of the source match is an error."""
    alias, select = _joined(context, statement, source, values)
    on = statement.where or Expression("TRUE", statement.span)
    clause = MergeClause("matched", "update", assignments=statement.assignments)
    merge = Merge(statement.target, statement.span, select, alias, on, (clause,))
    return run_merge(context, merge, values)


def _joined(
    context: Context, statement: Update, source: Expression, values: Values
) -> tuple[str, Select]:
    """The relations of FROM as one; of several, each is a column that has theirs inside.

    Columns that only one of them has may be named without it.
    """
    aliases = statement.source_aliases
    if len(aliases) == 1:
        (alias,) = aliases
        return alias, _select([f"{quoted(alias)}.*"], source, statement.source_where)
    packed = [f"struct_pack(*COLUMNS({name}.*)) AS {name}" for name in map(quoted, aliases)]
    alone = _only_in_one(context, aliases, source, values)
    listed = [*packed, *(f"{quoted(a)}.{quoted(c)} AS {quoted(c)}" for a, c in alone)]
    return unused("_lakebed_from", aliases), _select(listed, source, statement.source_where)


def _only_in_one(
    context: Context, aliases: Sequence[str], source: Expression, values: Values
) -> list[tuple[str, str]]:
    """(relation, column) of the columns whose names no other relation has, or is."""
    found = []
    for alias in aliases:
        rows, stack = rows_of(context, _select([f"{quoted(alias)}.*"], source, ()), values)
        with stack:
            found += [(alias, name) for name in rows.schema.names]
    names = Counter(name.casefold() for _, name in found)
    names.update(alias.casefold() for alias in aliases)
    return [each for each in found if names[each[1].casefold()] == 1]


def _select(listed: Sequence[str], source: Expression, where: Sequence[Expression]) -> Select:
    filters = " AND ".join(f"({each.sql})" for each in where)
    sql = f"SELECT {', '.join(listed)} FROM {source.sql}" + (f" WHERE {filters}" if filters else "")
    parts = (source, *where)
    parameters = tuple(dict.fromkeys(name for part in parts for name in part.parameters))
    return Select(sql, source.span, _tables(*parts), parameters)


def run_truncate(context: Context, statement: Truncate, values: Values) -> Result:
    return _change(context, statement, "truncate", lambda table: table.truncate(), (values,))


def run_merge(context: Context, statement: Merge, values: Values) -> Result:
    tables = _tables(statement.on, *_expressions(statement.clauses))
    aliases = to_aliases(statement.target.alias, statement.source_alias)
    on = _text(statement.on, values)
    rows, stack = rows_of(context, statement.source, values)
    merging = list[tuple[Workbench, MergeRows]]()

    def stage(table: TransactionTable) -> RowCounts:
        """The source is read once, however often the merge is tried; subqueries look again."""
        if not merging:
            bench = stack.enter_context(open_bench(context.parts, roots=(table.location,)))
            merging.append((bench, MergeRows(bench, rows)))
        bench, merge_rows = merging[0]
        if tables:
            bench.see(_prepare(context, values, tables, table))
        clauses = _clauses(statement.clauses, table.schema, values)
        return merge_rows.merge(table.rows(), to_on(on), clauses, aliases)

    request = (on, aliases, statement.clauses, tables, values)
    with stack:
        return _change(context, statement, "merge", stage, request, tables=tables)


def _clauses(given: Sequence[MergeClause], schema: Schema, values: Values) -> Clauses:
    """Clauses that do nothing keep rows from those behind them, as their order says."""
    made: list[Clause] = []
    passed: dict[str, list[str]] = {}
    for clause in given:
        own = None if clause.condition is None else _text(clause.condition, values)
        if clause.action == "nothing":
            passed.setdefault(clause.kind, []).append(f"({own or 'TRUE'}) IS NOT TRUE")
            continue
        said = [*passed.get(clause.kind, ()), *([f"({own})"] if own is not None else [])]
        action = clause.action.removesuffix("_all")
        assigned = None
        if not clause.action.endswith("_all") and action != "delete":
            assigned = _clause_values(clause, schema, values)
        condition = " AND ".join(said) if said else None
        made.append(Clause(_WHEN[clause.kind], action, condition, assigned))
    return tuple(made)


def _clause_values(clause: MergeClause, schema: Schema, values: Values) -> Mapping[str, str]:
    if clause.action == "update":
        return _assigned(clause.assignments, schema, values)
    names = clause.columns or tuple((f.name,) for f in schema.fields)
    if len(names) != len(clause.values):
        raise SchemaMismatch(
            f"INSERT has {len(clause.values)} values for {len(names)} columns",
            hint="give one value for each column",
        )
    _refuse_twice(schema, names)
    given = zip(names, clause.values, strict=True)
    return {".".join(path): _text(value, values) for path, value in given if value is not None}


def _assigned(given: Sequence[Assignment], schema: Schema, values: Values) -> dict[str, str]:
    _refuse_twice(schema, [assignment.path for assignment in given])
    return {".".join(a.path): _assigned_text(schema, a, values) for a in given}


def _assigned_text(schema: Schema, given: Assignment, values: Values) -> str:
    if given.value is None:
        return default_text(known_field(schema, given.path))
    return _text(given.value, values)


def _refuse_twice(schema: Schema, paths: Sequence[tuple[str, ...]]) -> None:
    """Before paths become the keys of a mapping, which would keep the last of them."""
    seen = set()
    for path in paths:
        field = known_field(schema, path)
        if field.id in seen:
            raise InvalidInput(
                f"column {'.'.join(path)!r} is set twice",
                hint="set each column once",
                column=field.name,
            )
        seen.add(field.id)


def _condition(text: str, target: Target, schema: Schema, values: Values) -> Condition:
    """By our own means when they suffice; names with the table's alias are for the engine."""
    try:
        predicate = parse_predicate(text)
        alias = target.alias.casefold()
        if not any(len(c.path) > 1 and c.path[0].casefold() == alias for c in columns(predicate)):
            bind_predicate(predicate, schema)
            return Condition(text, predicate, is_exact=True)
    except InvalidExpression:
        pass
    known = where_of(target.where, schema, values)
    return Condition(text, known, is_exact=False, is_bound=True, sieve=parse_sieve(text))


def _expressions(clauses: Sequence[MergeClause]) -> list[Expression | None]:
    found: list[Expression | None] = []
    for clause in clauses:
        found += [clause.condition, *clause.values, *(a.value for a in clause.assignments)]
    return found


def _tables(*expressions: Expression | None) -> tuple[Reference, ...]:
    """Each once: parts of a row that one subquery gives look at the same tables."""
    listed = [table for e in expressions if e is not None for table in e.tables]
    return tuple({table.placeholder: table for table in listed}.values())


def _text(expression: Expression, values: Values) -> str:
    return inlined(expression, values, literal)


def _prepare(
    context: Context, values: Values, tables: Sequence[Reference], own: TransactionTable
) -> Prepare:
    """What makes the tables of subqueries known to the engine, the written one as it is seen."""
    relations = Relations(context, values, {own.name: own}).bound(tables)
    return lambda engine: bind(engine, relations)


def _change(
    context: Context,
    statement: Delete | Update | Truncate | Merge,
    operation: str,
    stage: Callable[[TransactionTable], RowCounts],
    request: tuple[object, ...],
    *,
    tables: Sequence[Reference] = (),
) -> Result:
    with context.wording.of_statement(statement.span, tables):
        if context.transaction is not None:
            return told(operation, stage(context.staged(statement.target)))
        table, options = context.table(statement.target)
        return committed(table.change(operation, options, stage, request))


def told(operation: str, counts: RowCounts | None) -> Result:
    """Inside a transaction: what will be when it commits."""
    shown = {} if counts is None else counts.to_summary()
    return _summary(shown, f"{operation} is part of the transaction", None)


def committed(commit: Commit) -> Result:
    shown = {k: v for k, v in commit.summary.items() if isinstance(v, int)}
    what = f"{commit.table}: {commit.operation}, version {commit.version}"
    return _summary({"version": commit.version, **shown}, what, commit)


def committed_all(commits: Mapping[str, Commit]) -> Result:
    """One row for each table of a transaction."""
    columns = {
        "table": pa.array(list(commits), pa.string()),
        "version": pa.array([c.version for c in commits.values()], pa.int64()),
    }
    told_of = ", ".join(f"{name} version {c.version}" for name, c in commits.items())
    return Result(pa.table(columns), message=f"committed: {told_of or 'nothing'}")


def _summary(shown: Mapping[str, int], message: str, commit: Commit | None) -> Result:
    columns = {name: pa.array([value], pa.int64()) for name, value in shown.items()}
    return Result(pa.table(columns), commit=commit, message=message)
