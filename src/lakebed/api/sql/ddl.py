"""CREATE, DROP and COMMENT for tables, namespaces and views."""

from collections import Counter
from contextlib import ExitStack

import pyarrow as pa

from lakebed.api.creating import TableOptions
from lakebed.api.defaults import to_default
from lakebed.api.sql.columns import columns_of
from lakebed.api.sql.constants import default_of
from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.relations import Relations
from lakebed.api.sql.replacing import replace_table
from lakebed.api.sql.result import Result
from lakebed.api.sql.select import rows_of
from lakebed.api.transaction import Transaction
from lakebed.model.errors import (
    InvalidInput,
    NamespaceExists,
    NamespaceNotFound,
    SqlError,
    SqlUnsupported,
    TableExists,
)
from lakebed.model.ids import FieldId
from lakebed.model.names import TableName
from lakebed.model.types import Field
from lakebed.model.views import View
from lakebed.sql.inline import condition_text
from lakebed.sql.statements import (
    ColumnDefinition,
    CommentOn,
    CreateNamespace,
    CreateTable,
    CreateView,
    DropNamespace,
    DropTable,
    DropView,
)

_FORMATS = {"DELTA": ["delta"], "ICEBERG": ["iceberg"]}


def done(message: str) -> Result:
    return Result(pa.table({}), message=message)


def run_create_table(context: Context, statement: CreateTable, values: Values) -> Result:
    name = context.full(statement.name)
    need_namespace(context, name)
    exists = _exists(context, name)
    if exists and statement.if_not_exists:
        return done(f"table {name} exists already")
    if exists and not statement.or_replace:
        raise TableExists(
            f"table {name} exists already",
            hint="use CREATE TABLE IF NOT EXISTS, or CREATE OR REPLACE TABLE",
            table=str(name),
        )
    with ExitStack() as stack:
        rows = None
        if statement.select is not None:
            rows, opened = rows_of(context, statement.select, values)
            stack.enter_context(opened)
        transaction = context.transaction
        if transaction is None:
            transaction = stack.enter_context(context.lake.transaction(**context.options))
        fields = _fields(context, statement, values, rows)
        options = _options(statement)
        if exists:
            replace_table(transaction.table(str(name)), fields, options, rows)
        else:
            table = transaction.create_table(str(name), fields, **options)
            if rows is not None:
                table.append(rows)
    return done(f"table {name} {'replaced' if exists else 'created'}")


def _exists(context: Context, name: TableName) -> bool:
    transaction: Transaction | None = context.transaction
    if transaction is not None and transaction.has(str(name)):
        return True
    return context.lake.has_table(str(name))


def need_namespace(context: Context, name: TableName) -> None:
    """SQL makes no namespace in passing: a misspelt one would be made too."""
    namespace = ".".join(name.namespace)
    if namespace not in context.lake.namespaces():
        raise NamespaceNotFound(
            f"there is no namespace {namespace}",
            hint=f"create it first: CREATE SCHEMA {namespace}",
            namespace=namespace,
        )


def _fields(
    context: Context,
    statement: CreateTable,
    values: Values,
    rows: pa.RecordBatchReader | None,
) -> tuple[Field, ...]:
    if statement.like is not None:
        return context.lake.table(context.text(statement.like)).schema.fields
    if statement.columns:
        return tuple(_field(context, column, values) for column in statement.columns)
    assert rows is not None
    return columns_of(rows.schema)


def _field(context: Context, column: ColumnDefinition, values: Values) -> Field:
    if column.generated is not None:
        raise SqlUnsupported(
            f"column {column.name} is generated",
            hint="Iceberg has no generated columns: compute the value when writing",
            line=column.span.line,
        )
    default = None
    if column.default is not None:
        value = default_of(context.parts, column.default, column.type, values)
        default = to_default(column.name, column.type, value)
    return Field(
        FieldId(0),
        column.name,
        column.type,
        column.required,
        column.comment,
        write_default=default,
    )


def _constraints(statement: CreateTable) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, check in enumerate(statement.checks, 1):
        name = check.name or f"check_{number}"
        if name.casefold() in map(str.casefold, found):
            raise SqlError(
                f"two constraints are called {name!r}",
                hint="give each a name of its own: CONSTRAINT name CHECK (…)",
            )
        found[name] = condition_text(check.condition)
    return found


def _options(statement: CreateTable) -> TableOptions:
    options = TableOptions(
        partition_by=statement.partition_by,
        sort_by=statement.sort_by,
        primary_key=statement.primary_key,
        properties=dict(statement.properties),
        comment=statement.comment,
        constraints=_constraints(statement),
    )
    formats = _FORMATS.get((statement.provider or "").upper())
    if formats is not None:
        options["formats"] = formats
    return options


