"""Finds the lake's tables in a query in Spark's SQL, which is otherwise left as it was written."""

from collections.abc import Iterable, Iterator, Sequence
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
    alias: str | None  # to add, so that columns can be named by the table's name; None: it has one
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
    nodes = list(tree.find_all(exp.Table))
    found = [t for node in nodes if (t := _table(node, nodes, tokens)) is not None]
    return sorted(found, key=lambda table: table.start)


def with_names(
    text: str, tables: Sequence[SparkTable], names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Pieces of the text, each with the name that stands for the table behind it."""
    edits = [
        (t.start, t.end, name, f" AS {_quoted(t.alias)}" if t.alias else "")
        for t, name in zip(tables, names, strict=True)
    ]
    at, before = 0, ""
    for start, end, name, behind in sorted([*edits, *_qualifiers(text, tables)]):
        before += text[at:start]
        if name:
            yield before, name
            before = ""
        before += behind
        at = end
    yield before + text[at:], ""


def _qualifiers(text: str, tables: Sequence[SparkTable]) -> Iterator[tuple[int, int, str, str]]:
    """`sales.orders.id`: Spark gets to know the table by its alias alone."""
    known = {_folded(t.parts): t.alias for t in tables if t.alias}
    taken = [(t.start, t.end) for t in tables]
    tokens = sqlglot.tokenize(text, dialect="spark") if known else []
    at = 0
    while at < len(tokens):
        chain = _chain(tokens, at)
        start = tokens[at].start
        names = _folded([token.text for token in chain])
        # A column, or a star, stands behind it.
        dotted = _is_dot(tokens, at + 2 * len(chain) - 1)
        lengths = range(len(names) if dotted else len(names) - 1, 1, -1)
        length = next((n for n in lengths if names[:n] in known), 0)
        if length and not any(a <= start < b for a, b in taken):
            yield start, chain[length - 1].end + 1, "", _quoted(known[names[:length]])
        at += max(1, 2 * len(chain) - 1)


def _chain(tokens: Sequence[Token], at: int) -> list[Token]:
    """Names joined by dots, from this place on."""
    chain: list[Token] = []
    while at < len(tokens) and _is_name(tokens[at]):
        chain.append(tokens[at])
        if not _is_dot(tokens, at + 1):
            break
        at += 2
    return chain


def _is_dot(tokens: Sequence[Token], at: int) -> bool:
    return 0 <= at < len(tokens) and tokens[at].token_type == TokenType.DOT


def _is_name(token: Token) -> bool:
    if token.token_type == TokenType.STRING:
        return False
    return token.token_type == TokenType.IDENTIFIER or token.text.isidentifier()


def _folded(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.casefold() for part in parts)


def _quoted(name: str | None) -> str:
    return "`" + (name or "").replace("`", "``") + "`"


def _table(
    node: exp.Table, nodes: Sequence[exp.Table], tokens: Sequence[Token]
) -> SparkTable | None:
    pieces = node.parts
    if len(pieces) < 2 or not all(isinstance(piece, exp.Identifier) for piece in pieces):
        return None
    if pieces[0].name.casefold() in _BY_PATH and len(pieces) == 2 and "/" in pieces[1].name:
        return None
    parts = tuple(piece.name for piece in pieces)
    start, end = int(pieces[0].meta["start"]), int(pieces[-1].meta["end"]) + 1
    alias = None if node.alias else _alias(node, parts, nodes)
    if node.args.get("version") is None:
        return SparkTable(parts, start, end, alias)
    return _travelled(parts, start, alias, [t for t in tokens if t.start >= end])


def _alias(node: exp.Table, parts: tuple[str, ...], nodes: Sequence[exp.Table]) -> str:
    """`a.t` and `b.t` in one FROM need two names."""
    select = node.find_ancestor(exp.Select)
    twins = {
        _folded(piece.name for piece in other.parts)
        for other in nodes
        if other.find_ancestor(exp.Select) is select
        and other.alias_or_name.casefold() == parts[-1].casefold()
    }
    return ".".join(parts) if len(twins) > 1 else parts[-1]


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
