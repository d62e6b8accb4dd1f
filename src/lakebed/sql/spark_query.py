"""Finds the lake's tables in a query in Spark's SQL, which is otherwise left as it was written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from lakebed.model.errors import SqlUnsupported
from lakebed.model.quoting import quoted

_BY_PATH = frozenset(
    {"avro", "binaryfile", "csv", "delta", "iceberg", "json", "orc", "parquet", "text", "xml"}
)
_VERSION_WORDS = frozenset({"VERSION", "SYSTEM_VERSION"})
_TIME_WORDS = frozenset({"TIMESTAMP", "SYSTEM_TIME"})


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A name of several parts in FROM; `end` is behind the clause that names a version, if any."""

    parts: tuple[str, ...]
    start: int
    end: int
    alias: str | None  # to add, so that columns can be named by the table's name
    version: int | None = None
    ref: str | None = None
    timestamp: str | None = None

    @property
    def name(self) -> str:
        return ".".join(self.parts)


def find_spark_tables(text: str) -> list[SparkTable]:
    """In the order of the text; none where sqlglot understands nothing: Spark says why then."""
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
        tokens = sqlglot.tokenize(text, dialect="spark")
    except SqlglotError:
        return []
    found = [t for node in tree.find_all(exp.Table) if (t := _table(node, tokens)) is not None]
    return sorted(found, key=lambda table: table.start)


def with_names(
    text: str, tables: Sequence[SparkTable], names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Pieces of the text, each with the name that stands for the table behind it."""
    at, alias = 0, ""
    for table, name in zip(tables, names, strict=True):
        yield alias + text[at : table.start], name
        at, alias = table.end, f" AS `{table.alias}`" if table.alias else ""
    yield alias + text[at:], ""


def _table(node: exp.Table, tokens: Sequence[Token]) -> SparkTable | None:
    pieces = node.parts
    if len(pieces) < 2 or not all(isinstance(piece, exp.Identifier) for piece in pieces):
        return None
    if pieces[0].name.casefold() in _BY_PATH and len(pieces) == 2 and "/" in pieces[1].name:
        return None
    parts = tuple(piece.name for piece in pieces)
    start, end = int(pieces[0].meta["start"]), int(pieces[-1].meta["end"]) + 1
    alias = None if node.alias else parts[-1].replace("`", "``")
    if node.args.get("version") is None:
        return SparkTable(parts, start, end, alias)
    return _travelled(parts, start, alias, [t for t in tokens if t.start >= end])


def _travelled(
    parts: tuple[str, ...], start: int, alias: str | None, behind: Sequence[Token]
) -> SparkTable:
    words = [token.text.upper() for token in behind[:5]]
    first = 1 if words[0] == "FOR" else 0
    value = behind[first + 3]
    if value.token_type not in (TokenType.NUMBER, TokenType.STRING):
        raise SqlUnsupported(
            f"the version of {quoted('.'.join(parts))} is no number and no text",
            hint="write VERSION AS OF 3, VERSION AS OF 'tag' or TIMESTAMP AS OF '2026-11-01'",
        )
    end = value.end + 1
    if words[first] in _TIME_WORDS:
        return SparkTable(parts, start, end, alias, timestamp=value.text)
    assert words[first] in _VERSION_WORDS, words
    if value.token_type == TokenType.NUMBER and value.text.isdigit():
        return SparkTable(parts, start, end, alias, version=int(value.text))
    return SparkTable(parts, start, end, alias, ref=value.text)
