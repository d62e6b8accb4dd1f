"""`lakebed table`: create, list, show, alter, rename, drop, dropped, purge."""

import sys
from typing import Any

import click

from lakebed.cli.alter import alter_table
from lakebed.cli.call import Call, Group, pass_call
from lakebed.cli.describe import table_record
from lakebed.cli.options import (
    Pair,
    split_names,
    split_terms,
    take_write_options,
    write_options,
)
from lakebed.cli.output import answer, show_list, show_record
from lakebed.model.errors import TableNotFound

_FORMATS = "delta, iceberg or delta,iceberg"


@click.group(cls=Group)
def table() -> None:
    """Tables: make, look at, change, drop."""


table.add_command(alter_table, "alter")


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
@click.option("--constraint", "constraints", type=Pair(), multiple=True, help="A CHECK constraint.")
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
            constraints=dict(given["constraints"]),
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
        for part in ("properties", "constraints"):
            record[part] = [f"{k}={v}" for k, v in record[part].items()]
    show_record(record, as_json=call.json)


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
    default = "" if column["default"] is None else f" default {column['default']}"
    required = " not null" * column["required"]
    return f"{column['name']} {column['type']}{required}{default}{comment}"


def _confirm(question: str, *, yes: bool) -> None:
    """Ask a person; a script has decided already."""
    if yes or not sys.stdin.isatty():
        return
    if not click.confirm(question, err=True):
        raise click.ClickException("nothing was done")