def run_drop_table(context: Context, statement: DropTable) -> Result:
    context.outside("DROP TABLE")
    name = context.text(statement.name)
    if statement.if_exists and not context.lake.has_table(name):
        return done(f"there is no table {name}")
    context.refuse_view(statement.name, "DROP VIEW drops it")
    context.lake.drop_table(name, purge=statement.purge)
    return done(f"table {name} dropped")


def run_create_namespace(context: Context, statement: CreateNamespace) -> Result:
    context.outside("CREATE SCHEMA")
    name = ".".join(statement.namespace)
    if name in context.lake.namespaces():
        if statement.if_not_exists:
            return done(f"namespace {name} exists already")
        raise NamespaceExists(
            f"namespace {name} exists already",
            hint="use CREATE SCHEMA IF NOT EXISTS",
            namespace=name,
        )
    properties = dict(statement.properties)
    context.lake.create_namespace(name, properties, exist_ok=statement.if_not_exists)
    return done(f"namespace {name} created")


def run_drop_namespace(context: Context, statement: DropNamespace) -> Result:
    context.outside("DROP SCHEMA")
    name = ".".join(statement.namespace)
    if statement.if_exists and name not in context.lake.namespaces():
        return done(f"there is no namespace {name}")
    if statement.cascade:
        _empty(context, name)
    context.lake.drop_namespace(name)
    return done(f"namespace {name} dropped")


def _empty(context: Context, name: str) -> None:
    dropped = sorted({table for table, _ in context.lake.dropped_tables()})
    inside = [n for n in context.lake.namespaces() if n == name or n.startswith(f"{name}.")]
    for namespace in sorted(inside, reverse=True):  # what is inside comes before what is around
        for view in context.lake.views(namespace):
            context.lake.drop_view(str(view.name))
        for table in context.lake.tables(namespace):
            context.lake.drop_table(table, purge=True)
        for table in dropped:
            if table.rpartition(".")[0] == namespace:
                context.lake.purge_table(table)
        if namespace != name:
            context.lake.drop_namespace(namespace)


def run_create_view(context: Context, statement: CreateView) -> Result:
    """The query is kept as text; the names in it are looked up each time the view is read."""
    context.outside("CREATE VIEW")
    name = context.full(statement.name)
    need_namespace(context, name)
    if statement.if_not_exists and context.parts.views.find(name) is not None:
        return done(f"view {name} exists already")
    if statement.select.parameters:
        raise SqlUnsupported(
            "a view cannot have parameters", hint="filter it where it is read instead"
        )
    view = View(
        name,
        statement.select.text,
        context.namespace,
        statement.columns,
        statement.comment,
        dict(statement.properties),
    )
    _check_view(context, view, statement)
    context.lake.create_view(view, replace=statement.or_replace)
    return done(f"view {name} created")


def _check_view(context: Context, view: View, statement: CreateView) -> None:
    """What cannot run, or would read itself, is no view."""
    select = statement.select
    read = Relations(context, {}).bound(select.tables)
    if any(isinstance(each.rows, str) and each.reference.name == view.name for each in read):
        raise InvalidInput(
            f"view {view.name} would read itself", hint="read the tables, or other views"
        )
    rows, opened = rows_of(context, select, {})
    opened.close()
    names = [name for name, _ in view.columns] or rows.schema.names
    if len(names) != len(rows.schema.names):
        raise InvalidInput(
            f"view {view.name} names {len(names)} columns, its query has"
            f" {len(rows.schema.names)}: {', '.join(rows.schema.names)}",
            hint="name all of them, or none",
        )
    twice = [n for n, count in Counter(n.casefold() for n in names).items() if count > 1]
    if twice:
        raise InvalidInput(
            f"view {view.name} has two columns {twice[0]!r}", hint="rename one: SELECT a AS b"
        )


def run_drop_view(context: Context, statement: DropView) -> Result:
    context.outside("DROP VIEW")
    name = context.full(statement.name)
    if statement.if_exists and context.parts.views.find(name) is None:
        return done(f"there is no view {name}")
    context.lake.drop_view(str(name))
    return done(f"view {name} dropped")


def run_comment(context: Context, statement: CommentOn) -> Result:
    context.outside("COMMENT ON")
    name = ".".join(statement.name)
    match statement.kind:
        case "namespace":
            changed = {} if statement.comment is None else {"comment": statement.comment}
            removed = ["comment"] if statement.comment is None else []
            context.lake.set_namespace_properties(name, changed, removed=removed)
        case "column":
            table = context.lake.table(context.text(_table_name(statement.name)))
            table.alter(**context.options).set_comment(statement.path, statement.comment).commit()
        case "table":
            table = context.lake.table(context.text(_table_name(statement.name)))
            table.alter(**context.options).set_table_comment(statement.comment).commit()
        case "view":
            raise SqlUnsupported(
                "COMMENT ON VIEW is not supported", hint="CREATE OR REPLACE VIEW … COMMENT '…'"
            )
    return done(f"comment on {statement.kind} {name}")


def _table_name(parts: tuple[str, ...]) -> TableName:
    return TableName(parts[:-1], parts[-1])
