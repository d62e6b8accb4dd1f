"""`lakebed run`: a pipeline from a file, its plan, or its graph."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.options import Pair
from lakebed.cli.output import say, show_json, write_bytes
from lakebed.cli.run_progress import listener_for
from lakebed.model.errors import MissingExtra

if TYPE_CHECKING:
    from lakebed.pipelines.pipeline import Pipeline

_SENDING = "Exception while sending command."


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show what would be done; nothing is run.")
@click.option(
    "--graph",
    type=click.Choice(["text", "mermaid", "svg"]),
    help="Show the graph of the steps; nothing is run.",
)
@click.option(
    "--select",
    multiple=True,
    metavar="STEP",
    help='Only these steps: "gold.daily", "gold.daily+" with all after it, "+gold.daily" before.',
)
@click.option(
    "--full-refresh",
    multiple=True,
    metavar="STEP",
    help="Make a step, and everything after it, anew from all of its inputs.",
)
@click.option(
    "--backfill", metavar="STEP", help="Make those rows of a step again that --where says."
)
@click.option("--where", metavar="SQL", help="Which rows to backfill: a condition in Spark's SQL.")
@click.option(
    "--check/--no-check",
    default=None,
    help="Call every step, or none, on empty frames first, to find wrong columns and types."
    " Default: those that only build a query.",
)
@click.option("--param", "params", type=Pair(), multiple=True, help="A parameter of the steps.")
@click.option("--master", metavar="URL", help="Where Spark runs. Default: local[*].")
@click.option("--memory", metavar="SIZE", help="Of Spark's driver, such as 4g.")
@click.option(
    "--conf", type=Pair(), multiple=True, help="A setting of Spark; it goes before all others."
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for another run of this pipeline.",
)
@click.option("--parallel", type=click.IntRange(min=1), help="How many steps at once.")
@click.option("--pipeline", metavar="NAME", help="Which one, when the file makes several.")
@click.option("--author", metavar="NAME", help="Who. Default: the user of this system.")
@pass_call
def run(call: Call, /, file: Path, **given: Any) -> None:
    """Run the pipeline of a Python file on Spark: all tables are committed together, or none.

    With --json every event is a line of JSON on stdout; the last one is the record of the run.
    """
    pipeline = _load(file, given["pipeline"])
    wanted = {
        "select": given["select"],
        "full_refresh": given["full_refresh"],
        "backfill": given["backfill"],
        "where": given["where"],
        "params": dict(given["params"]),
    }
    if given["graph"] is not None:
        _show_graph(pipeline, given["graph"])
        return
    if given["dry_run"]:
        _show_plan(call, pipeline, wanted)
        return
    # When Java is gone, py4j tells of every call, to the root logger; the error of the run says it.
    logging.getLogger().addFilter(lambda record: record.msg != _SENDING)
    options = {n: given[n] for n in ("master", "memory") if given[n] is not None}
    options |= {"config": dict(given["conf"])} if given["conf"] else {}
    with call.open() as lake, listener_for(as_json=call.json) as listen:
        pipeline.run(
            lake,
            **wanted,
            wait_s=given["wait"],
            parallel=given["parallel"],
            author=given["author"],
            check=given["check"],
            listen=listen,
            **options,
        )


def _load(file: Path, name: str | None) -> "Pipeline":
    try:
        from lakebed.pipelines.loading import load_pipeline
    except ImportError as error:
        raise MissingExtra(
            "PySpark is not installed", hint="pip install 'lakebed[spark]'"
        ) from error
    return load_pipeline(file, name)


def _show_graph(pipeline: "Pipeline", form: str) -> None:
    from lakebed.pipelines.drawing import draw

    write_bytes(draw(pipeline.graph(), form).encode())


def _show_plan(call: Call, pipeline: "Pipeline", wanted: dict[str, Any]) -> None:
    from lakebed.pipelines.preview import preview

    with call.open() as lake:
        steps = preview(lake, pipeline, **wanted)
    if call.json:
        show_json([step.to_plain() for step in steps])
        return
    for step in steps:
        click.echo(f"{step.table}  {step.what}")
        for line in step.reasons:
            click.echo(f"    {line}")
    if sys.stdout.isatty():
        say("nothing was run")
