"""`lakebed table`: create, list, show, alter, rename, drop, dropped, purge."""

import sys
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.call import Call, Group, pass_call
from lakebed.cli.describe import commit_line, commit_record, table_record
from lakebed.cli.options import (
    Pair,
    split_names,
    split_terms,
    take_write_options,
    write_options,
)
from lakebed.cli.output import answer, show_list, show_record
from lakebed.model.errors import InvalidSchema, TableNotFound

if TYPE_CHECKING:
    from lakebed.api.alter import Alter

_FORMATS = "delta, iceberg or delta,iceberg"


@click.group(cls=Group)
def table() -> None:
    """Tables: make, look at, change, drop."""


@table.command("create")
@click.argument("name")
@click.argument("schema", required=False)
@click.option("--like", metavar="FILE", help="Take the columns of a data file.")
@click.option("--partition-by", metavar="TERM", multiple=True, help="Such as `day(ts)`.")
@click.option("--sort-by", metavar="TERM", multiple=True, help="Such as `amount desc`.")
@click.option("--primary-key", metavar="COLUMN", multiple=True, help="Columns that name a row.")
@click.option("--property", "properties", type=Pair(), multiple=True, help="A table property.")
@click.option("--formats", metavar="FORMATS", help=f"What to publish: {_FORMATS}.")
@click.option("--comment", metavar="TEXT", help="What the table holds.")
@write_options
@pass_call
def create_table(
    call: Call, /, name: str, schema: str | None, *, like: str | None, **given: Any
) -> None:
    """Make a table: lakebed table create sales.orders "id long not null, ts timestamp"."""
    if (schema is None) == (like is None):
        raise click.UsageError("give a SCHEMA or --like FILE")
    with call.open() as lake:
        made = lake.create_table(
            name,
            schema if like is None else _schema_of(like),
            partition_by=split_terms(given["partition_by"]),
            sort_by=split_terms(given["sort_by"]),
            primary_key=split_names(given["primary_key"]),
            properties=dict(given["properties"]),
            formats=given["formats"],
            comment=given["comment"],
            **take_write_options(given),
        )
        answer(table_record(made), f"made {made.name} in {made.location}", as_json=call.json)


@table.command("list")
@click.argument("namespace", required=False)
@pass_call
def list_tables(call: Call, namespace: str | None) -> None:
    """List all tables, or those of a namespace."""
    records = []
    with call.open() as lake:
        for name in lake.tables(namespace):
            try:
                found = lake.table(name)
                records.append({"name": name, "version": found.version, "rows": found.row_count})
            except TableNotFound:  # dropped since it was listed
                continue
    show_list(records, as_json=call.json)


@table.command("show")
@click.argument("name")
@pass_call
def show_table(call: Call, name: str) -> None:
    """Show a table: columns, partitioning, properties, where it is."""
    with call.open() as lake:
        record = table_record(lake.table(name))
    if not call.json:
        record["columns"] = [_column_line(column) for column in record["columns"]]
        record["properties"] = [f"{k}={v}" for k, v in record["properties"].items()]
    show_record(record, as_json=call.json)


