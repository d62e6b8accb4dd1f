"""Schemas as people write them: `id long not null, name string comment 'x', tags list<string>`."""

import re
from dataclasses import dataclass

from lakebed.model.errors import InvalidSchema
from lakebed.model.ids import FieldId
from lakebed.model.types import (
    PRIMITIVES,
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    StructType,
    Type,
)

_ALIASES = {
    "bool": "boolean",
    "tinyint": "byte",
    "smallint": "short",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "text": "string",
    "varchar": "string",
    "timestamptz": "timestamp",
}
_REFUSED = {
    "variant": "store JSON text in a string column for now",
    "geometry": "store WKB in a binary column for now",
    "geography": "store WKB in a binary column for now",
    "interval": "store a number of seconds or days instead",
    "void": "give the column a type",
    "char": "use string",
}
_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>`(?:[^`]|``)+`|"(?:[^"]|"")+")|(?P<text>'(?:[^']|'')*')
        |(?P<number>\d+)|(?P<word>[^\W\d][\w$\-]*)|(?P<mark>[<>(),:]))""",
    re.VERBOSE,
)
_NEW = FieldId(0)  # ids are given later, by model.schema
_MAX_DEPTH = 64


def parse_schema(text: str) -> tuple[Field, ...]:
    reader = _Reader(text)
    fields = [_field(reader, 0)]
    while reader.take(","):
        fields.append(_field(reader, 0))
    if not reader.at_end:
        raise reader.error("expected ',' or the end")
    return tuple(fields)


def parse_type(text: str) -> Type:
    reader = _Reader(text)
    kind = _type(reader, 0)
    if not reader.at_end:
        raise reader.error("expected the end of the type")
    return kind


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


class _Reader:
    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidSchema(f"schema text must be a str, not {type(text).__name__}")
        self.text = text
        self._tokens = list(_tokens(text))
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._tokens)

    def peek(self) -> _Token:
        return _Token("end", "", len(self.text)) if self.at_end else self._tokens[self._at]

    def next(self) -> _Token:
        token = self.peek()
        self._at += 1
        return token

    def take(self, word: str) -> bool:
        token = self.peek()
        if token.kind in ("word", "mark") and token.text.lower() == word:
            self._at += 1
            return True
        return False

    def back(self) -> None:
        """Unread one token."""
        self._at -= 1

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self.error(f"expected {word!r}")

    def error(self, what: str) -> InvalidSchema:
        at = self.peek()
        found = f"found {at.text!r}" if at.text else "the text ends"
        return InvalidSchema(
            f"schema text, character {at.start + 1}: {what}, {found}",
            hint="write columns as: id long not null, name string, tags list<string>",
            position=at.start,
        )


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise InvalidSchema(
                f"schema text, character {start + 1}: unexpected {text[start]!r}",
                hint="quote unusual column names with backticks: `unit price` double",
                position=start,
            )
        kind = match.lastgroup or "mark"
        tokens.append(_Token(kind, _unquote(kind, match.group(kind)), match.start(kind)))
        at = match.end()
    return tokens


def _unquote(kind: str, text: str) -> str:
    if kind in ("quoted", "text"):
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def _field(reader: _Reader, depth: int) -> Field:
    token = reader.next()
    if token.kind not in ("word", "quoted"):
        raise _unexpected(reader, "expected a column name")
    reader.take(":")
    kind = _type(reader, depth)
    required = _not_null(reader)
    doc = None
    if reader.take("comment"):
        comment = reader.next()
        if comment.kind != "text":
            raise _unexpected(reader, "expected a comment in single quotes")
        doc = comment.text
    return Field(_NEW, token.text, kind, required, doc)


def _not_null(reader: _Reader) -> bool:
    if reader.take("not"):
        reader.expect("null")
        return True
    reader.take("null")
    return False


def _unexpected(reader: _Reader, what: str) -> InvalidSchema:
    """The token just read is not what belongs there."""
    reader.back()
    return reader.error(what)


def _type(reader: _Reader, depth: int) -> Type:
    if depth > _MAX_DEPTH:
        raise reader.error(f"types may be nested {_MAX_DEPTH} deep at most")
    token = reader.next()
    if token.kind != "word":
        raise _unexpected(reader, "expected a type")
    name = _ALIASES.get(token.text.lower(), token.text.lower())
    if name in ("decimal", "numeric"):
        return _decimal(reader)
    if name == "fixed":
        return FixedType(_arguments(reader, 1)[0])
    if name in ("list", "array"):
        return _list(reader, depth)
    if name == "map":
        return _map(reader, depth)
    if name == "struct":
        return _struct(reader, depth)
    if name in PRIMITIVES:
        return Primitive(name)
    if name in _REFUSED:
        raise InvalidSchema(
            f"type {token.text!r} is not supported", hint=_REFUSED[name], type=token.text
        )
    known = ", ".join((*PRIMITIVES, "decimal(p,s)", "fixed(n)", "struct<…>", "list<…>", "map<…>"))
    raise InvalidSchema(
        f"schema text, character {token.start + 1}: unknown type {token.text!r}",
        hint=f"known types: {known}",
        position=token.start,
    )


def _arguments(reader: _Reader, count: int) -> list[int]:
    reader.expect("(")
    numbers = []
    for index in range(count):
        if index:
            reader.expect(",")
        token = reader.next()
        if token.kind != "number" or len(token.text) > 10 or int(token.text) > 2**31 - 1:
            raise _unexpected(reader, "expected a number")
        numbers.append(int(token.text))
    reader.expect(")")
    return numbers


def _decimal(reader: _Reader) -> DecimalType:
    precision, scale = _arguments(reader, 2)
    if not 1 <= precision <= 38 or scale > precision:
        raise InvalidSchema(
            f"decimal({precision},{scale}) is out of range",
            hint="precision is 1 to 38, scale at most the precision",
        )
    return DecimalType(precision, scale)


def _list(reader: _Reader, depth: int) -> ListType:
    reader.expect("<")
    element = _type(reader, depth + 1)
    required = _not_null(reader)
    reader.expect(">")
    return ListType(_NEW, element, required)


def _map(reader: _Reader, depth: int) -> MapType:
    reader.expect("<")
    key = _type(reader, depth + 1)
    reader.expect(",")
    value = _type(reader, depth + 1)
    required = _not_null(reader)
    reader.expect(">")
    return MapType(_NEW, key, _NEW, value, required)


def _struct(reader: _Reader, depth: int) -> StructType:
    reader.expect("<")
    fields = [_field(reader, depth + 1)]
    while reader.take(","):
        fields.append(_field(reader, depth + 1))
    reader.expect(">")
    return StructType(tuple(fields))
