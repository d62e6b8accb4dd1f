"""`lakebed init`: a new lake."""

import click

from lakebed.cli.call import Call, Command, pass_call
from lakebed.cli.output import answer


@click.command(cls=Command)
@click.argument("place", metavar="LAKE")
@click.option(
    "--warehouse",
    metavar="URI",
    help="Where tables keep their files. Default: the folder `warehouse` in the lake.",
)
@pass_call
def init(call: Call, place: str, warehouse: str | None) -> None:
    """Make a lake.

    LAKE is a folder, or postgresql://HOST/DATABASE?schema=NAME with a --warehouse.
    """
    from lakebed.api.open import init as init_lake

    with init_lake(place, warehouse=warehouse) as made:
        answer(
            {"lake": made.uri, "warehouse": made.warehouse},
            f"made the lake {made.uri}; its tables will be in {made.warehouse}",
            as_json=call.json,
        )