@table.command("alter")
@click.argument("name")
@click.option(
    "--add-column",
    "columns",
    metavar="COLUMN",
    multiple=True,
    help="A new column at the end, such as \"note string comment 'free text'\".",
)
@click.option(
    "--rename-column", "renamed", type=Pair(), multiple=True, help="A column's new name: OLD=NEW."
)
@click.option(
    "--drop-column", "dropped", metavar="COLUMN", multiple=True, help="A column to take out."
)
@click.option(
    "--column-comment", "comments", type=Pair(), multiple=True, help="A column's comment."
)
@click.option("--set", "properties", type=Pair(), multiple=True, help="A property to set.")
@click.option("--unset", "removed", metavar="NAME", multiple=True, help="A property to take out.")
@click.option("--formats", metavar="FORMATS", help=f"What to publish from now on: {_FORMATS}.")
@write_options
@pass_call
def alter_table(call: Call, /, name: str, **given: Any) -> None:
    """Change a table's columns, properties and formats, in one commit."""
    schema = [given[n] for n in ("columns", "renamed", "dropped", "comments") if given[n]]
    if not (schema or given["properties"] or given["removed"] or given["formats"]):
        raise click.UsageError("give at least one change")
    with call.open() as lake:
        with lake.transaction(**take_write_options(given)) as transaction:
            changed = transaction.table(name)
            if schema:
                _alter_columns(changed.alter(), given)
            if given["properties"] or given["removed"]:
                changed.set_properties(dict(given["properties"]), removed=given["removed"])
            if given["formats"]:
                changed.set_formats(given["formats"])
        commit = next(iter(transaction.commits.values()))
    answer(commit_record(commit), commit_line(commit), as_json=call.json)


@table.command("rename")
@click.argument("name")
@click.argument("new_name")
@pass_call
def rename_table(call: Call, name: str, new_name: str) -> None:
    """Give a table another name; its folder stays where it is."""
    with call.open() as lake:
        lake.rename_table(name, new_name)
    answer({"renamed": name, "name": new_name}, f"{name} is {new_name} now", as_json=call.json)


@table.command("drop")
@click.argument("name")
@click.option("--purge", is_flag=True, help="Delete its files too.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_call
def drop_table(call: Call, name: str, *, purge: bool, yes: bool) -> None:
    """Drop a table; its files are kept until they are purged."""
    with call.open() as lake:
        found = lake.table(name)
        files = "and delete its files" if purge else "and keep its files"
        _confirm(f"Drop {found.name} with {found.row_count:,} rows, {files}?", yes=yes)
        lake.drop_table(name, purge=purge)
    kept = "" if purge else f"; its files are kept: lakebed table purge {name}"
    answer({"dropped": name, "purged": purge}, f"dropped {name}{kept}", as_json=call.json)


@table.command("dropped")
@pass_call
def list_dropped(call: Call) -> None:
    """List dropped tables whose files are kept."""
    with call.open() as lake:
        dropped = lake.dropped_tables()
    show_list([{"name": n, "location": where} for n, where in dropped], as_json=call.json)


@table.command("purge")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_call
def purge_table(call: Call, name: str, *, yes: bool) -> None:
    """Delete the files of dropped tables of this name."""
    with call.open() as lake:
        _confirm(f"Delete the files of every dropped table {name}?", yes=yes)
        count = lake.purge_table(name)
    answer({"purged": name, "tables": count}, f"purged {name}", as_json=call.json)


def _schema_of(path: str) -> object:
    from lakebed.api.files import schema_of

    return schema_of(path)


def _column_line(column: dict[str, Any]) -> str:
    comment = f"  -- {column['comment']}" if column["comment"] else ""
    return f"{column['name']} {column['type']}{' not null' * column['required']}{comment}"


def _alter_columns(change: "Alter[None]", given: dict[str, Any]) -> None:
    """Columns go before others take their names; comments are for the columns that result."""
    from lakebed.model.schema_text import parse_schema

    for name in given["dropped"]:
        change.drop_column(name)
    for name, new_name in given["renamed"]:
        change.rename_column(name, new_name)
    for text in given["columns"]:
        for field in parse_schema(text):
            if field.required:
                raise InvalidSchema(
                    f"column {field.name!r} cannot be added as NOT NULL",
                    hint="rows written before have no value for it; leave NOT NULL out",
                    column=field.name,
                )
            change.add_column(field.name, field.type, doc=field.doc)
    for name, comment in given["comments"]:
        change.set_comment(name, comment or None)
    change.commit()


def _confirm(question: str, *, yes: bool) -> None:
    """Ask a person; a script has decided already."""
    if yes or not sys.stdin.isatty():
        return
    if not click.confirm(question, err=True):
        raise click.ClickException("nothing was done")
