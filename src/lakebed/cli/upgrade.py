"""`lakebed upgrade`: the database of a lake made by an older lakebed."""

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.output import answer


@click.command(cls=Command)
@pass_call
def upgrade(call: Call) -> None:
    """Bring the lake's database to the schema of this program."""
    from lakebed.api.open import upgrade as upgrade_lake

    before, now = upgrade_lake(call.uri())
    told = f"schema {now} already" if before == now else f"schema {now} now; it had {before}"
    answer({"before": before, "now": now}, f"the database has {told}", as_json=call.json)
