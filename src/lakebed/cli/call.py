"""What every command shares: which lake it is about, and how to answer."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakebed.model.errors import LakeNotFound

if TYPE_CHECKING:
    from lakebed.api.lake import Lake

LAKE_VARIABLE = "LAKEBED_LAKE"


@dataclass(slots=True)
class Call:
    """Options that may stand before or after a command's name."""

    lake: str | None = None
    json: bool = False
    verbose: int = 0

    def uri(self) -> str:
        """The lake that was named, or the one around the current folder."""
        named = self.lake or os.environ.get(LAKE_VARIABLE)
        if named:
            return named
        from lakebed.api.open import find_lake

        found = find_lake(Path.cwd())
        if found is None:
            raise LakeNotFound(
                "there is no lake in this folder or above it",
                hint=f"name one with -l LAKE or {LAKE_VARIABLE}, or make one: lakebed init LAKE",
            )
        return str(found)

    @contextmanager
    def open(self) -> Iterator["Lake"]:
        from lakebed.api.open import open as open_lake

        with open_lake(self.uri()) as lake:
            yield lake


pass_call = click.make_pass_decorator(Call, ensure=True)


class Command(click.Command):
    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.params += shared_options()


class Group(click.Group):
    command_class = Command
    group_class = type
    root = False

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's name
        return list(self.commands)  # in the order they were added

    def __init__(self, *args: Any, **keywords: Any) -> None:
        keywords.setdefault("no_args_is_help", False)
        super().__init__(*args, **keywords)
        self.params += shared_options(root=self.root)


def shared_options(*, root: bool = False) -> list[click.Parameter]:
    """The same three everywhere; below the root only --json is worth a line of help."""
    return [
        click.Option(
            ["-l", "--lake"],
            metavar="LAKE",
            expose_value=False,
            callback=_set_lake,
            hidden=not root,
            help=f"A folder or a PostgreSQL URL. Default: ${LAKE_VARIABLE}, or the lake around the"
            " current folder.",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_set_json,
            help="Answer in JSON; errors too.",
        ),
        click.Option(
            ["-v", "--verbose"],
            count=True,
            expose_value=False,
            callback=_set_verbose,
            hidden=not root,
            help="Say what is done; twice for more.",
        ),
    ]


def _set_lake(context: click.Context, _: click.Parameter, value: str | None) -> None:
    call = context.ensure_object(Call)
    call.lake = call.lake if value is None else value


def _set_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    call = context.ensure_object(Call)
    call.json = call.json or value


def _set_verbose(context: click.Context, _: click.Parameter, value: int) -> None:
    call = context.ensure_object(Call)
    call.verbose = call.verbose + value
    log_to_stderr(call.verbose)


def log_to_stderr(verbose: int) -> None:
    """Warnings by default; what is published waits for -v, as a failure there is told anyway."""
    import logging

    levels = (logging.WARNING, logging.INFO, logging.DEBUG)
    logging.getLogger("lakebed").setLevel(levels[min(verbose, 2)])
    logging.getLogger("lakebed.publish").setLevel(logging.NOTSET if verbose else logging.ERROR)
