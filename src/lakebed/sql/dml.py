"""INSERT, UPDATE, DELETE and TRUNCATE."""

from collections.abc import Sequence
from dataclasses import replace

from lakebed.sql.defaults import misplaced_defaults
from lakebed.sql.fragments import Fragments, Relation
from lakebed.sql.query import Expression, Select
from lakebed.sql.reader import Reader
from lakebed.sql.source import Token
from lakebed.sql.statements import (
    Assignment,
    Delete,
    Insert,
    PartitionValue,
    Target,
    Truncate,
    Update,
)

_NO_ALIAS = ("SET", "USING", "WHERE", "RETURNING")
_UPSERT = "use MERGE INTO t USING (…) s ON … WHEN MATCHED THEN … WHEN NOT MATCHED THEN …"


def read_insert(reader: Reader, with_start: int | None = None) -> Insert:
    """`with_start` is where a WITH in front of INSERT begins: it belongs to the source."""
    head = reader.start
    reader.expect("INSERT")
    overwrite = reader.take("OVERWRITE")
    if reader.take("OR"):
        raise reader.unsupported("INSERT OR … is not supported", hint=_UPSERT)
    if not overwrite:
        reader.expect("INTO")
    else:
        reader.take("INTO")
    reader.take("TABLE")
    target = read_target(reader, aliased=False)
    fragments = Fragments(reader)
    partition = _partition(reader, fragments)
    by_name = reader.take("BY", "NAME")
    columns = None
    if reader.sees("(") and reader.peek(1).upper not in ("SELECT", "WITH", "FROM", "VALUES", "("):
        columns = tuple(reader.listed(lambda: reader.path("a column")))
    by_name = reader.take("BY", "NAME") or by_name
    reader.take("BY", "POSITION")
    replace_where = None
    if reader.take("REPLACE"):
        reader.expect("WHERE")
        start, end = reader.skip_until("SELECT", "FROM", "VALUES", "WITH", "TABLE")
        overwrite, replace_where = True, fragments.expression(start, end)
    has_defaults = any(token.upper == "DEFAULT" for token in reader.tokens[reader.at :])
    source = _insert_source(
        reader, fragments, head, with_start=with_start, has_defaults=has_defaults
    )
    return Insert(
        target,
        reader.span,
        source,
        columns,
        by_name,
        overwrite,
        partition,
        replace_where,
        has_defaults,
    )


def _insert_source(
    reader: Reader,
    fragments: Fragments,
    head: int,
    *,
    with_start: int | None,
    has_defaults: bool,
) -> Select:
    start = reader.start
    if reader.sees("DEFAULT", "VALUES"):
        raise reader.unsupported(
            "DEFAULT VALUES is not supported", hint="name the columns that have values"
        )
    for offset in range(len(reader.tokens) - reader.at):
        words = (reader.peek(offset).upper, reader.peek(offset + 1).upper)
        if words in (("ON", "CONFLICT"), ("ON", "DUPLICATE")):
            raise reader.unsupported("ON CONFLICT is not supported", hint=_UPSERT)
    for token in misplaced_defaults(reader.tokens[reader.at :]) if has_defaults else ():
        raise reader.unsupported(
            "DEFAULT stands for a whole value of VALUES only",
            hint="write VALUES (1, DEFAULT), or leave the column out",
            offset=token.start,
        )
    if reader.at_end:
        raise reader.error("expected VALUES or a query")
    if with_start is not None:
        return fragments.select(with_start, reader.end, hole=(head, start))
    return fragments.select(start, reader.end)


def _partition(reader: Reader, fragments: Fragments) -> tuple[PartitionValue, ...]:
    if not reader.take("PARTITION"):
        return ()

    def item() -> PartitionValue:
        column = reader.name("a partition column")
        if not reader.take("="):
            return PartitionValue(column, None)
        return PartitionValue(column, fragments.expression(*reader.skip_until(",")))

    found = tuple(reader.listed(item))
    if reader.take("IF"):
        reader.expect("NOT", "EXISTS")
        raise reader.unsupported("IF NOT EXISTS is not supported here", hint="leave it out")
    return found


def read_update(reader: Reader, fragments: Fragments | None = None) -> Update:
    reader.expect("UPDATE")
    target = read_target(reader)
    fragments = fragments or Fragments(reader)
    relation = see(fragments, target)
    reader.expect("SET")
    assignments = read_assignments(reader, fragments, "FROM", "WHERE", "RETURNING")
    source, aliases = None, tuple[str, ...]()
    if reader.take("FROM"):
        source, aliases = fragments.relations(*reader.skip_until("WHERE", "RETURNING"))
    start = reader.at + 1
    where, target = _where(reader, fragments, target, relation)
    alone = _source_parts(reader, fragments, start, aliases) if where and aliases else ()
    return Update(target, reader.span, assignments, where, source, aliases, alone)


