"""Which columns of a table a query may need: a superset by name, or all of them."""

from sqlglot import exp

from lakebed.sql.references import RELATIONS, Found
from lakebed.sql.syntax import Syntax

_WHOLE = (exp.Pivot, exp.PositionalColumn, exp.Summarize, exp.Describe)
# Words that can be no column's name unless they are quoted.
RESERVED = frozenset(
    [
        "all",
        "and",
        "as",
        "asc",
        "between",
        "by",
        "case",
        "cast",
        "check",
        "collate",
        "column",
        "constraint",
        "create",
        "cross",
        "default",
        "desc",
        "distinct",
        "else",
        "end",
        "except",
        "exists",
        "false",
        "for",
        "foreign",
        "from",
        "full",
        "group",
        "having",
        "in",
        "inner",
        "intersect",
        "into",
        "is",
        "join",
        "lateral",
        "left",
        "like",
        "limit",
        "not",
        "null",
        "offset",
        "on",
        "or",
        "order",
        "outer",
        "primary",
        "qualify",
        "references",
        "returning",
        "right",
        "select",
        "some",
        "table",
        "then",
        "to",
        "true",
        "union",
        "unique",
        "using",
        "when",
        "where",
        "window",
        "with",
    ]
)


def needed_columns(syntax: Syntax, tables: list[Found]) -> list[frozenset[str] | None]:
    """For each table casefolded names; a name may well be no column of it. None means all."""
    if any(isinstance(node, _WHOLE) for node in syntax.nodes):
        return [None] * len(tables)
    names = _names(syntax, tables)
    known = _relation_names(syntax)
    columns = syntax.find(exp.Column)
    wide = _selects_that_take_all(syntax)
    needed: list[frozenset[str] | None] = []
    for table in tables:
        if table.select is None or id(table.select) in wide or _is_taken_whole(table, columns):
            needed.append(None)
            continue
        foreign = _foreign(table, columns, known)
        needed.append(frozenset(name for start, name in names if start not in foreign))
    return needed


def _names(syntax: Syntax, tables: list[Found]) -> list[tuple[int, str]]:
    """Every word that could name a column, with its offset in `syntax.text`."""
    names, tokens = [], syntax.tokens
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        start = token.start - syntax.shift
        if token.kind not in ("word", "quoted") or (following and following.text == "("):
            continue
        if token.kind == "word" and token.name.lower() in RESERVED:
            continue
        if not any(table.start <= start < table.end for table in tables):
            names.append((start, token.name.casefold()))
    return names


def _relation_names(syntax: Syntax) -> set[str]:
    return {r.alias_or_name.casefold() for r in syntax.nodes if isinstance(r, RELATIONS)}


def _selects_that_take_all(syntax: Syntax) -> set[int]:
    """Selects with a star, COLUMNS(…), or a join that goes by all names or positions."""
    wide: set[int] = set()
    for node in (n for n in syntax.nodes if isinstance(n, exp.Star | exp.Columns)):
        qualified = isinstance(node.parent, exp.Column) and node.parent.table
        if not qualified and not isinstance(node.parent, exp.Count):
            wide.add(id(node.find_ancestor(exp.Select)))
    for join in syntax.find(exp.Join):
        if join.method.upper() in ("NATURAL", "POSITIONAL"):
            wide.add(id(join.find_ancestor(exp.Select)))
    return wide


def _is_taken_whole(table: Found, columns: list[exp.Column]) -> bool:
    """By `t.*`, by the table's name used as a value, or with its columns renamed in place."""
    alias = table.alias.casefold()
    renamed = table.node.args.get("alias")
    if renamed is not None and renamed.args.get("columns"):
        return True
    for column in columns:
        if isinstance(column.this, exp.Star):
            if column.table.casefold() == alias:
                return True
        elif column.name.casefold() == alias:
            return True
    return False


def _foreign(table: Found, columns: list[exp.Column], known: set[str]) -> set[int]:
    """Offsets of names that are qualified with another relation."""
    alias, foreign = table.alias.casefold(), set[int]()
    for column in columns:
        parts = column.parts
        first = parts[0].name.casefold()
        if len(parts) > 1 and first in known and first != alias:
            foreign.update(int(p.meta["start"]) for p in parts[1:] if "start" in p.meta)
    return foreign
