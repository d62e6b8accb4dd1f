"""ALTER TABLE: changes of columns and layout are one commit; names and refs act at once."""

import zlib

from lakebed.api.alter import Alter
from lakebed.api.scan import to_time_ms
from lakebed.api.sql.constants import constant, default_of
from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.ddl import done
from lakebed.api.sql.result import Result
from lakebed.api.table import Table
from lakebed.api.txtable import TransactionTable
from lakebed.model.errors import SqlUnsupported
from lakebed.model.names import TableName
from lakebed.model.schema import Schema
from lakebed.sql import alterations as act
from lakebed.sql.inline import condition_text
from lakebed.sql.query import Parameter
from lakebed.sql.statements import AlterTable

_AT_ONCE = act.RenameTable | act.CreateRef | act.DropRef


def run_alter(context: Context, statement: AlterTable, values: Values) -> Result:
    name = context.text(statement.name)
    if statement.if_exists and not context.lake.has_table(name):
        return done(f"there is no table {name}")
    at_once = [a for a in statement.actions if isinstance(a, _AT_ONCE)]
    if at_once:
        if len(statement.actions) > 1:
            raise SqlUnsupported(
                "RENAME TO and changes of branches and tags stand alone",
                hint="write them as statements of their own",
            )
        context.outside("this ALTER TABLE")
        return _act(context, name, at_once[0], values)
    if context.transaction is not None:
        _alter(context, context.transaction.table(name), statement, values)
        return done(f"table {name} will be altered")
    with context.lake.transaction(**context.options) as transaction:
        _alter(context, transaction.table(name), statement, values)
    return done(f"table {name} altered")


def _act(context: Context, name: str, action: _AT_ONCE, values: Values) -> Result:
    table = context.lake.table(name)
    match action:
        case act.RenameTable(new):
            full = new if new.namespace else TableName(tuple(name.split(".")[:-1]), new.name)
            context.lake.rename_table(name, str(full))
            return done(f"table {name} is {full} now")
        case act.CreateRef():
            _create_ref(context, table, action, values)
            return done(f"{action.kind} {action.name} of {name} created")
        case act.DropRef(kind, ref):
            if not (action.if_exists and ref not in {r.name for r in table.refs()}):
                table.drop_branch(ref) if kind == "branch" else table.drop_tag(ref)
            return done(f"{kind} {ref} of {name} dropped")


def _create_ref(context: Context, table: Table, action: act.CreateRef, values: Values) -> None:
    exists = action.name in {r.name for r in table.refs()}
    if exists and action.if_not_exists:
        return
    if exists and action.or_replace:
        table.drop_branch(action.name) if action.kind == "branch" else table.drop_tag(action.name)
    wanted = (
        values[action.version.name] if isinstance(action.version, Parameter) else action.version
    )
    time_ms = None
    if action.timestamp is not None:
        time_ms = to_time_ms(str(constant(context.parts, action.timestamp, values)))
    is_number = isinstance(wanted, int) or (isinstance(wanted, str) and wanted.isdigit())
    version = int(str(wanted)) if is_number else None
    ref = None if is_number or wanted is None else str(wanted)
    if action.kind == "tag":
        table.create_tag(
            action.name, version=version, timestamp=time_ms, ref=ref, max_age=action.retain_ms
        )
    else:
        table.create_branch(
            action.name,
            version=version,
            timestamp=time_ms,
            ref=ref,
            max_age=action.retain_ms,
            min_snapshots=action.keep_snapshots,
            max_snapshot_age=action.keep_snapshots_ms,
        )


def _alter(
    context: Context, table: TransactionTable, statement: AlterTable, values: Values
) -> None:
    alter = table.alter()
    for action in statement.actions:
        match action:
            case act.SetProperties(properties):
                table.set_properties(dict(properties))
            case act.UnsetProperties():
                _unset(table, action)
            case act.SetTableComment(comment):
                alter.set_table_comment(comment)
            case _:
                _column_step(context, alter, table.schema, action, values)
    if alter.has_steps:
        alter.commit()


def _unset(table: TransactionTable, action: act.UnsetProperties) -> None:
    known = [n for n in action.names if not action.if_exists or n in table.properties]
    if known:
        table.set_properties(removed=known)


def _column_step(
    context: Context, alter: Alter[None], schema: Schema, action: act.Alteration, values: Values
) -> None:
    match action:
        case act.AddColumn():
            _add_column(context, alter, schema, action, values)
        case act.DropColumn(path, if_exists):
            if not if_exists or schema.find(path) is not None:
                alter.drop_column(path)
        case act.RenameColumn(path, name):
            alter.rename_column(path, name)
        case act.SetColumnType(path, kind):
            alter.widen_column(path, kind)
        case act.SetColumnComment(path, comment):
            alter.set_comment(path, comment)
        case act.MoveColumn(path, position):
            alter.move_column(path, first=position.after is None, after=position.after)
        case act.SetColumnDefault(path, None):
            alter.drop_default(path)
        case act.SetColumnDefault(path, default) if default is not None:
            field = schema.find(path)
            wanted = None if field is None else field.type
            alter.set_default(path, default_of(context.parts, default, wanted, values))
        case act.SetColumnRequired(path, required):
            _refuse_required(path, required=required)
            alter.make_optional(path)
        case _:
            _layout_step(alter, action)


def _refuse_required(path: act.Path, *, required: bool) -> None:
    if required:
        raise SqlUnsupported(
            "SET NOT NULL is not supported: old files may hold NULL",
            hint=f"add a constraint: CHECK ({'.'.join(path)} IS NOT NULL)",
        )


def _add_column(
    context: Context, alter: Alter[None], schema: Schema, action: act.AddColumn, values: Values
) -> None:
    if action.if_not_exists and schema.find(action.path) is not None:
        return
    if action.required:
        raise SqlUnsupported(
            f"column {'.'.join(action.path)} cannot be NOT NULL: rows there are have no value",
            hint="leave NOT NULL out",
        )
    default = None
    if action.default is not None:
        default = default_of(context.parts, action.default, action.type, values)
    position = action.position
    alter.add_column(
        action.path,
        action.type,
        doc=action.comment,
        default=default,
        first=position is not None and position.after is None,
        after=position.after if position else None,
    )


def _layout_step(alter: Alter[None], action: act.Alteration) -> None:
    match action:
        case act.AddCheck(name, condition):
            text = condition_text(condition)
            alter.add_constraint(name or f"check_{zlib.crc32(text.encode()):08x}", text)
        case act.DropConstraint(name, if_exists):
            alter.drop_constraint(name, if_exists=if_exists)
        case act.SetPrimaryKey(columns):
            alter.set_primary_key(list(columns))
        case act.AddPartitionField(term):
            alter.add_partition_field(term)
        case act.DropPartitionField(term):
            alter.drop_partition_field(term)
        case act.ReplacePartitionField(old, term):
            alter.drop_partition_field(old).add_partition_field(term)
        case act.SetPartitioning(terms):
            alter.set_partitioning(list(terms))
        case act.SetSortOrder(terms):
            alter.set_sort_order(list(terms))
        case _:
            raise AssertionError(action)
