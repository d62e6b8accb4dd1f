"""Finds the lake's tables in a query's tree: not CTEs, not functions, never files."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from lakebed.sql.dialect import BRANCH, SPAN
from lakebed.sql.sandbox import check_source
from lakebed.sql.syntax import Syntax, place_of

# What a query may give a name to and take rows from.
RELATIONS = (exp.Table, exp.Subquery, exp.Unnest, exp.Lateral, exp.Values)
_NO_ALIAS = (exp.Summarize, exp.Describe)


@dataclass(slots=True)
class Found:
    """A table in the text: where its name stands, and which clauses behind it are ours."""

    node: exp.Table
    parts: tuple[str, ...]
    start: int
    end: int
    alias: str
    aliased: bool  # by the user
    select: exp.Select | None
    branch: str | None = None
    clause: exp.Version | None = None
    arguments: tuple[exp.Expr, ...] | None = None
    names_itself: bool = field(default=False)  # stands where no alias may follow


def find_tables(syntax: Syntax) -> list[Found]:
    found = [t for node in syntax.find(exp.Table) if (t := _table(syntax, node))]
    return sorted(found, key=lambda table: table.start)


def _table(syntax: Syntax, node: exp.Table) -> Found | None:
    pieces = node.parts
    if not pieces or not all(SPAN in piece.meta for piece in pieces):
        raise syntax.error(place_of(node), "this is no table", hint="write the name of a table")
    if isinstance(pieces[-1], exp.Func):
        return _function(syntax, node, pieces)
    start, end = pieces[0].meta[SPAN][0], pieces[-1].meta[SPAN][1]
    if not all(isinstance(piece, exp.Identifier) for piece in pieces):
        raise syntax.error(start, "this is no name of a table", hint="write NAMESPACE.TABLE")
    for piece in pieces:
        first = syntax.text[piece.meta[SPAN][0]]
        if first not in '"`' and not first.isidentifier():
            raise syntax.error(
                start,
                "files cannot be read by their path",
                hint="load the file with COPY … FROM; quote names with double quotes",
            )
    if syntax.text[end:].lstrip().startswith("("):
        raise syntax.error(start, "this table function is not allowed in SQL", hint="name a table")
    table = _found(node, tuple(piece.name for piece in pieces), start, end)
    table.names_itself |= syntax.text[:start].rstrip().upper().endswith("TABLE")  # TABLE t
    clauses = [c for key in ("version", "when") if (c := node.args.get(key))]
    branch = node.meta.get(BRANCH)
    if len(clauses) + (branch is not None) > 1:
        raise syntax.error(
            start, "one version is enough", hint="name a version, a time or a branch"
        )
    if branch is not None:
        table.branch, table.end = branch
    table.clause = clauses[0] if clauses else None
    if branch is not None or clauses:
        return table
    recurring = len(pieces) == 2 and table.parts[0].lower() == "recurring"
    named = len(pieces) == 1 or recurring  # recurring.x is all that a CTE has made so far
    return None if named and _is_cte(node, table.parts[-1]) else table


def _function(syntax: Syntax, node: exp.Table, pieces: list[exp.Expr]) -> Found | None:
    call = pieces[-1]
    start, end = pieces[0].meta[SPAN][0], call.meta[SPAN][1]
    name = syntax.text[call.meta[SPAN][0] : end].partition("(")[0].strip().strip('"`')
    if name.lower() == "table_changes" and len(pieces) == 1:
        return _changes_of(syntax, node, call, start, end)
    if name.lower().endswith("$changes"):
        parts = (*(piece.name for piece in pieces[:-1]), name)
        table = _found(node, parts, start, end)
        table.arguments = tuple(call.expressions)
        return table
    if len(pieces) > 1:
        raise syntax.error(start, "this function is not allowed in FROM", hint="name a table")
    check_source(syntax, call)
    return None


def _changes_of(syntax: Syntax, node: exp.Table, call: exp.Expr, start: int, end: int) -> Found:
    """table_changes('sales.orders', 2, 5)"""
    arguments = call.expressions
    if not arguments or not arguments[0].is_string:
        raise syntax.error(
            start, "table_changes needs the name of a table", hint="table_changes('ns.t', 2, 5)"
        )
    parts = tuple(str(arguments[0].this).split("."))
    table = _found(node, (*parts[:-1], f"{parts[-1]}$changes"), start, end)
    table.arguments = tuple(arguments[1:])
    return table


def _found(node: exp.Table, parts: tuple[str, ...], start: int, end: int) -> Found:
    alias = node.alias
    return Found(
        node,
        parts,
        start,
        end,
        alias or parts[-1],
        bool(alias),
        node.find_ancestor(exp.Select),
        names_itself=isinstance(node.parent, _NO_ALIAS),
    )


def _is_cte(node: exp.Expr, name: str) -> bool:
    """Is this the name of a CTE that is visible here?"""
    wanted, passed = name.casefold(), set[int]()
    outer: exp.Expr | None = node
    while outer is not None:
        clause = outer.args.get("with_")
        if clause is not None and wanted in _visible(clause, passed):
            return True
        passed.add(id(outer))
        outer = outer.parent
    return False


def _visible(clause: exp.Expr, passed: set[int]) -> Iterator[str]:
    """All CTEs for the query itself; for a CTE those before it, and itself if recursive."""
    for cte in clause.expressions:
        if id(cte) in passed:
            if clause.args.get("recursive"):
                yield cte.alias.casefold()
            return
        yield cte.alias.casefold()
