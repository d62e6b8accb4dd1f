"""`lakebed`: every command, and the one place where failures become messages and exit codes."""

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

import lakebed
from lakebed.cli.append import append
from lakebed.cli.call import Group
from lakebed.cli.cat import cat
from lakebed.cli.changes import changes
from lakebed.cli.check import check
from lakebed.cli.doctor import doctor
from lakebed.cli.failures import USAGE, run
from lakebed.cli.history import files, history
from lakebed.cli.init import init
from lakebed.cli.namespace import namespace
from lakebed.cli.new_pipeline import new_pipeline
from lakebed.cli.publish import publish, status
from lakebed.cli.ref import branch, tag
from lakebed.cli.restore import restore
from lakebed.cli.run import run as run_command
from lakebed.cli.runs import lineage, runs
from lakebed.cli.settings import settings
from lakebed.cli.spark import spark
from lakebed.cli.sql import sql
from lakebed.cli.table import table
from lakebed.cli.upgrade import upgrade

_NAME = "lakebed"
_COMPLETE = "_LAKEBED_COMPLETE"


class Root(Group):
    """Ends with the exit codes of the command line: 0, 1, 2, 3, 64 or 130."""

    root = True

    def main(  # type: ignore[override]  # always ends the program, and has its own handlers
        self, args: Sequence[str] | None = None, **_: Any
    ) -> NoReturn:
        arguments = list(sys.argv[1:] if args is None else args)
        if _COMPLETE in os.environ:
            from click.shell_completion import shell_complete

            sys.exit(shell_complete(self, {}, _NAME, _COMPLETE, os.environ[_COMPLETE]))

        def invoke() -> None:
            with self.make_context(_NAME, arguments) as context:
                self.invoke(context)

        sys.exit(run(invoke, arguments))


def _show_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"lakebed {lakebed.__version__}")
        context.exit()


@click.group(cls=Root, invoke_without_command=True)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def main(context: click.Context) -> None:
    """A lakehouse whose commits are SQL transactions, native in Delta Lake and Iceberg.

    Data goes to stdout, messages to stderr. -l, --json and -v may also follow a command's name.

    Exit codes: 0 done, 1 error, 2 findings or publication stopped, 3 publication late, 64 wrong
    usage, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(USAGE)


for command in (
    init,
    namespace,
    table,
    append,
    sql,
    cat,
    history,
    changes,
    restore,
    branch,
    tag,
    files,
    publish,
    status,
    check,
    settings,
    spark,
    doctor,
    upgrade,
    run_command,
    runs,
    lineage,
    new_pipeline,
):
    main.add_command(command)
