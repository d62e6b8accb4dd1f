"""DEFAULT among the values of INSERT … VALUES: where it stands, and what stands for it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from lakebed.sql.query import Select
from lakebed.sql.source import Source, Token

_WORD = "DEFAULT"


def with_defaults(select: Select, written: Sequence[str]) -> Select:
    """`written` is SQL for each column; one that the table lacks is for others to refuse."""
    pieces, at = [], 0
    for token, column in _whole_values(Source(select.sql).tokens):
        value = written[column] if column < len(written) else "NULL"
        pieces += [select.sql[at : token.start], value]
        at = token.end
    return replace(select, sql="".join([*pieces, select.sql[at:]]))


def misplaced_defaults(tokens: Sequence[Token]) -> Iterator[Token]:
    """Where DEFAULT is written like a value and is none."""
    known = {token.start for token, _ in _whole_values(tokens)}
    for token, following in pairwise(tokens):
        if token.upper == _WORD and following.text in (",", ")") and token.start not in known:
            yield token


def _whole_values(tokens: Sequence[Token]) -> Iterator[tuple[Token, int]]:
    """Each DEFAULT that is a value of a row, with the number of its column."""
    if not tokens or tokens[0].upper != "VALUES":
        return
    depth = column = 0
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.text in ("(", "[", "{"):
            depth += 1
            column = 0 if depth == 1 else column
        elif token.text in (")", "]", "}"):
            depth -= 1
        elif depth == 1 and token.text == ",":
            column += 1
        alone = before.text in ("(", ",") and after.text in (")", ",")
        if depth == 1 and token.upper == _WORD and alone:
            yield token, column
