"""`lakebed changes`: the rows that versions inserted, deleted and updated."""

from typing import Any

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.options import format_option, rows_format, split_names


@click.command(cls=Command)
@click.argument("name")
@click.option("--from", "from_version", type=int, metavar="VERSION", help="After this version.")
@click.option("--to", "to_version", type=int, metavar="VERSION", help="Up to it. Default: newest.")
@click.option("--from-timestamp", metavar="TIME", help="After what there was at this time.")
@click.option("--to-timestamp", metavar="TIME", help="Up to what there was at this time.")
@click.option("--ref", help="Of this branch, or up to this tag.")
@click.option("--columns", metavar="NAMES", multiple=True, help="Columns, separated by commas.")
@click.option("--where", metavar="CONDITION", help='Only rows that match, such as "id > 5".')
@click.option("--limit", type=click.IntRange(min=0), help="At most so many rows.")
@format_option
@pass_call
def changes(call: Call, /, name: str, **given: Any) -> None:
    """Write the changes of a table's rows to stdout.

    _op is insert, delete, update_before or update_after; _version and _time say which commit.
    """
    form = rows_format(given.pop("format"), as_json=call.json)
    limit = given.pop("limit")
    given["columns"] = split_names(given["columns"]) or None
    from lakebed.cli.rows import write_rows

    with call.open() as lake:
        found = lake.table(name).changes(**given)
        write_rows(found.to_batches(), form, limit=limit)
