"""`lakebed runs` and `lakebed lineage`: what pipelines did, and what was made from what."""

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.describe import run_record
from lakebed.cli.output import count_of, say, show_json, show_list, show_record
from lakebed.cli.run_progress import step_line, worked

if TYPE_CHECKING:
    from lakebed.model.runs import Run

_COLUMNS = ("id", "pipeline", "status", "started", "seconds", "written", "error")


@click.command(cls=Command)
@click.argument("run_id", required=False, metavar="[ID]")
@click.option("--pipeline", metavar="NAME", help="Of this pipeline alone.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, help="At most so many. Default: 20."
)
@pass_call
def runs(call: Call, run_id: str | None, pipeline: str | None, limit: int) -> None:
    """List the newest runs of pipelines, or show one: steps, rows, versions, expectations."""
    with call.open() as lake:
        if run_id is not None:
            _show_run(call, lake.runs.get(run_id))
            return
        found = lake.runs.list(pipeline, limit=limit)
    if call.json:
        show_json([run_record(run) for run in found])
        return
    if not found:
        say("there are no runs")
    show_list([_row(run) for run in found], as_json=False, columns=_COLUMNS)


@click.command(cls=Command)
@click.argument("name", metavar="NS.TABLE")
@click.option(
    "--up", "direction", flag_value="up", default=True, help="What it was made from (default)."
)
@click.option("--down", "direction", flag_value="down", help="What was made from it.")
@pass_call
def lineage(call: Call, name: str, direction: str) -> None:
    """Show what a table was made from, or what was made from it, with versions and runs."""
    with call.open() as lake:
        edges = lake.runs.lineage(name, "up" if direction == "up" else "down")
    if call.json:
        show_json([dataclasses.asdict(edge) for edge in edges])
        return
    if not edges:
        say(
            f"no run of a pipeline made {name}"
            if direction == "up"
            else f"nothing is made of {name}"
        )
    for edge in edges:
        since = "" if edge.after is None else f"{edge.after}.."
        versions = "" if edge.until is None else f"@{since}{edge.until}"
        indent = "  " * (edge.depth - 1)
        click.echo(
            f"{indent}{edge.output}@{edge.output_version} <- {edge.input}{versions}"
            f"  ({edge.pipeline}, run {edge.run_id})"
        )


def _row(run: "Run") -> dict[str, Any]:
    plain = run_record(run)
    failure = run.report.failure
    return {
        **{name: plain[name] for name in ("id", "pipeline", "status", "started", "seconds")},
        "written": ", ".join(f"{t}@{v}" for t, v in run.report.written.items()),
        "error": "" if failure is None else failure.message.split("\n")[0],
    }


def _show_run(call: Call, run: "Run") -> None:
    plain = run_record(run)
    if call.json:
        show_json(plain)
        return
    hidden = ("steps", "parameters", "written", "error")
    show_record({k: v for k, v in plain.items() if k not in hidden}, as_json=False)
    for name, value in run.report.parameters.items():
        click.echo(f"parameter {name} = {value}")
    for step in run.report.steps:
        click.echo(step_line(step))
        for given in step.inputs:
            click.echo(f"    read {_input(dataclasses.asdict(given))}")
        if step.work is not None and (told := worked(step.work)):
            click.echo(f"    Spark: {', '.join(told)}")
        for each in step.expectations:
            said = "held" if each.passed else each.detail or f"not so for {each.rows:,} rows"
            click.echo(f"    expect.{each.action} {each.text}: {said}")
    for table, version in run.report.written.items():
        click.echo(f"wrote {table} version {version}")
    if run.report.failure is not None:
        click.echo(f"error: {run.report.failure.message} [{run.report.failure.code}]")


def _input(given: dict[str, Any]) -> str:
    if given["files"] is not None:
        return f"{given['name']}: {given['files']:,} new files"
    rows = "" if given["rows"] is None else f": {count_of(given['rows'], 'row')}"
    if given["until"] is None:
        return f"{given['name']} (as this run left it){rows}"
    since = "" if given["after"] is None else f" after version {given['after']}"
    return f"{given['name']}{since} up to version {given['until']}{rows}"
