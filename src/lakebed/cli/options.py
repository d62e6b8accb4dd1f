"""Options that several commands take, and how their texts are read."""

import csv
import re
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


def write_options(command: F) -> F:
    """What every write takes besides its rows."""
    for option in reversed(_WRITE):
        command = option(command)
    return command


def take_write_options(given: dict[str, Any]) -> "CommitOptions":
    """The write options among a command's arguments, as the API takes them."""
    return cast("CommitOptions", {n: given[n] for n in _NAMES if given.get(n) is not None})


def split_names(texts: Sequence[str]) -> list[str]:
    """`a,b` or several options; a name with a comma is put in double quotes."""
    return [name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row]


def split_terms(texts: Sequence[str]) -> list[str]:
    """`region,bucket(16, id)` or several options."""
    return [t.strip() for text in texts for t in _OUTSIDE_PARENTHESES.split(text) if t.strip()]
