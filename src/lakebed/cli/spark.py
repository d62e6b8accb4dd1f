"""`lakebed spark jars`: the connectors' jars, fetched once."""

import sys

import click

from lakebed.cli.call import Call, Group, pass_call
from lakebed.cli.output import count_of, say, show_json


@click.group(cls=Group)
def spark() -> None:
    """What Spark needs beside PySpark."""


@spark.command()
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME",
    help="Which jars: connectors (Iceberg and Delta, the default) or jdbc (PostgreSQL's driver);"
    " several times for both.",
)
@pass_call
def jars(call: Call, sets: tuple[str, ...]) -> None:
    """Fetch the jars of the lock file that are not in the cache, and check all of them.

    They come from Maven Central, or from the mirror that LAKEBED_MAVEN_URL names. Once they are
    there, nothing is fetched.
    """
    from lakebed.engines.spark.jars import CONNECTORS, fetch_jars

    shows = sys.stderr.isatty() and not call.json
    wanted = sets or (CONNECTORS,)
    found = fetch_jars(wanted, _show_progress if shows else None)
    if shows:
        click.echo("\r\033[K", nl=False, err=True)
    if call.json:
        show_json({"sets": list(wanted), "jars": [str(path) for path in found]})
        return
    for path in found:
        click.echo(path)
    say(f"{count_of(len(found), 'jar')} checked")


def _show_progress(there: int, total: int) -> None:
    click.echo(f"\r{there / 1e6:,.1f} of {total / 1e6:,.1f} MB", nl=False, err=True)
