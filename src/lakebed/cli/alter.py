"""`lakebed table alter`: columns, partitioning, constraints, properties and formats."""

import re
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.describe import commit_line, commit_record
from lakebed.cli.options import (
    Pair,
    split_names,
    split_terms,
    take_write_options,
    write_options,
)
from lakebed.cli.output import answer
from lakebed.model.errors import InvalidSchema

if TYPE_CHECKING:
    from lakebed.api.alter import Alter

_PLACES = re.compile(
    r"(?P<name>\S+)\s+(?:(?P<first>first)|(?P<word>after|before)\s+(?P<beside>\S+))"
)
_NESTED = re.compile(r"(?P<parent>[^\s`\"]+)\.(?P<column>[^\s.]+\s.*)", re.DOTALL)


class Place(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """COLUMN first, COLUMN after OTHER or COLUMN before OTHER."""

    name = "PLACE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, dict[str, Any]]:
        found = _PLACES.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is not 'COLUMN first' or 'COLUMN after OTHER'", param, ctx)
        if found["first"]:
            return found["name"], {"first": True}
        return found["name"], {found["word"]: found["beside"]}


_SHAPE = (
    click.option(
        "--add-column",
        "columns",
        metavar="COLUMN",
        multiple=True,
        help='A new column, such as "note string comment \'free text\'" or "address.city string".',
    ),
    click.option(
        "--rename-column",
        "renamed",
        type=Pair(),
        multiple=True,
        help="A column's new name: OLD=NEW.",
    ),
    click.option(
        "--drop-column", "dropped", metavar="COLUMN", multiple=True, help="A column to take out."
    ),
    click.option(
        "--widen-column", "widened", type=Pair(), multiple=True, help="A wider type: COLUMN=TYPE."
    ),
    click.option(
        "--move-column",
        "moved",
        type=Place(),
        multiple=True,
        help="'COLUMN first', 'COLUMN after OTHER', 'COLUMN before OTHER'.",
    ),
    click.option(
        "--make-optional", "optional", metavar="COLUMN", multiple=True, help="Allow NULL in it."
    ),
    click.option(
        "--default",
        "defaults",
        type=Pair(),
        multiple=True,
        help="What rows get that leave a column out: COLUMN=VALUE.",
    ),
    click.option(
        "--drop-default",
        "undefaulted",
        metavar="COLUMN",
        multiple=True,
        help="No default any more.",
    ),
    click.option(
        "--column-comment", "comments", type=Pair(), multiple=True, help="A column's comment."
    ),
    click.option(
        "--primary-key", "key", metavar="COLUMN", multiple=True, help="Columns that name a row."
    ),
    click.option(
        "--partition-by", "terms", metavar="TERM", multiple=True, help="How new files are split."
    ),
    click.option("--unpartitioned", is_flag=True, help="New files are no longer partitioned."),
    click.option(
        "--sort-by", "order", metavar="TERM", multiple=True, help="How new files are sorted."
    ),
    click.option("--unsorted", is_flag=True, help="New files are no longer sorted."),
    click.option(
        "--add-constraint",
        "constraints",
        type=Pair(),
        multiple=True,
        help="A CHECK constraint: NAME=CONDITION.",
    ),
    click.option(
        "--drop-constraint", "freed", metavar="NAME", multiple=True, help="One to take out."
    ),
)
_SHAPE_NAMES = (
    "columns",
    "renamed",
    "dropped",
    "widened",
    "moved",
    "optional",
    "defaults",
    "undefaulted",
    "comments",
    "key",
    "terms",
    "unpartitioned",
    "order",
    "unsorted",
    "constraints",
    "freed",
)


def _shape_options(command: Any) -> Any:
    for option in reversed(_SHAPE):
        command = option(command)
    return command


@click.command(cls=Command)
@click.argument("name")
@_shape_options
@click.option("--set", "properties", type=Pair(), multiple=True, help="A property to set.")
@click.option("--unset", "removed", metavar="NAME", multiple=True, help="A property to take out.")
@click.option(
    "--formats",
    metavar="FORMATS",
    help="What to publish from now on: delta, iceberg or delta,iceberg.",
)
@write_options
@pass_call
def alter_table(call: Call, /, name: str, **given: Any) -> None:
    """Change a table's columns, partitioning, constraints, properties and formats, in one commit.

    A nested column is named by its path: address.city, items.element.price, tags.value.x.
    """
    shape = any(given[n] for n in _SHAPE_NAMES)
    if not (shape or given["properties"] or given["removed"] or given["formats"]):
        raise click.UsageError("give at least one change")
    with call.open() as lake:
        with lake.transaction(**take_write_options(given)) as transaction:
            changed = transaction.table(name)
            if given["properties"] or given["removed"]:
                changed.set_properties(dict(given["properties"]), removed=given["removed"])
            if given["formats"]:
                changed.set_formats(given["formats"])
            if shape:
                _alter(changed.alter(), given)
        commit = next(iter(transaction.commits.values()))
    answer(commit_record(commit), commit_line(commit), as_json=call.json)


def _alter(change: "Alter[None]", given: dict[str, Any]) -> None:
    """Columns go before others take their names; the rest is for the columns that result."""
    for name in given["freed"]:
        change.drop_constraint(name)
    for name in given["dropped"]:
        change.drop_column(name)
    for name, new_name in given["renamed"]:
        change.rename_column(name, new_name)
    defaults = dict(given["defaults"])
    for text in given["columns"]:
        _add(change, text, defaults)
    for name, kind in given["widened"]:
        change.widen_column(name, kind)
    for name in given["optional"]:
        change.make_optional(name)
    for name, value in defaults.items():
        change.set_default(name, value)
    for name in given["undefaulted"]:
        change.drop_default(name)
    for name, place in given["moved"]:
        change.move_column(name, **place)
    for name, comment in given["comments"]:
        change.set_comment(name, comment or None)
    _alter_layout(change, given)
    change.commit()


def _alter_layout(change: "Alter[None]", given: dict[str, Any]) -> None:
    if given["key"]:
        change.set_primary_key(split_names(given["key"]))
    if given["terms"] or given["unpartitioned"]:
        change.set_partitioning(split_terms(given["terms"]))
    if given["order"] or given["unsorted"]:
        change.set_sort_order(split_terms(given["order"]))
    for name, condition in given["constraints"]:
        change.add_constraint(name, condition)


def _add(change: "Alter[None]", text: str, defaults: dict[str, str]) -> None:
    """Columns of a schema text; a default given for one belongs to its addition."""
    from lakebed.model.schema_text import parse_schema

    nested = _NESTED.fullmatch(text.strip())
    above = tuple(nested["parent"].split(".")) if nested else ()
    for field in parse_schema(nested["column"] if nested else text):
        path = (*above, field.name)
        if field.required:
            raise InvalidSchema(
                f"column {'.'.join(path)!r} cannot be added as NOT NULL",
                hint="rows written before have no value for it; leave NOT NULL out",
                column=".".join(path),
            )
        default = defaults.pop(".".join(path), None)
        change.add_column(path, field.type, doc=field.doc, default=default)
