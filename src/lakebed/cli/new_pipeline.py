"""`lakebed new-pipeline`: a small project that works, with its test."""

from pathlib import Path

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.output import answer


@click.command("new-pipeline", cls=Command)
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to put it. Default: a folder of that name here.",
)
@pass_call
def new_pipeline(call: Call, name: str, folder: Path | None) -> None:
    """Write a small pipeline that works, with input, test and a page that says how to run it."""
    from lakebed.pipelines.template import write_project

    made = write_project(name, folder or Path(name))
    record = {"name": name, "folder": str(made[0].parent), "files": [str(path) for path in made]}
    answer(record, f"wrote {', '.join(map(str, made))}", as_json=call.json)
