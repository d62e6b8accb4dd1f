"""`lakebed cat`: the rows of a table, of any version, in any format."""

from typing import Any

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.options import POINT, add_options, format_option, rows_format, split_names


@click.command(cls=Command)
@click.argument("name")
@click.option("--columns", metavar="NAMES", multiple=True, help="Columns, separated by commas.")
@click.option("--where", metavar="CONDITION", help='Only rows that match, such as "id > 5".')
@add_options(*POINT)
@click.option("--limit", type=click.IntRange(min=0), help="At most so many rows.")
@format_option
@pass_call
def cat(call: Call, /, name: str, **given: Any) -> None:
    """Write the rows of a table to stdout."""
    form = rows_format(given["format"], as_json=call.json)
    from lakebed.cli.rows import write_rows

    with call.open() as lake:
        scan = lake.table(name).scan(
            columns=split_names(given["columns"]) or None,
            where=given["where"],
            version=given["version"],
            timestamp=given["timestamp"],
            ref=given["ref"],
        )
        write_rows(scan.to_batches(), form, limit=given["limit"])
