"""`lakebed check`: rows, data files and both formats compared."""

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.describe import report_record
from lakebed.cli.failures import FINDINGS, OK
from lakebed.cli.output import count_of, say, show_json, show_list


@click.command(cls=Command)
@click.argument("name", required=False)
@click.option("--repair", is_flag=True, help="Publish anew what differs from the rows.")
@click.pass_context
@pass_call
def check(call: Call, context: click.Context, name: str | None, *, repair: bool) -> None:
    """Compare rows, data files and what was published. Exits 2 when something is wrong."""
    with call.open() as lake:
        report = lake.check(name, repair=repair)
    record = report_record(report)
    if call.json:
        show_json(record)
    else:
        show_list(record["findings"], as_json=False)
        for note in record["notes"]:
            say(f"note: {note['table']}: {note['message']}{_where(note['path'])}")
        for repaired in report.repaired:
            say(f"published {repaired} anew")
        looked = f"{count_of(report.tables, 'table')}, {count_of(report.files, 'data file')}"
        wrong = count_of(len(report.findings), "finding") if report.findings else "nothing is wrong"
        say(f"{looked}: {wrong}")
    context.exit(OK if report.clean else FINDINGS)


def _where(path: str | None) -> str:
    return f" ({path})" if path else ""
