"""`lakebed namespace`: create, list, show, set, drop."""

from collections.abc import Sequence

import click

from lakebed.cli.call import Call, Group, pass_call
from lakebed.cli.options import Pair
from lakebed.cli.output import answer, show_list, show_record


@click.group(cls=Group)
def namespace() -> None:
    """Namespaces: folders of tables, nested by dots."""


@namespace.command("create")
@click.argument("name")
@click.option("--property", "properties", type=Pair(), multiple=True, help="A property to keep.")
@click.option("--if-missing", is_flag=True, help="No error when it is there already.")
@pass_call
def create_namespace(
    call: Call, name: str, properties: Sequence[tuple[str, str]], *, if_missing: bool
) -> None:
    """Make a namespace, and those around it."""
    with call.open() as lake:
        lake.create_namespace(name, dict(properties), exist_ok=if_missing)
        answer(
            {"name": name, "properties": lake.namespace_properties(name)},
            f"made {name}",
            as_json=call.json,
        )


@namespace.command("list")
@click.argument("parent", required=False)
@pass_call
def list_namespaces(call: Call, parent: str | None) -> None:
    """List all namespaces, or those directly in PARENT."""
    with call.open() as lake:
        names = lake.namespaces(parent)
    show_list([{"name": name} for name in names], as_json=call.json)


@namespace.command("show")
@click.argument("name")
@pass_call
def show_namespace(call: Call, name: str) -> None:
    """Show the properties, namespaces and tables of a namespace."""
    with call.open() as lake:
        record = {
            "name": name,
            "properties": lake.namespace_properties(name),
            "namespaces": lake.namespaces(name),
            "tables": lake.tables(name),
        }
    show_record(record, as_json=call.json)


@namespace.command("set")
@click.argument("name")
@click.argument("properties", type=Pair(), nargs=-1, metavar="NAME=VALUE...")
@click.option("--unset", "removed", metavar="NAME", multiple=True, help="A property to take out.")
@pass_call
def set_namespace(
    call: Call, name: str, properties: Sequence[tuple[str, str]], *, removed: Sequence[str]
) -> None:
    """Set and unset properties of a namespace."""
    if not properties and not removed:
        raise click.UsageError("give NAME=VALUE or --unset NAME")
    with call.open() as lake:
        after = lake.set_namespace_properties(name, dict(properties), removed=removed)
    answer(
        {"name": name, "properties": after},
        f"{name} is changed",
        as_json=call.json,
    )


@namespace.command("drop")
@click.argument("name")
@pass_call
def drop_namespace(call: Call, name: str) -> None:
    """Drop an empty namespace."""
    with call.open() as lake:
        lake.drop_namespace(name)
    answer({"dropped": name}, f"dropped {name}", as_json=call.json)
