"""Where a place in the engine's text stands in the user's script: found by the tokens of both."""

import re
from difflib import SequenceMatcher

from lakebed.model.errors import SqlError
from lakebed.sql.query import Expression, Select, Span
from lakebed.sql.reader import string_value
from lakebed.sql.source import Source, Token

_PLACE = re.compile(r"^line \d+, column \d+: ")
_TOLD = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_MOST_TOKENS = 3000  # comparing more takes too long for an error message


def offset_of(source: Source, piece: Select | Expression, line: int, column: int) -> int | None:
    """The offset in `source` of line and column of `piece.sql`; None when it cannot be told."""
    try:
        engine = Source(piece.sql)
    except SqlError:
        return None
    at = engine.offset(line, column)
    place = next((n for n, t in enumerate(engine.tokens) if t.start <= at < t.end), None)
    if place is None:
        return None
    for table in piece.tables:
        if engine.tokens[place].name == table.placeholder:
            return table.span.start
    own = _inside(source, piece.span)
    if max(len(engine.tokens), len(own)) > _MOST_TOKENS:
        return None
    left, right = [_text(t) for t in engine.tokens], [_text(t) for t in own]
    for block in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        if block.a <= place < block.a + block.size:
            return own[block.b + place - block.a].start
    return None


def name_offset(source: Source, span: Span, name: str) -> int | None:
    """Where a statement first writes a name."""
    wanted = name.casefold()
    return next((t.start for t in _inside(source, span) if t.name.casefold() == wanted), None)


def text_offset(source: Source, span: Span, message: str) -> int | None:
    """Where a statement writes a text in quotes that a message tells of."""
    told = {a or b for a, b in _TOLD.findall(message)}
    for token in _inside(source, span):
        if token.kind == "string" and token.text[0] == "'" and string_value(token) in told:
            return token.start
    return None


def _inside(source: Source, span: Span) -> list[Token]:
    return [t for t in source.tokens if span.start <= t.start < span.end]


def _text(token: Token) -> str:
    return "?" if token.kind == "parameter" else token.text


def unplaced(message: str) -> str:
    """The engine's words without the place in its own text."""
    return _PLACE.sub("", message)
