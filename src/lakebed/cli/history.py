"""`lakebed history` and `lakebed files`: what a table is made of."""

from typing import Any

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.describe import commit_record, file_record, partition_types
from lakebed.cli.options import POINT, add_options
from lakebed.cli.output import show_list


@click.command(cls=Command)
@click.argument("name")
@click.option(
    "--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Newest commits."
)
@click.option("--ref", help="Of this branch, or up to this tag.")
@pass_call
def history(call: Call, name: str, limit: int, ref: str | None) -> None:
    """List the commits of a table, newest first."""
    with call.open() as lake:
        commits = lake.table(name).history(limit, ref=ref)
    columns = ["version", "time", "operation", "added_rows", "removed_rows", "author", "message"]
    if any(commit.branch != "main" for commit in commits):
        columns.insert(1, "branch")
    records = [commit_record(commit) for commit in commits]
    if not all(commit.published for commit in commits):
        columns.append("reason")
    show_list(records, as_json=call.json, columns=columns)


@click.command(cls=Command)
@click.argument("name")
@add_options(*POINT)
@pass_call
def files(call: Call, /, name: str, **point: Any) -> None:
    """List the data files of a table."""
    with call.open() as lake:
        table = lake.table(name)
        types = partition_types(table)
        entries = table.files(**point)
    show_list([file_record(entry, types) for entry in entries], as_json=call.json)
