"""`lakebed branch` and `lakebed tag`: names for lines and versions of a table."""

import re
from typing import Any

import click

from lakebed.cli.call import Call, Group, pass_call
from lakebed.cli.describe import commit_line, commit_record, ref_record
from lakebed.cli.options import POINT, add_options, take_write_options, write_options
from lakebed.cli.output import answer, show_list

_AGE = re.compile(r"([1-9][0-9]{0,8})([smhdw])")
_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_COLUMNS = ("name", "kind", "version", "snapshot_id", "created")


class Age(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A number and a unit: 12h, 7d, 4w. In milliseconds."""

    name = "AGE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = _AGE.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is not an age such as 90m, 12h, 7d or 4w", param, ctx)
        return int(found[1]) * _UNIT_MS[found[2]]


_MAX_AGE = click.option("--max-age", type=Age(), help="Expire the ref after so long: 12h, 7d, 4w.")
_SNAPSHOTS = (
    click.option("--min-snapshots", type=int, help="Keep so many of its snapshots at least."),
    click.option("--max-snapshot-age", type=Age(), help="Expire its snapshots after so long."),
)


@click.group(cls=Group)
def branch() -> None:
    """Create, list and drop branches, and let main follow one.

    Every command takes NS.T@BRANCH for a table: `lakebed append sales.orders@audit new.csv`.
    """


@branch.command("create")
@click.argument("name")
@click.argument("branch_name", metavar="BRANCH")
@add_options(*POINT, _MAX_AGE, *_SNAPSHOTS)
@pass_call
def create_branch(call: Call, /, name: str, branch_name: str, **given: Any) -> None:
    """Begin a branch at a version of a table: the newest, unless told otherwise."""
    with call.open() as lake:
        made = lake.table(name).create_branch(branch_name, **given)
    answer(
        ref_record(made),
        f"branch {made.name} of {name} begins at version {made.version}",
        as_json=call.json,
    )


@branch.command("list")
@click.argument("name")
@pass_call
def list_branches(call: Call, name: str) -> None:
    """List the branches and tags of a table."""
    with call.open() as lake:
        found = lake.table(name).refs()
    show_list([ref_record(ref) for ref in found], as_json=call.json, columns=_COLUMNS)


@branch.command("drop")
@click.argument("name")
@click.argument("branch_name", metavar="BRANCH")
@pass_call
def drop_branch(call: Call, name: str, branch_name: str) -> None:
    """Drop a branch; what main took of it stays."""
    with call.open() as lake:
        lake.table(name).drop_branch(branch_name)
    answer({"dropped": branch_name}, f"dropped branch {branch_name}", as_json=call.json)


@branch.command("retain")
@click.argument("name")
@click.argument("branch_name", metavar="BRANCH")
@add_options(_MAX_AGE, *_SNAPSHOTS)
@pass_call
def retain_branch(call: Call, /, name: str, branch_name: str, **given: Any) -> None:
    """Say how long a branch and its snapshots are kept; what is left out goes by the settings."""
    with call.open() as lake:
        kept = lake.table(name).set_retention(branch_name, **given)
    answer(ref_record(kept), f"branch {kept.name} has a new retention", as_json=call.json)


@branch.command("fast-forward")
@click.argument("name")
@click.argument("branch_name", metavar="BRANCH")
@write_options
@pass_call
def fast_forward(call: Call, /, name: str, branch_name: str, **given: Any) -> None:
    """Give main everything that a branch has, in one commit."""
    with call.open() as lake:
        commit = lake.table(name).fast_forward("main", to=branch_name, **take_write_options(given))
    answer(commit_record(commit), commit_line(commit), as_json=call.json)


@click.group(cls=Group)
def tag() -> None:
    """Create, list and drop tags: names for versions that stay."""


@tag.command("create")
@click.argument("name")
@click.argument("tag_name", metavar="TAG")
@add_options(*POINT, _MAX_AGE)
@pass_call
def create_tag(call: Call, /, name: str, tag_name: str, **given: Any) -> None:
    """Name a version of a table: the newest, unless told otherwise."""
    with call.open() as lake:
        made = lake.table(name).create_tag(tag_name, **given)
    answer(
        ref_record(made),
        f"tag {made.name} of {name} is version {made.version}",
        as_json=call.json,
    )


@tag.command("list")
@click.argument("name")
@pass_call
def list_tags(call: Call, name: str) -> None:
    """List the tags of a table."""
    with call.open() as lake:
        found = [ref for ref in lake.table(name).refs() if ref.kind == "tag"]
    show_list([ref_record(ref) for ref in found], as_json=call.json, columns=_COLUMNS)


@tag.command("drop")
@click.argument("name")
@click.argument("tag_name", metavar="TAG")
@pass_call
def drop_tag(call: Call, name: str, tag_name: str) -> None:
    """Drop a tag; its version stays as long as others do."""
    with call.open() as lake:
        lake.table(name).drop_tag(tag_name)
    answer({"dropped": tag_name}, f"dropped tag {tag_name}", as_json=call.json)
