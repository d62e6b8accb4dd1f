"""`lakebed restore`: a table becomes what it was."""

from typing import Any

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.describe import commit_line, commit_record
from lakebed.cli.options import POINT, add_options, take_write_options, write_options
from lakebed.cli.output import answer, say


@click.command(cls=Command)
@click.argument("name")
@add_options(*POINT)
@write_options
@pass_call
def restore(call: Call, /, name: str, **given: Any) -> None:
    """Make a table what it was at a version, in a new commit; no version is lost."""
    point = {n: given[n] for n in ("version", "timestamp", "ref")}
    if sum(value is not None for value in point.values()) != 1:
        raise click.UsageError("give --version, --timestamp or --ref")
    with call.open() as lake:
        commit = lake.table(name).restore(**point, **take_write_options(given))
    if not commit.changed and not call.json:
        say(f"{commit.table} is at version {commit.version} already")
    else:
        answer(commit_record(commit), commit_line(commit), as_json=call.json)
