"""The text of a script: cut into tokens as the engine cuts it, positions, errors that show a place.

Comments and unusual white space become plain spaces, so that no two readers of the text can
disagree about where a comment ends. Offsets stay those of the user's text.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal as Choice

from lakebed.model.errors import SqlError
from lakebed.model.names import is_text
from lakebed.sql.query import Span

Kind = Choice["word", "quoted", "string", "number", "parameter", "mark"]
_WIDEST_EXCERPT = 100
_NAME = r"[^\W\d][\w$]*"
_TOKEN = re.compile(
    rf"""(?P<blank>\s+|--[^\n\r]*)
    |(?P<string>[eE]'(?:[^'\\]|''|\\.)*'|[xXbB]?'(?:[^']|'')*'|(?P<tag>\$(?:{_NAME})?\$).*?(?P=tag))
    |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    |(?P<word>{_NAME})
    |(?P<number>0[xX][0-9a-fA-F_]+|(?:\d[\d_]*(?:\.(?!\.)[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
    |(?P<parameter>\?|\$(?:\d+|{_NAME}))
    |(?P<mark>=>|::|:=|[-+*/%^<>=~!@&|#,.;:()\[\]{{}}\\$])""",
    re.VERBOSE | re.DOTALL,
)
_HINT = "check the text at and before this place"
_COMMENT = re.compile(r"/\*|\*/")
_UNCLOSED = {"'": "a string", '"': "a quoted name", "`": "a quoted name", "$": "a string"}


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """A bare word or mark in capitals; nothing for quoted names and literals."""
        return self.text.upper() if self.kind in ("word", "mark") else ""

    @property
    def name(self) -> str:
        """What a word or quoted name stands for."""
        if self.kind != "quoted":
            return self.text
        return self.text[1:-1].replace(self.text[0] * 2, self.text[0])


@dataclass(slots=True)
class Source:
    """A script; `text` is what the user wrote, `plain` the same without comments."""

    text: str
    plain: str = ""
    statement: int = 0  # the number of the statement being read; 0 while there is only one
    tokens: list[Token] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines = [0, *(m.end() for m in re.finditer(r"\n|\r(?!\n)", self.text))]
        if not is_text(self.text):
            raise SqlError(
                "the SQL text holds a NUL character or half a surrogate pair",
                hint="give valid Unicode text",
            )
        self._cut()

    def _cut(self) -> None:
        pieces, at = [], 0
        while at < len(self.text):
            if self.text.startswith("/*", at):
                end = self._comment_end(at)
                pieces.append(_blank(self.text[at:end]))
                at = end
                continue
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self._unreadable(at)
            if found.group() in ("e", "E") and self.text.startswith("'", at + 1):
                raise self._unreadable(at + 1)
            kind, end = found.lastgroup, found.end()
            if kind == "blank":
                pieces.append(_blank(found.group()))
            else:
                pieces.append(found.group())
                self.tokens.append(Token(_kind(kind), found.group(), at, end))
            at = end
        self.plain = "".join(pieces)

    def _comment_end(self, start: int) -> int:
        depth = 0
        for mark in _COMMENT.finditer(self.text, start):
            depth += 1 if mark.group() == "/*" else -1
            if not depth:
                return mark.end()
        raise self.error(start, "this comment is not closed", hint="close it with */")

    def _unreadable(self, at: int) -> SqlError:
        char = self.text[at]
        if char in _UNCLOSED:
            return self.error(at, f"{_UNCLOSED[char]} is not closed", hint=f"close it with {char}")
        return self.error(at, f"unexpected character {char!r}", hint='quote unusual names: "a b"')

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1 on."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """What `place` makes of it, backwards."""
        return self._lines[min(line, len(self._lines)) - 1] + column - 1

    def span(self, start: int, end: int) -> Span:
        return Span(start, end, *self.place(start))

    def error(
        self, offset: int, message: str, *, hint: str = "", kind: type[SqlError] = SqlError
    ) -> SqlError:
        line, column = self.place(offset)
        return kind(
            self.shown(offset, message),
            hint=hint or _HINT,
            line=line,
            character=column,
            **({"statement": self.statement} if self.statement else {}),
        )

    def shown(self, offset: int, message: str) -> str:
        """The message with its place, and the line under which a mark shows it."""
        line, column = self.place(offset)
        number = f"statement {self.statement}, " if self.statement else ""
        return f"{number}line {line}, column {column}: {message}\n{self._excerpt(line, column)}"

    def _excerpt(self, line: int, column: int) -> str:
        start = self._lines[line - 1]
        end = self._lines[line] if line < len(self._lines) else len(self.text)
        shown = self.text[start:end].rstrip("\r\n").replace("\t", " ")
        if column > _WIDEST_EXCERPT // 2:
            cut = column - _WIDEST_EXCERPT // 2
            shown, column = shown[cut:], column - cut
        return f"  {shown[:_WIDEST_EXCERPT]}\n  {' ' * (column - 1)}^"


def _blank(text: str) -> str:
    return re.sub(r"[^\n\r]", " ", text)


def _kind(group: str | None) -> Kind:
    match group:
        case "string" | "tag":
            return "string"
        case "quoted" | "word" | "number" | "parameter":
            return group
        case _:
            return "mark"


def ends_statement(text: str) -> bool:
    """Is the last token a `;`? What is unreadable anyway counts, so that it is told at once."""
    try:
        tokens = Source(text).tokens
    except SqlError as error:
        return "is not closed" not in error.message
    return bool(tokens) and tokens[-1].text == ";"
