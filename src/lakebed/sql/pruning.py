"""What a query asks of the rows of one table alone, so that files without such rows stay closed.

Everything here is conservative: a condition that is not surely about one table, or that the
engine might read differently, is left out. The engine still applies the query's own text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from lakebed.model.errors import InvalidExpression
from lakebed.model.expressions import And, Column, Constant, Not, Or, Predicate, columns
from lakebed.sql.dates import fold_dates
from lakebed.sql.dialect import SPAN
from lakebed.sql.literals import NotLiteral
from lakebed.sql.predicate import predicate_of
from lakebed.sql.query import Conjunct
from lakebed.sql.references import RELATIONS, Found
from lakebed.sql.syntax import Syntax
from lakebed.sql.where import stand_in


@dataclass(frozen=True, slots=True)
class Seen:
    """How conditions name a relation: by its alias, by its full name if it has no other alias.

    `others` are the names of all other relations around, casefolded; `parameters` gives the name
    of the parameter at an offset.
    """

    alias: str
    parts: tuple[str, ...]
    others: set[str]
    parameters: Mapping[int, str]
    # What a part of a condition says, by the part's id: it is the same for every relation.
    known: dict[int, Predicate | None] = field(default_factory=dict)


def conjuncts_of_tables(
    syntax: Syntax, tables: list[Found], parameters: Mapping[int, str]
) -> list[tuple[tuple[Conjunct, ...], tuple[Conjunct, ...]]]:
    """For each table what filters its rows, and the comparisons of them that are only shown."""
    relations = [node for node in syntax.nodes if isinstance(node, RELATIONS)]
    names = {r.alias_or_name.casefold() for r in relations if r.alias_or_name}
    names |= {t.parts[0].casefold() for t in tables if len(t.parts) > 1}
    known: dict[int, Predicate | None] = {}
    found = []
    for table in tables:
        others = names - {table.alias.casefold()}
        parts = () if table.aliased else table.parts
        seen = Seen(table.alias, parts, others, parameters, known)
        shown = _shown(table) if table.select is syntax.tree else []
        found.append((conjuncts_of(list(_conditions(table)), seen), conjuncts_of(shown, seen)))
    return found


def _shown(table: Found) -> list[exp.Expr]:
    """Comparisons among the columns of a query's result: they are surely computed."""
    if table.select is None or _is_changed(table.node):
        return []
    listed = (each.unalias().unnest() for each in table.select.args.get("expressions") or ())
    return [each for each in listed if isinstance(each, exp.Predicate)]


def conjuncts_of(conditions: list[exp.Expr], seen: Seen) -> tuple[Conjunct, ...]:
    """The parts of these conditions that concern one relation alone."""
    found = []
    for condition in conditions:
        for part in _operands(condition):
            if id(part) not in seen.known:
                seen.known[id(part)] = _predicate(part, seen.parameters)
            predicate = seen.known[id(part)]
            mapped = None if predicate is None else _of_relation(predicate, seen)
            if mapped is not None:
                found.append(Conjunct(mapped))
    return tuple(found)


def _conditions(table: Found) -> Iterator[exp.Expr]:
    """WHERE and ON that every row of the table must pass before it has any effect."""
    select, node = table.select, table.node
    if select is None or select.args.get("sample") or _is_changed(node):
        return
    first = select.args.get("from_")
    if first is None or (node is not first.this and node.args.get("joins")):
        return
    sources = [first.this]
    # FROM in front of SELECT keeps its joins with the first table.
    joins = [*(first.this.args.get("joins") or ()), *(select.args.get("joins") or ())]
    nullable: set[int] = set()
    usable: list[exp.Join] = []
    for join in joins:
        _mark(join, sources, nullable)
        sources.append(join.this)
        if not _is_plain(join) or join.kind.upper() in ("SEMI", "ANTI"):
            continue
        if not join.side:
            usable.append(join)
        elif join.this is node and join.side.upper() == "LEFT":
            yield from _on(join)  # what cannot match is never seen
    if not any(source is node for source in sources) or id(node) in nullable:
        return
    for join in usable:
        yield from _on(join)
    where = select.args.get("where")
    if where is not None:
        yield where.this


