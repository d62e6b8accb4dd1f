"""Reads the tokens of one statement from left to right: words, names, literals, pieces of text."""

from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

from lakebed.model.errors import SqlError, SqlUnsupported
from lakebed.model.names import TableName
from lakebed.sql.query import Parameter, Span
from lakebed.sql.source import Source, Token

T = TypeVar("T")
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_LONGEST_NUMBER = 100


class Reader:
    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.at = 0
        marks = [t.start for t in tokens if t.kind == "parameter" and t.text == "?"]
        self._numbers = {start: number for number, start in enumerate(marks, 1)}

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.tokens)

    @property
    def start(self) -> int:
        """The offset of the next token, or of the end."""
        return self.tokens[self.at].start if not self.at_end else self.end

    @property
    def end(self) -> int:
        return self.tokens[-1].end

    @property
    def previous_end(self) -> int:
        return self.tokens[self.at - 1].end

    @property
    def span(self) -> Span:
        """The whole statement."""
        return self.source.span(self.tokens[0].start, self.end)

    def span_from(self, start: int) -> Span:
        return self.source.span(start, self.previous_end)

    def peek(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        if at < len(self.tokens):
            return self.tokens[at]
        return Token("mark", "", self.end, self.end)

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def sees(self, *words: str) -> bool:
        return all(self.peek(i).upper == word for i, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def take_any(self, *words: str) -> str | None:
        if self.peek().upper in words:
            return self.next().upper
        return None

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                raise self.error(f"expected {word}")

    def expect_end(self) -> None:
        if not self.at_end:
            raise self.error("expected the end of the statement")

    def error(self, what: str, *, hint: str = "", offset: int | None = None) -> SqlError:
        found = self.peek().text
        shown = f"found {found[:40]!r}" if found else "the statement ends"
        at = self.start if offset is None else offset
        message = f"{what}, {shown}" if offset is None else what
        return self.source.error(at, message, hint=hint)

    def unsupported(self, what: str, *, hint: str, offset: int | None = None) -> SqlError:
        at = self.start if offset is None else offset
        return self.source.error(at, what, hint=hint, kind=SqlUnsupported)

    def name(self, what: str = "a name") -> str:
        token = self.peek()
        if token.kind not in ("word", "quoted") or not token.name:
            raise self.error(f"expected {what}")
        self.at += 1
        return token.name

    def path(self, what: str = "a name") -> tuple[str, ...]:
        """`a.b.c`"""
        parts = [self.name(what)]
        while self.take("."):
            parts.append(self.name(what))
        return tuple(parts)

    def table(self) -> TableName:
        parts = self.path("the name of a table")
        return TableName(parts[:-1], parts[-1])

    def text(self, what: str = "text in single quotes") -> str:
        token = self.peek()
        if token.kind != "string" or token.text[0] not in "'$":
            raise self.error(f"expected {what}")
        self.at += 1
        return string_value(token)

    def integer(self) -> int:
        negative = self.take("-")
        token = self.peek()
        digits = token.text.replace("_", "")
        if token.kind != "number" or not digits.isdecimal() or len(digits) > _LONGEST_NUMBER:
            raise self.error("expected a whole number")
        self.at += 1
        return -int(digits) if negative else int(digits)

    def number(self) -> int | Decimal:
        negative = self.take("-")
        token = self.peek()
        digits = token.text.replace("_", "")
        if token.kind != "number" or digits[:2] in ("0x", "0X") or len(digits) > _LONGEST_NUMBER:
            raise self.error("expected a number")
        self.at += 1
        value = int(digits) if digits.isdecimal() else Decimal(digits)
        return -value if negative else value

    def parameter(self) -> Parameter | None:
        """`?`, `$1`, `$name` or `:name`, if one comes next."""
        token = self.peek()
        if token.kind == "parameter":
            self.at += 1
            return Parameter(self.parameter_name(token))
        following = self.peek(1)
        if token.upper == ":" and following.kind == "word" and following.start == token.end:
            self.at += 2
            return Parameter(following.text)
        return None

    def parameter_name(self, token: Token) -> str:
        """`?` has the number it has among the question marks of its statement."""
        return str(self._numbers[token.start]) if token.text == "?" else token.text[1:]

    def listed(self, read: Callable[[], T]) -> list[T]:
        """`( x, y, … )`"""
        self.expect("(")
        found = self.separated(read)
        self.expect(")")
        return found

    def separated(self, read: Callable[[], T]) -> list[T]:
        """`x, y, …`"""
        found = [read()]
        while self.take(","):
            found.append(read())
        return found

    def skip_until(self, *words: str) -> tuple[int, int]:
        """Step to one of these words outside brackets and CASE; the offsets of what was passed."""
        first, depth, cases = self.at, 0, 0
        while not self.at_end:
            token = self.peek()
            word = token.upper
            if not depth and not cases and word in words and not self._is_operator(word):
                break
            if word in _OPENING:
                depth += 1
            elif word in _CLOSING:
                if not depth:
                    break
                depth -= 1
            elif word == "CASE":
                cases += 1
            elif word == "END" and cases:
                cases -= 1
            self.at += 1
        if self.at == first:
            raise self.error("something is missing here")
        return self.tokens[first].start, self.previous_end

    def _is_operator(self, word: str) -> bool:
        """FROM in IS DISTINCT FROM, and words that are parts of a dotted name."""
        before = self.tokens[self.at - 1].upper if self.at else ""
        return (word == "FROM" and before == "DISTINCT") or before == "."


def string_value(token: Token) -> str:
    """What a string in single quotes or dollar signs says."""
    if token.text[0] == "$":
        tag = token.text.index("$", 1) + 1
        return token.text[tag:-tag]
    return token.text[1:-1].replace("''", "'")
