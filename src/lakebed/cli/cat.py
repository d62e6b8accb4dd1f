"""`lakebed cat`: the rows of a table, of any version, in any format."""

import sys
from typing import Any

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.options import split_names

_TEXT = ("table", "csv", "json", "jsonl")
_BINARY = ("parquet", "arrow")


@click.command(cls=Command)
@click.argument("name")
@click.option("--columns", metavar="NAMES", multiple=True, help="Columns, separated by commas.")
@click.option("--where", metavar="CONDITION", help='Only rows that match, such as "id > 5".')
@click.option("--version", type=int, help="Of this version. Default: the newest.")
@click.option("--timestamp", metavar="TIME", help="As it was then, such as 2026-11-01T12:00:00Z.")
@click.option("--limit", type=click.IntRange(min=0), help="At most so many rows.")
@click.option(
    "--format",
    type=click.Choice((*_TEXT, *_BINARY)),
    help="How to write the rows. Default: table, or json with --json.",
)
@pass_call
def cat(call: Call, /, name: str, **given: Any) -> None:
    """Write the rows of a table to stdout."""
    form = given["format"] or ("json" if call.json else "table")
    if form in _BINARY and sys.stdout.isatty():
        raise click.UsageError(f"{form} is not for a terminal: send it to a file or a pipe")
    from lakebed.cli.rows import write_rows

    with call.open() as lake:
        scan = lake.table(name).scan(
            columns=split_names(given["columns"]) or None,
            where=given["where"],
            version=given["version"],
            timestamp=given["timestamp"],
        )
        write_rows(scan.to_batches(), form, limit=given["limit"])
