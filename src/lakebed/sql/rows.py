"""VALUES of nothing but literals: they need no parser, and scripts hold a great many of them."""

from lakebed.sql.source import Token

_WORDS = ("NULL", "TRUE", "FALSE", "DEFAULT")
_TYPES = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ")


def are_literals(tokens: list[Token]) -> bool:
    """Is this `VALUES (1, 'a', ?), …` and nothing else?"""
    if not tokens or tokens[0].upper != "VALUES":
        return False
    at = 1
    while True:
        at = _row(tokens, at)
        if at == len(tokens):
            return True
        if at < 0 or tokens[at].text != ",":
            return False
        at += 1


def _row(tokens: list[Token], at: int) -> int:
    """The place behind `(value, …)`, or -1 if there is no such row."""
    if at >= len(tokens) or tokens[at].text != "(":
        return -1
    while True:
        at = _value(tokens, at + 1)
        if not 0 <= at < len(tokens):
            return -1
        if tokens[at].text == ")":
            return at + 1
        if tokens[at].text != ",":
            return -1


def _value(tokens: list[Token], at: int) -> int:
    token = tokens[at] if at < len(tokens) else None
    if token is None:
        return -1
    if token.text in ("-", "+"):
        numeric = at + 1 < len(tokens) and tokens[at + 1].kind == "number"
        return at + 2 if numeric else -1
    if token.upper in _TYPES:
        typed = at + 1 < len(tokens) and tokens[at + 1].kind == "string"
        return at + 2 if typed else -1
    plain = token.kind in ("number", "string", "parameter") or token.upper in _WORDS
    return at + 1 if plain else -1