def _source_parts(
    reader: Reader, fragments: Fragments, at: int, aliases: tuple[str, ...]
) -> tuple[Expression, ...]:
    """Of `a.x = b.x AND t.id = a.id AND …` those that name columns of these relations alone."""
    known, found = {alias.casefold() for alias in aliases}, []
    reader.at = at
    while not reader.at_end:
        first = reader.at
        start, end = reader.skip_until("AND", "OR", "BETWEEN")
        if reader.peek().upper in ("OR", "BETWEEN"):
            return ()  # AND does not part conditions there
        if _names_only(reader.tokens[first : reader.at], known):
            found.append(fragments.expression(start, end))
        reader.take("AND")
    return tuple(found)


def _names_only(tokens: Sequence[Token], aliases: set[str]) -> bool:
    """`a.x = b.y`, and nothing else; other forms are for the engine."""
    names = [t.name.casefold() for t in tokens if t.kind in ("word", "quoted")]
    return (
        [t.text for t in tokens if t.kind == "mark"] == [".", "=", "."]
        and len(tokens) == 7
        and names[0] in aliases
        and names[2] in aliases
    )


def read_delete(reader: Reader, fragments: Fragments | None = None) -> Delete:
    reader.expect("DELETE", "FROM")
    target = read_target(reader)
    fragments = fragments or Fragments(reader)
    relation = see(fragments, target)
    source = None
    if reader.take("USING"):
        source, _ = fragments.relations(*reader.skip_until("WHERE", "RETURNING"))
    where, target = _where(reader, fragments, target, relation)
    return Delete(target, reader.span, where, source)


def read_truncate(reader: Reader) -> Truncate:
    reader.expect("TRUNCATE")
    reader.take("TABLE")
    target = read_target(reader, aliased=False)
    reader.expect_end()
    return Truncate(target, reader.span)


def _where(
    reader: Reader, fragments: Fragments, target: Target, relation: Relation
) -> tuple[Expression | None, Target]:
    where = None
    if reader.take("WHERE"):
        start, end = reader.skip_until("RETURNING")
        where = fragments.expression(start, end)
        target = replace(target, where=fragments.conjuncts(start, end, relation))
    if reader.sees("RETURNING"):
        raise reader.unsupported("RETURNING is not supported", hint="SELECT the rows before")
    reader.expect_end()
    return where, target


def read_target(reader: Reader, *, aliased: bool = True) -> Target:
    """The table that is written: `ns.t`, `ns.t@branch`, `ns.t AS x`."""
    start = reader.start
    reader.take("ONLY")
    name = reader.table()
    branch = None
    if reader.sees("@") and reader.start == reader.previous_end:
        reader.next()
        branch = reader.name("the name of a branch")
    span, alias = reader.span_from(start), name.name
    if aliased and (reader.take("AS") or _is_alias(reader)):
        alias = reader.name("an alias")
    return Target(name, span, alias, branch)


def _is_alias(reader: Reader) -> bool:
    token = reader.peek()
    return token.kind == "quoted" or (token.kind == "word" and token.upper not in _NO_ALIAS)


def see(fragments: Fragments, target: Target) -> Relation:
    """Expressions of the statement may name the target."""
    relation = Relation(target.name, target.alias)
    fragments.seen.append(relation)
    return relation


def read_assignments(reader: Reader, fragments: Fragments, *ends: str) -> tuple[Assignment, ...]:
    def path() -> tuple[str, ...]:
        parts = reader.path("a column")
        names = {relation.alias.casefold() for relation in fragments.seen[:1]}
        return parts[1:] if len(parts) > 1 and parts[0].casefold() in names else parts

    def item() -> tuple[Assignment, ...]:
        start = reader.start
        if reader.sees("("):
            paths = reader.listed(path)
            reader.expect("=")
            values = _row_values(reader, fragments, len(paths))
            return tuple(map(Assignment, paths, values))
        one = path()
        reader.expect("=")
        if reader.sees("DEFAULT") and reader.peek(1).upper in (",", "", *ends):
            reader.next()
            return (Assignment(one, None),)
        if reader.at_end:
            raise reader.error("expected a value", offset=start)
        return (Assignment(one, fragments.expression(*reader.skip_until(",", *ends))),)

    return tuple(each for listed in reader.separated(item) for each in listed)


def _row_values(reader: Reader, fragments: Fragments, size: int) -> Sequence[Expression | None]:
    """`(1, DEFAULT)`, `ROW(1, 2)` or `(SELECT a, b FROM …)`, for as many columns."""
    reader.take("ROW")
    start = reader.start
    if reader.sees("(") and reader.peek(1).upper in ("SELECT", "WITH", "FROM", "VALUES"):
        reader.next()
        found = fragments.row(*reader.skip_until(), size)
        reader.expect(")")
        return found

    def value() -> Expression | None:
        if reader.sees("DEFAULT") and reader.peek(1).upper in (",", ")"):
            reader.next()
            return None
        return fragments.expression(*reader.skip_until(","))

    values = reader.listed(value)
    if len(values) != size:
        raise reader.error(f"{size} columns are set, but {len(values)} values given", offset=start)
    return values
