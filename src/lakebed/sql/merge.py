"""MERGE: a target, a source, a condition, and what happens to each kind of row."""

from dataclasses import replace

from lakebed.model.errors import SqlError
from lakebed.model.quoting import quoted
from lakebed.sql.dml import read_assignments, read_target, see
from lakebed.sql.fragments import Fragments, Relation, rows_of
from lakebed.sql.query import Conjunct, Expression, Select
from lakebed.sql.reader import Reader
from lakebed.sql.statements import Merge, MergeClause, Target

_ENDS = ("WHEN", "RETURNING")


def read_merge(reader: Reader, fragments: Fragments | None = None) -> Merge:
    reader.expect("MERGE")
    evolves = reader.take("WITH", "SCHEMA", "EVOLUTION")
    reader.expect("INTO")
    target = read_target(reader)
    fragments = fragments or Fragments(reader)
    relation = see(fragments, target)
    reader.expect("USING")
    source, alias = _source(reader, fragments)
    on, conjuncts = _on(reader, fragments, target, relation, alias)
    clauses = []
    while reader.sees("WHEN"):
        clauses.append(_clause(reader, fragments))
    if not clauses:
        raise reader.error("expected WHEN MATCHED or WHEN NOT MATCHED")
    if reader.sees("RETURNING"):
        raise reader.unsupported("RETURNING is not supported", hint="SELECT the rows afterwards")
    reader.expect_end()
    if all(clause.kind != "not_matched_by_source" for clause in clauses):
        target = replace(target, where=conjuncts)
    return Merge(target, reader.span, source, alias, on, tuple(clauses), evolves)


def _source(reader: Reader, fragments: Fragments) -> tuple[Select, str]:
    start, end = reader.skip_until("ON", "USING", "WHEN")
    body, aliases = fragments.relations(start, end)
    if len(aliases) != 1 or not aliases[0]:
        raise reader.error(
            "the source of MERGE needs one alias", hint="write USING (…) AS s", offset=start
        )
    text = reader.source.text[start:end]
    sql = rows_of(body.sql)
    return Select(sql, body.span, body.tables, body.parameters, text), aliases[0]


def _on(
    reader: Reader, fragments: Fragments, target: Target, relation: Relation, source: str
) -> tuple[Expression, tuple[Conjunct, ...]]:
    if reader.take("USING"):
        start = reader.start
        names = reader.listed(lambda: reader.name("a column"))
        left, right = quoted(target.alias), quoted(source)
        equal = [f"{left}.{quoted(name)} = {right}.{quoted(name)}" for name in names]
        return Expression(" AND ".join(equal), reader.span_from(start)), ()
    reader.expect("ON")
    start, end = reader.skip_until("WHEN")
    return fragments.expression(start, end), fragments.conjuncts(start, end, relation)


def _clause(reader: Reader, fragments: Fragments) -> MergeClause:
    reader.expect("WHEN")
    if reader.take("MATCHED"):
        clause = MergeClause("matched", "nothing")
    else:
        reader.expect("NOT", "MATCHED")
        by_source = reader.take("BY", "SOURCE")
        if not by_source:
            reader.take("BY", "TARGET")
        clause = MergeClause("not_matched_by_source" if by_source else "not_matched", "nothing")
    if reader.take("AND"):
        clause = replace(clause, condition=fragments.expression(*reader.skip_until("THEN")))
    reader.expect("THEN")
    if reader.sees("INSERT"):
        if clause.kind != "not_matched":
            raise _misplaced(reader, "INSERT", "WHEN NOT MATCHED")
        return _insert(reader, fragments, clause)
    if reader.sees("UPDATE") or reader.sees("DELETE"):
        if clause.kind == "not_matched":
            raise _misplaced(reader, reader.peek().upper, "WHEN MATCHED")
        return _change(reader, fragments, clause)
    if reader.take("DO", "NOTHING"):
        return clause
    raise reader.error("expected INSERT, UPDATE, DELETE or DO NOTHING")


def _misplaced(reader: Reader, action: str, place: str) -> SqlError:
    return reader.error(
        f"{action} does not belong here", hint=f"write it behind {place}", offset=reader.start
    )


def _change(reader: Reader, fragments: Fragments, clause: MergeClause) -> MergeClause:
    if reader.take("DELETE"):
        return replace(clause, action="delete")
    reader.expect("UPDATE")
    everything = reader.take("*") or reader.take("SET", "*") or reader.take("BY", "NAME")
    if everything or reader.at_end or reader.sees("WHEN"):
        if clause.kind != "matched":
            raise reader.error("there is no source row to take values from")
        return replace(clause, action="update_all")
    reader.expect("SET")
    assignments = read_assignments(reader, fragments, *_ENDS)
    return replace(clause, action="update", assignments=assignments)


def _insert(reader: Reader, fragments: Fragments, clause: MergeClause) -> MergeClause:
    reader.expect("INSERT")
    everything = reader.take("*") or reader.take("ROW") or reader.take("BY", "NAME")
    if everything or reader.at_end or reader.sees("WHEN"):
        return replace(clause, action="insert_all")
    columns = None
    if reader.sees("("):
        columns = tuple(reader.listed(lambda: reader.path("a column")))
    reader.expect("VALUES")

    def value() -> Expression | None:
        if reader.sees("DEFAULT") and reader.peek(1).upper in (",", ")"):
            reader.next()
            return None
        return fragments.expression(*reader.skip_until(","))

    start = reader.start
    values = tuple(reader.listed(value))
    if columns is not None and len(columns) != len(values):
        raise reader.error(
            f"{len(columns)} columns are named, but {len(values)} values are given", offset=start
        )
    return replace(clause, action="insert", columns=columns, values=values)
