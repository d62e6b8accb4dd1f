"""Writes the reference pages and the list of public names; `make docs` runs it, tests compare."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from lakebed.cli.main import main as command_line
from lakebed.engines.arrow.types import ARROW_TYPES
from lakebed.model.settings import SETTINGS

REPO = Path(__file__).resolve().parent.parent
HEAD = "<!-- Written by `make docs`; change the code instead. -->\n"


def settings_page() -> str:
    lines = [f"{HEAD}\n# Settings\n", "| name | default | meaning |", "|---|---|---|"]
    lines += [f"| `{row.name}` | `{row.default}` | {row.help} |" for row in SETTINGS]
    return "\n".join(lines) + "\n"


def types_page() -> str:
    lines = [
        f"{HEAD}\n# Arrow types\n",
        "What an Arrow type becomes when a table is made from it.\n",
    ]
    lines += ["| Arrow | becomes | |", "|---|---|---|"]
    for row in ARROW_TYPES:
        becomes = f"`{row.becomes}`" if row.becomes else "refused"
        lines.append(f"| `{row.arrow}` | {becomes} | {row.note} |")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    sections = (command_section(*entry) for entry in commands(command_line, "lakebed"))
    return "\n".join([f"{HEAD}\n# Commands\n", *sections])


def commands(command: click.Command, path: str) -> Iterator[tuple[click.Command, str]]:
    yield command, path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from commands(below, f"{path} {name}")


def command_section(command: click.Command, path: str) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [f"## {path}\n", f"{inspect.cleandoc(command.help or '')}\n", f"    {usage}\n"]
    options = (option for option in command.params if isinstance(option, click.Option))
    records = (option.get_help_record(context) for option in options)
    lines += [f"- `{record[0]}`: {record[1]}" for record in records if record]
    return "\n".join(lines).rstrip() + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/commands.md": commands_page,
    "docs/reference/settings.md": settings_page,
    "docs/reference/types.md": types_page,
}


def main() -> None:
    for page, render in PAGES.items():
        (REPO / page).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
