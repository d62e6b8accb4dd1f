"""`lakebed settings`: list, set, unset."""

import click

from lakebed.cli.call import Call, Group, pass_call
from lakebed.cli.output import answer, show_list


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
@pass_call
def settings(call: Call, context: click.Context) -> None:
    """List the settings, or change one.

    Shows every setting with its value and where the value comes from.
    """
    if context.invoked_subcommand is not None:
        return
    with call.open() as lake:
        resolved = lake.settings()
    records = [
        {
            "name": row.setting.name,
            "value": row.value,
            "source": row.source,
            "default": row.setting.default,
            "per_table": row.setting.per_table,
            "help": row.setting.help,
        }
        for row in resolved
    ]
    show_list(records, as_json=call.json, columns=("name", "value", "source", "help"))


@settings.command("set")
@click.argument("name")
@click.argument("value")
@pass_call
def set_setting(call: Call, name: str, value: str) -> None:
    """Keep a value in the lake, for everybody who opens it."""
    _put(call, name, value)


@settings.command("unset")
@click.argument("name")
@pass_call
def unset_setting(call: Call, name: str) -> None:
    """Take a value out of the lake; what is below it counts again."""
    _put(call, name, None)


def _put(call: Call, name: str, value: str | None) -> None:
    with call.open() as lake:
        lake.set_setting(name, value)
        now = next(row for row in lake.settings() if row.setting.name == name)
    record = {"name": name, "value": now.value, "source": now.source}
    answer(record, f"{name} is {now.value} ({now.source})", as_json=call.json)
