"""Text to sqlglot's tree and back to places in the script; every failure shows its place."""

import re
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from lakebed.model.errors import SqlError, SqlUnsupported
from lakebed.sql.dialect import DOLLAR, LakeDialect, TooHard
from lakebed.sql.source import Source, Token

# Compiled builds of the parser do not notice a full stack; this is far below what they can take.
_DEEPEST = 60
_OPENING = ("(", "[", "{", "CASE")
_CLOSING = (")", "]", "}", "END")
_PREFIXES = ("NOT", "-", "+", "~", "@", "LAMBDA", "EXISTS", "DISTINCT", "INTERVAL", "FROM", ":")
# The parser has its own ways to stumble over odd text; none of them may reach the caller.
STUMBLES = (ValueError, TypeError, AttributeError, LookupError, AssertionError)
_STRINGS = (
    TokenType.STRING,
    TokenType.HEX_STRING,
    TokenType.BIT_STRING,
    TokenType.BYTE_STRING,
    TokenType.HEREDOC_STRING,
    TokenType.NATIONAL_STRING,
    TokenType.RAW_STRING,
    TokenType.UNICODE_STRING,
    TokenType.IDENTIFIER,
)
_QUOTE = re.compile("""[a-zA-Z]?'|["`$]""")  # 0x1F is a string to sqlglot, but none of ours
N = TypeVar("N", bound=exp.Expr)
_DIALECT = LakeDialect(version="2.0")


@dataclass(frozen=True, slots=True)
class Syntax:
    """The tree of a piece of the script; `shift` leads from its offsets to those of the script."""

    source: Source
    tree: exp.Expr
    text: str
    shift: int
    tokens: tuple[Token, ...]  # offsets of the script
    nodes: tuple[exp.Expr, ...]  # all of the tree: walking it again and again takes its time

    def find(self, *kinds: type[N]) -> list[N]:
        return [node for node in self.nodes if isinstance(node, kinds)]

    def error(
        self, offset: int, message: str, *, hint: str = "", kind: type[SqlError] = SqlUnsupported
    ) -> SqlError:
        """`offset` counts in `text`."""
        return self.source.error(max(offset + self.shift, 0), message, hint=hint, kind=kind)


def read_syntax(
    source: Source,
    tokens: list[Token],
    *,
    prefix: str = "",
    hole: tuple[int, int] = (0, 0),
    suffix: str = "",
) -> Syntax:
    """Parse these tokens behind a prefix such as `SELECT `; what is in the hole is left out."""
    kept = tuple(t for t in tokens if not hole[0] <= t.start < hole[1])
    _check_depth(source, kept)
    start, end = tokens[0].start, tokens[-1].end
    plain = source.plain
    if hole != (0, 0):
        plain = plain[: hole[0]] + " " * (hole[1] - hole[0]) + plain[hole[1] :]
    text = prefix + plain[start:end] + suffix
    tree = _parse(source, text, kept, shift=start - len(prefix))
    return Syntax(source, tree, text, start - len(prefix), kept, tuple(tree.walk()))


def place_of(node: exp.Expr) -> int:
    """The offset of the first name or literal inside; the parser keeps no others."""
    marks = [int(n.meta["start"]) for n in node.walk() if "start" in n.meta]
    return min(marks, default=0)


def _parse(source: Source, text: str, tokens: tuple[Token, ...], *, shift: int) -> exp.Expr:
    start = tokens[0].start
    try:
        words = _DIALECT.tokenize(_with_marks(text, tokens, shift))
        strings = {
            (w.start + shift, w.end + 1 + shift)
            for w in words
            if w.token_type in _STRINGS
            and _QUOTE.match(text, w.start)
            and w.start + shift < tokens[-1].end  # what we wrote behind them is not read again
        }
        ours = {(t.start, t.end) for t in tokens if t.kind in ("string", "quoted")}
        if strings != ours:
            first = min(strings ^ ours)[0]
            raise source.error(first, "this string cannot be read", hint="write it as '…'")
        parsed = _DIALECT.parser().parse(words, text)
    except ParseError as error:
        raise _unreadable(source, error, shift) from None
    except (RecursionError, TooHard):
        raise _too_deep(source, start) from None
    except (SqlglotError, *STUMBLES):
        raise source.error(start, "this cannot be parsed") from None
    found = [node for node in parsed if isinstance(node, exp.Expr)]
    if len(found) != 1:
        raise source.error(start, "one query is expected")
    return found[0]


def _with_marks(text: str, tokens: tuple[Token, ...], shift: int) -> str:
    """The same text with DOLLAR in front of parameters that have a `$`."""
    pieces, at = [], 0
    for token in tokens:
        if token.kind == "parameter" and token.text != "?":
            start = token.start - shift
            pieces += [text[at:start], DOLLAR]
            at = start + 1
    return "".join([*pieces, text[at:]])


def _unreadable(source: Source, error: ParseError, shift: int) -> SqlError:
    first = error.errors[0] if error.errors else {}
    said = str(first.get("description") or "").partition(" but got ")[0]
    offset = min(max(int(first.get("start") or 0) + shift, 0), len(source.text))
    if said.startswith("Expect"):
        message = said.replace("Expecting", "expected").replace("Expected", "expected")
    elif said.startswith("Required"):
        message = "something is missing here"
    elif said.startswith("expected"):
        message = said
    else:
        message = "this cannot be parsed"
    return source.error(offset, message, hint="check the text at and before this place")


def _check_depth(source: Source, tokens: tuple[Token, ...]) -> None:
    """How deep brackets, CASE and prefix operators nest."""
    brackets = prefixes = 0
    for token in tokens:
        word = token.upper
        if word in _OPENING:
            brackets += 1
        elif word in _PREFIXES:
            prefixes += 1
        else:
            prefixes = 0
            brackets -= word in _CLOSING
        if brackets + prefixes > _DEEPEST:
            raise _too_deep(source, token.start)


def _too_deep(source: Source, offset: int) -> SqlError:
    return source.error(
        offset, "this is nested too deeply", hint="split it with WITH, or use lists with IN"
    )
