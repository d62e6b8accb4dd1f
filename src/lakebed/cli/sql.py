"""`lakebed sql`: statements from the command line, a file or a terminal."""

import sys
from pathlib import Path
from typing import Any

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.options import (
    Pair,
    format_option,
    rows_format,
    take_write_options,
    write_options,
)


@click.command(cls=Command)
@click.argument("text", required=False)
@click.option("--file", "script", type=click.File(encoding="utf-8"), help="A script; - is stdin.")
@click.option(
    "--param",
    "params",
    type=Pair(),
    multiple=True,
    help="The value of $NAME, as text; CAST it in the statement where that matters.",
)
@click.option("--limit", type=click.IntRange(min=0), help="At most so many rows of each answer.")
@format_option
@click.option("--timing", is_flag=True, help="Say how long each statement took.")
@write_options
@pass_call
def sql(call: Call, /, text: str | None, **given: Any) -> None:
    """Run SQL; without a text, on a terminal, a shell that reads statements.

    A text may hold several statements: rows go to stdout, what was done to stderr; with --json
    both go to stdout, a document for each statement. The first error ends it, and statements before
    it stand, except those of an open transaction. COPY may touch files inside the current folder.
    """
    script = given["script"]
    if text is not None and script is not None:
        raise click.UsageError("give a text or --file, not both")
    form = rows_format(given["format"], as_json=call.json)
    if text is None and script is None and not sys.stdin.isatty():
        script = sys.stdin
    with call.open() as lake, lake.sql_session(allow_files=[Path.cwd()]) as session:
        if text is None and script is None:
            from lakebed.cli.shell import Shell

            Shell(lake, session, form, timing=given["timing"]).run()
            return
        from lakebed.cli.results import show_result
        from lakebed.cli.stopwatch import Stopwatch
        from lakebed.model.errors import SqlError

        watch = Stopwatch(wanted=given["timing"])
        options = take_write_options(given)
        params = dict(given["params"]) or None
        script_text = script.read() if text is None else text
        for result in watch.each(session.results(script_text, params, **options)):
            show_result(result, form, limit=given["limit"])
        if session.in_transaction:
            raise SqlError(
                "the transaction was left open: it is rolled back", hint="end the text with COMMIT"
            )
