"""`lakebed publish` and `lakebed status`: whether other engines see what was committed."""

from typing import TYPE_CHECKING

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.describe import Record, status_record
from lakebed.cli.failures import FINDINGS, LATE, OK
from lakebed.cli.follow import follow
from lakebed.cli.output import count_of, say, show_json, show_list

if TYPE_CHECKING:
    from lakebed.api.status import Status

_COLUMNS = ("table", "format", "kind", "from_version", "to_version", "lag_s", "attempts", "error")


@click.command(cls=Command)
@click.argument("name", required=False)
@click.option(
    "--follow",
    "follows",
    is_flag=True,
    help="Go on until SIGTERM (exit 0) or SIGINT (exit 130), and publish what is committed. With"
    " --json each event is a line. Several may run at once.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.01),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="How often --follow looks when nothing waits.",
)
@click.pass_context
@pass_call
def publish(
    call: Call, context: click.Context, /, name: str | None, follows: bool, every: float
) -> None:
    """Publish at once what waits, of one table or of all.

    Exits 2 when publication is stopped, 3 when something still waits.
    """
    if follows:
        if name is not None:
            raise click.UsageError("--follow publishes all tables: leave the name out")
        context.exit(follow(call, every))
    with call.open() as lake:
        status = lake.publish(name)
        wanted = None if name is None else lake.table(name).name
    record = status_record(status)
    if wanted is not None:
        record["waiting"] = [lag for lag in record["waiting"] if lag["table"] == wanted]
    _show(call, record)
    late = [lag for lag in record["waiting"] if lag["kind"] != "checkpoint"]
    stopped = any(lag["stopped"] for lag in late)
    context.exit(FINDINGS if stopped else LATE if late else OK)


@click.command(cls=Command)
@click.pass_context
@pass_call
def status(call: Call, context: click.Context) -> None:
    """Show what waits for publication. Exits 2 when it is stopped, 3 when it is only late."""
    with call.open() as lake:
        found = lake.status()
    _show(call, status_record(found))
    if found.cache is not None and not call.json:
        cache = found.cache
        say(f"cache: {cache.used_bytes} of {cache.limit_bytes} bytes in {cache.folder}")
    context.exit(_exit_code(found))


def _exit_code(found: "Status") -> int:
    if found.stopped:
        return FINDINGS
    return LATE if found.lagging else OK


def _show(call: Call, record: Record) -> None:
    if call.json:
        show_json(record)
        return
    if not record["waiting"]:
        say("everything is published")
    elif record["versions_behind"]:
        behind = count_of(record["versions_behind"], "version")
        late = f", more than {record['warn_s']:g} s" if record["lagging"] else ""
        say(f"readers are {behind} and {record['lag_s']:.1f} s behind{late}")
    show_list(record["waiting"], as_json=False, columns=_COLUMNS)
    for split in record["split_commits"]:
        say(
            f"commit {split['transaction_id']} is published in {', '.join(split['published'])}"
            f" but not yet in {', '.join(split['waiting'])}"
        )
