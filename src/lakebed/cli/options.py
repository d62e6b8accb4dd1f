"""Options that several commands take, and how their texts are read."""

import csv
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from lakebed.api.options import CommitOptions

F = TypeVar("F", bound=Callable[..., Any])
_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")


class Txn(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """APP:N, an application's name and its transaction number."""

    name = "APP:N"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        app, colon, number = str(value).rpartition(":")
        if not colon or not app or not (number.isascii() and number.isdigit()):
            self.fail(f"{value!r} is not APP:N, such as loader:17", param, ctx)
        return app, int(number)


class Pair(click.ParamType):  # type: ignore[type-arg]  # as above
    """NAME=VALUE; the value may be empty and may hold more equal signs."""

    name = "NAME=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        name, equals, text = str(value).partition("=")
        if not equals or not name:
            self.fail(f"{value!r} is not NAME=VALUE", param, ctx)
        return name, text


_WRITE = (
    click.option("--message", metavar="TEXT", help="Why; kept in the history."),
    click.option("--author", metavar="NAME", help="Who. Default: the user of this system."),
    click.option(
        "--idempotency-key",
        metavar="KEY",
        help="The same key again gives the same answer again and writes nothing.",
    ),
    click.option(
        "--txn",
        type=Txn(),
        help="Transaction N of an application: a number not above its last one adds nothing.",
    ),
    click.option(
        "--isolation",
        type=click.Choice(["write_serializable", "serializable"]),
        help="How strictly concurrent commits are compared.",
    ),
    click.option(
        "--publish",
        type=click.Choice(["commit", "background"]),
        help="Publish before this command answers, or behind its back.",
    ),
)
_NAMES = ("message", "author", "idempotency_key", "txn", "isolation", "publish")


# Which version of a table is meant.
POINT = (
    click.option("--version", type=int, help="Of this version. Default: the newest."),
    click.option(
        "--timestamp", metavar="TIME", help="As it was then, such as 2026-11-01T12:00:00Z."
    ),
    click.option("--ref", help="Of this branch or tag."),
)
_TEXT = ("table", "csv", "json", "jsonl")
_BINARY = ("parquet", "arrow")
format_option = click.option(
    "--format",
    type=click.Choice((*_TEXT, *_BINARY)),
    help="How to write the rows. Default: table, or json with --json.",
)


def add_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options, in the order of the help."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def write_options(command: F) -> F:
    """What every write takes besides its rows."""
    return add_options(*_WRITE)(command)


def rows_format(given: str | None, *, as_json: bool) -> str:
    form = given or ("json" if as_json else "table")
    if form in _BINARY and sys.stdout.isatty():
        raise click.UsageError(f"{form} is not for a terminal: send it to a file or a pipe")
    return form


def take_write_options(given: dict[str, Any]) -> "CommitOptions":
    """The write options among a command's arguments, as the API takes them."""
    return cast("CommitOptions", {n: given[n] for n in _NAMES if given.get(n) is not None})


def split_names(texts: Sequence[str]) -> list[str]:
    """`a,b` or several options; a name with a comma is put in double quotes."""
    return [name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row]


def split_terms(texts: Sequence[str]) -> list[str]:
    """`region,bucket(16, id)` or several options."""
    return [t.strip() for text in texts for t in _OUTSIDE_PARENTHESES.split(text) if t.strip()]
