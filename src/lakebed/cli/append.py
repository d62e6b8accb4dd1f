"""`lakebed append`: rows of files into a table, as one commit."""

import sys
import time
from typing import Any, Self

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.describe import commit_line, commit_record
from lakebed.cli.options import take_write_options, write_options
from lakebed.cli.output import answer

FORMATS = ("csv", "json", "jsonl", "parquet", "arrow")
_EVERY_S = 0.1


@click.command(cls=Command)
@click.argument("name")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="What the files are. Default: what their names say.",
)
@click.option("--create", is_flag=True, help="Make the table from the files if it is missing.")
@click.option(
    "--merge-schema", is_flag=True, help="Add columns that only the files have to the table."
)
@click.option("--overwrite", is_flag=True, help="Take the place of the rows that are there.")
@click.option("--where", metavar="CONDITION", help="With --overwrite: only of rows that match.")
@click.option("--partitions", is_flag=True, help="With --overwrite: only of partitions written to.")
@write_options
@pass_call
def append(call: Call, /, name: str, files: tuple[str, ...], **given: Any) -> None:
    """Append the rows of files to a table in one commit.

    FILES are CSV, JSON, JSONL, Parquet or Arrow IPC; patterns such as "in/*.csv"; or - for stdin.
    """
    if (given["where"] or given["partitions"]) and not given["overwrite"]:
        raise click.UsageError("--where and --partitions belong to --overwrite")
    if given["merge_schema"] and given["overwrite"]:
        raise click.UsageError("--merge-schema adds columns to what is appended, not overwritten")
    if "-" in files and given["format"] is None:
        raise click.UsageError("stdin has no name: say what it is with --format")
    from lakebed.api.files import append_files

    with call.open() as lake, _Progress() as progress:
        commit = append_files(
            lake,
            name,
            files,
            format=given["format"],
            create=given["create"],
            overwrite=given["overwrite"],
            where=given["where"],
            partitions=given["partitions"],
            merge_schema=given["merge_schema"],
            stdin=sys.stdin.buffer,
            progress=progress.rows,
            **take_write_options(given),
        )
    answer(commit_record(commit), commit_line(commit), as_json=call.json)


class _Progress:
    """Rows so far, on a terminal; silent otherwise."""

    def __init__(self) -> None:
        self._shown_s = time.monotonic()
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            click.echo("\r\x1b[K", err=True, nl=False)

    def rows(self, count: int) -> None:
        now_s = time.monotonic()
        if now_s - self._shown_s >= _EVERY_S and sys.stderr.isatty():
            click.echo(f"\r{count:,} rows", err=True, nl=False)
            self._shown_s, self._shown = now_s, True
