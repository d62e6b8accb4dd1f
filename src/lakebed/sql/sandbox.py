"""What a query may not do: everything that could reach the host through the engine.

Table functions are refused unless listed here; scalar functions if `model.functions` lists them.
The engine is locked too; this is the first of two fences, and the one with good error messages.
"""

from itertools import pairwise

from sqlglot import exp

from lakebed.model.errors import SqlUnsupported
from lakebed.model.functions import is_refused
from lakebed.sql.source import Source, Token
from lakebed.sql.syntax import Syntax, place_of

# Table functions that make rows from their arguments alone.
HARMLESS_SOURCES = frozenset(
    {
        "generate_series",
        "generate_subscripts",
        "json_each",
        "json_tree",
        "pg_timezone_names",
        "range",
        "regexp_split_to_table",
        "repeat",
        "repeat_row",
        "unnest",
    }
)
_STATEMENTS = (
    exp.DML,
    exp.Create,
    exp.Drop,
    exp.Alter,
    exp.Command,
    exp.Copy,
    exp.Set,
    exp.Pragma,
    exp.Attach,
    exp.Detach,
    exp.Install,
    exp.Use,
    exp.Show,
    exp.Into,
    exp.Transaction,
    exp.Commit,
    exp.Rollback,
)
_RELATIONS = (exp.Table, exp.Subquery, exp.Unnest, exp.Lateral, exp.Values, exp.Select, exp.Pivot)
_HINT = "a query sees the tables of the lake and nothing of the host"
_FILES = "files are read with COPY … FROM, inside the folders that allow_files names"


def check_calls(source: Source, tokens: tuple[Token, ...]) -> None:
    """Refuse by name, whatever the place: the text goes to the engine as it is."""
    for token, following in pairwise(tokens):
        if following.text != "(" or token.kind not in ("word", "quoted"):
            continue
        if is_refused(token.name):
            raise source.error(
                token.start,
                f"the function {token.name[:60]} is not allowed in SQL",
                hint=_FILES if token.name.lower().startswith(("read_", "parquet_")) else _HINT,
                kind=SqlUnsupported,
            )


def check_tree(syntax: Syntax) -> None:
    """Refuse statements inside queries, and relations of an unknown kind."""
    for node in syntax.nodes:
        if isinstance(node, _STATEMENTS):
            raise syntax.error(
                place_of(node),
                f"{node.key.upper()} is not allowed inside a query",
                hint="write it as a statement of its own",
            )
        if isinstance(node, exp.From | exp.Join) and not isinstance(node.this, _RELATIONS):
            raise syntax.error(place_of(node), "this is no table", hint=_HINT)
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Func):
            check_source(syntax, node.this)


def check_source(syntax: Syntax, function: exp.Expr) -> None:
    """A function in FROM must be one of the harmless ones."""
    start = int(function.meta.get("start", place_of(function)))
    name = syntax.text[start:].partition("(")[0].strip().strip('"`').lower()
    if name not in HARMLESS_SOURCES:
        listed = ", ".join(sorted(HARMLESS_SOURCES))
        raise syntax.error(
            start,
            f"the table function {name[:60]} is not allowed in SQL",
            hint=f"{_FILES}; table functions are {listed}",
        )
