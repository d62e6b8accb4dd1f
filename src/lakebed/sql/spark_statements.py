"""Statements in Spark's SQL that change rows, as values: the pieces are the user's own text."""

import re
from dataclasses import dataclass

from lakebed.model.errors import SqlError, SqlUnsupported
from lakebed.rowops.clause import Clause, When
from lakebed.sql.dml import read_target
from lakebed.sql.reader import Reader
from lakebed.sql.source import Source
from lakebed.sql.statements import Target

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "(")
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")
_STOPS = ("WHEN", "RETURNING")
_FIRST = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+|\()", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows go into `columns` in order (all of the table's if None), or by their names."""

    target: Target
    source: str  # a query
    columns: tuple[str, ...] | None
    by_name: bool
    overwrite: bool


@dataclass(frozen=True, slots=True)
class Update:
    target: Target
    values: dict[str, str]
    where: str | None


@dataclass(frozen=True, slots=True)
class Delete:
    target: Target
    where: str | None


@dataclass(frozen=True, slots=True)
class Merge:
    target: Target
    source: str  # a query
    alias: str
    on: str
    clauses: tuple[Clause, ...]


SparkStatement = Insert | Update | Delete | Merge


def parse_spark_statement(text: object) -> SparkStatement | None:
    """A statement that changes rows; None: it is a query."""
    if not isinstance(text, str):
        raise SqlError(f"SQL must be text, not {type(text).__name__}", hint="pass a str")
    found = _FIRST.match(text)
    word = found[1].upper() if found else ""
    if word in _QUERIES:
        return None
    if not word:
        raise SqlError("there is no statement", hint="write SELECT … or MERGE INTO …")
    if "\\" in text and word in _CHANGES:
        raise SqlUnsupported(
            "a backslash cannot stand in a statement that changes rows",
            hint="use the methods, such as sp.update(…), or chr(92)",
        )
    source = Source(text.rstrip().rstrip(";"))
    reader = Reader(source, source.tokens)
    match word:
        case "INSERT":
            return _insert(reader)
        case "UPDATE":
            return _update(reader)
        case "DELETE":
            return _delete(reader)
        case "MERGE":
            return _merge(reader)
        case _:
            raise reader.unsupported(
                f"{word} is not run by Spark here",
                hint="sp.sql takes queries, INSERT, UPDATE, DELETE and MERGE; lake.sql the rest",
            )


def _insert(reader: Reader) -> Insert:
    reader.expect("INSERT")
    overwrite = reader.take("OVERWRITE")
    if not overwrite:
        reader.expect("INTO")
    reader.take("TABLE")
    target = read_target(reader, aliased=False)
    if reader.sees("PARTITION") or reader.sees("REPLACE"):
        raise reader.unsupported(
            f"{reader.peek().upper} is not supported here",
            hint="use sp.overwrite(frame, name, where=…) or partitions=True",
        )
    by_name = reader.take("BY", "NAME")
    columns = None
    if reader.sees("(") and reader.peek(1).upper not in _QUERIES:
        columns = tuple(reader.listed(lambda: reader.name("a column")))
    by_name = reader.take("BY", "NAME") or by_name
    return Insert(target, _query(reader, reader.start, reader.end), columns, by_name, overwrite)


def _update(reader: Reader) -> Update:
    reader.expect("UPDATE")
    target = read_target(reader)
    reader.expect("SET")
    return Update(target, _assignments(reader, target.alias, "WHERE", "FROM"), _where(reader))


def _delete(reader: Reader) -> Delete:
    reader.expect("DELETE", "FROM")
    return Delete(read_target(reader), _where(reader))


def _where(reader: Reader) -> str | None:
    where = _slice(reader, *_STOPS) if reader.take("WHERE") else None
    reader.expect_end()
    return where


def _merge(reader: Reader) -> Merge:
    reader.expect("MERGE", "INTO")
    target = read_target(reader)
    reader.expect("USING")
    source, alias = _source(reader)
    reader.expect("ON")
    on = _slice(reader, *_STOPS)
    clauses = []
    while reader.sees("WHEN"):
        clauses.append(_clause(reader, target, alias))
    reader.expect_end()
    return Merge(target, source, alias, on, tuple(clauses))


def _source(reader: Reader) -> tuple[str, str]:
    """`(SELECT …) AS s`, or the name of a table or view."""
    start = reader.start
    if reader.take("("):
        inner, end = reader.skip_until()
        reader.expect(")")
        query = _query(reader, inner, end)
        reader.take("AS")
        return query, reader.name("an alias of the source")
    path = reader.path("a table, a view or a query in brackets")
    end = reader.previous_end
    given = "" if reader.sees("ON") else None
    if given is None:
        reader.take("AS")
        given = reader.name("an alias of the source")
    text = f"SELECT * FROM {reader.source.plain[start:end]}"
    return text, given or path[-1]


def _clause(reader: Reader, target: Target, source: str) -> Clause:
    reader.expect("WHEN")
    when = When.MATCHED
    if not reader.take("MATCHED"):
        reader.expect("NOT", "MATCHED")
        by_source = reader.take("BY", "SOURCE")
        when = When.BY_SOURCE if by_source else When.NOT_MATCHED
        if not by_source:
            reader.take("BY", "TARGET")
    condition = _slice(reader, "THEN") if reader.take("AND") else None
    reader.expect("THEN")
    if reader.take("DELETE") and when is not When.NOT_MATCHED:
        return Clause(when, "delete", condition)
    if reader.take("UPDATE") and when is not When.NOT_MATCHED:
        reader.expect("SET")
        values = None
        if not reader.take("*"):
            values = _assignments(reader, target.alias, *_STOPS)
        elif when is When.BY_SOURCE:
            raise reader.error(f"there is no row of {source} to take values from")
        return Clause(when, "update", condition, values)
    if when is When.NOT_MATCHED and reader.take("INSERT"):
        return Clause(when, "insert", condition, _inserted(reader))
    raise reader.error("this action does not belong here")


def _inserted(reader: Reader) -> dict[str, str] | None:
    if reader.take("*"):
        return None
    columns = reader.listed(lambda: ".".join(reader.path("a column")))
    reader.expect("VALUES")
    start = reader.start
    values = reader.listed(lambda: _slice(reader, ","))
    if len(columns) != len(values):
        raise reader.error(
            f"{len(columns)} columns are named, but {len(values)} values are given", offset=start
        )
    return dict(zip(columns, values, strict=True))


def _assignments(reader: Reader, alias: str, *ends: str) -> dict[str, str]:
    found: dict[str, str] = {}

    def one() -> None:
        path = reader.path("a column")
        if len(path) > 1 and path[0].casefold() == alias.casefold():
            path = path[1:]
        name = ".".join(path)
        if name in found:
            raise reader.error(f"{name} is set twice", offset=reader.start)
        reader.expect("=")
        found[name] = _slice(reader, ",", *ends)

    reader.separated(one)
    return found


def _slice(reader: Reader, *words: str) -> str:
    start, end = reader.skip_until(*words)
    return reader.source.plain[start:end]


def _query(reader: Reader, start: int, end: int) -> str:
    if start >= end:
        raise reader.error("a query is missing")
    return reader.source.plain[start:end]