def _mark(join: exp.Join, sources: list[exp.Expr], nullable: set[int]) -> None:
    """Which tables may this join fill with NULLs, or match by more than a condition?"""
    if not _is_plain(join):
        nullable.update(map(id, (*sources, join.this)))
        return
    if join.side.upper() in ("LEFT", "FULL") or join.kind.upper() in ("SEMI", "ANTI"):
        nullable.add(id(join.this))
    if join.side.upper() in ("RIGHT", "FULL"):
        nullable.update(map(id, sources))


def _is_plain(join: exp.Join) -> bool:
    return (
        join.method.upper() in ("", "NATURAL")
        and join.kind.upper() in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI")
        and join.side.upper() in ("", "LEFT", "RIGHT", "FULL")
        and not join.args.get("nearest")
        and not join.args.get("pivots")
    )


def _is_changed(node: exp.Table) -> bool:
    return any(node.args.get(key) for key in ("sample", "pivots", "ordinality")) or bool(
        (alias := node.args.get("alias")) and alias.args.get("columns")
    )


def _on(join: exp.Join) -> Iterator[exp.Expr]:
    on = join.args.get("on")
    if on is not None:
        yield on


def _operands(node: exp.Expr) -> list[exp.Expr]:
    waiting, parts = [node], []
    while waiting:
        part = waiting.pop()
        while isinstance(part, exp.Paren):
            part = part.this
        if type(part) is exp.And:
            waiting += [part.expression, part.this]
        elif isinstance(part, exp.Expr):
            parts.append(part)
    return parts


def _predicate(node: exp.Expr, parameters: Mapping[int, str]) -> Predicate | None:
    node = fold_dates(node.copy())
    for literal in list(node.find_all(exp.Literal)):
        if not literal.is_string and "e" in str(literal.this).lower():
            return None  # a double: comparing with one rounds the column
    for like in list(node.find_all(exp.Like)):
        _double_backslashes(like)
    for parameter in list(node.find_all(exp.Placeholder)):
        name = parameters.get(parameter.meta.get(SPAN, (-1, -1))[0])
        if parameter is node or name is None or parameter.find_ancestor(exp.Cast, exp.Escape):
            return None
        parameter.replace(exp.Literal.string(stand_in(name)))
    try:
        return predicate_of(node)
    except (InvalidExpression, NotLiteral, RecursionError):
        return None


def _double_backslashes(like: exp.Like) -> None:
    """The engine's LIKE knows no escape unless one is named; a predicate's always does."""
    pattern = like.expression
    if isinstance(pattern, exp.Literal) and not isinstance(like.parent, exp.Escape):
        pattern.set("this", str(pattern.this).replace("\\", "\\\\"))


def _of_relation(predicate: Predicate, seen: Seen) -> Predicate | None:
    """The predicate with paths inside the relation; None if it may be about another one."""
    paths = {column.path: _path(column.path, seen) for column in columns(predicate)}
    if not paths or any(path is None for path in paths.values()):
        return None
    return _renamed(predicate, {old: new for old, new in paths.items() if new is not None})


def _path(path: tuple[str, ...], seen: Seen) -> tuple[str, ...] | None:
    folded = tuple(part.casefold() for part in path)
    full = tuple(part.casefold() for part in seen.parts)
    if len(full) > 1 and len(path) > len(full) and folded[: len(full)] == full:
        return path[len(full) :]
    if folded[0] == seen.alias.casefold():
        return path[1:] or None  # the whole row
    return None if folded[0] in seen.others else path


def _renamed(predicate: Predicate, paths: Mapping[tuple[str, ...], tuple[str, ...]]) -> Predicate:
    match predicate:
        case Constant():
            return predicate
        case Not(operand):
            return Not(_renamed(operand, paths))
        case And(operands):
            return And(tuple(_renamed(p, paths) for p in operands))
        case Or(operands):
            return Or(tuple(_renamed(p, paths) for p in operands))
        case _:
            return replace(predicate, column=Column(paths[predicate.column.path]))
