"""INSERT, UPDATE, DELETE and TRUNCATE."""

from dataclasses import replace

from lakebed.sql.fragments import Fragments, Relation
from lakebed.sql.query import Expression, Select
from lakebed.sql.reader import Reader
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
    source = _insert_source(reader, fragments, head, with_start)
    return Insert(
        target, reader.span, source, columns, by_name, overwrite, partition, replace_where
    )


def _insert_source(
    reader: Reader, fragments: Fragments, head: int, with_start: int | None
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
        if words[0] == "DEFAULT" and words[1] in (",", ")"):
            raise reader.unsupported(
                "DEFAULT inside VALUES is not supported",
                hint="name the columns that have values and leave the others out",
                offset=reader.peek(offset).start,
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


def read_update(reader: Reader) -> Update:
    reader.expect("UPDATE")
    target = read_target(reader)
    fragments = Fragments(reader)
    relation = see(fragments, target)
    reader.expect("SET")
    assignments = read_assignments(reader, fragments, "FROM", "WHERE", "RETURNING")
    source, aliases = None, tuple[str, ...]()
    if reader.take("FROM"):
        source, aliases = fragments.relations(*reader.skip_until("WHERE", "RETURNING"))
    where, target = _where(reader, fragments, target, relation)
    return Update(target, reader.span, assignments, where, source, aliases)


def read_delete(reader: Reader) -> Delete:
    reader.expect("DELETE", "FROM")
    target = read_target(reader)
    fragments = Fragments(reader)
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
    def item() -> Assignment:
        if reader.sees("("):
            raise reader.unsupported(
                "a list of columns cannot be set at once", hint="write SET a = …, b = …"
            )
        start = reader.start
        path = reader.path("a column")
        names = {relation.alias.casefold() for relation in fragments.seen[:1]}
        if len(path) > 1 and path[0].casefold() in names:
            path = path[1:]
        reader.expect("=")
        if reader.sees("DEFAULT") and reader.peek(1).upper in (",", "", *ends):
            reader.next()
            return Assignment(path, None)
        if reader.at_end:
            raise reader.error("expected a value", offset=start)
        return Assignment(path, fragments.expression(*reader.skip_until(",", *ends)))

    return tuple(reader.separated(item))
