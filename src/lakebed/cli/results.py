"""The answer to a statement: rows on stdout, what was done on stderr."""

from typing import TYPE_CHECKING

from lakebed.cli.output import say, show_json
from lakebed.cli.rows import write_rows

if TYPE_CHECKING:
    from lakebed.api.sql.result import Result


def show_result(result: "Result", form: str, *, limit: int | None) -> None:
    """Rows of a query go to stdout; what a statement did goes to stderr, or is JSON."""
    with result:
        if result.message is None:
            write_rows(result.to_batches(), form, limit=limit)
        elif form == "json":
            rows = result.to_pylist()
            show_json({"message": result.message, **(rows[0] if len(rows) == 1 else {})})
        else:
            say(result.message)
