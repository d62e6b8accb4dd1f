"""Literals outside of queries: arguments of CALL, options of COPY, table properties."""

from lakebed.sql.reader import Reader
from lakebed.sql.statements import Properties, Value

_WORDS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
_DEEPEST = 20


def read_value(reader: Reader, depth: int = 0) -> Value:
    """A number, text, TRUE, FALSE, NULL, a list of them, or a parameter."""
    if depth > _DEEPEST:
        raise reader.error("this is nested too deeply")
    parameter = reader.parameter()
    if parameter is not None:
        return parameter
    token = reader.peek()
    if token.kind == "string":
        return reader.text()
    if token.kind == "number" or token.upper == "-":
        return reader.number()
    if token.upper in _WORDS:
        return _WORDS[reader.next().upper]
    if token.upper in ("DATE", "TIMESTAMP", "TIMESTAMPTZ") and reader.peek(1).kind == "string":
        reader.next()
        return reader.text()
    if reader.take("ARRAY") or token.upper in ("[", "("):
        return _list(reader, depth)
    raise reader.error("expected a value")


def _list(reader: Reader, depth: int) -> tuple[Value, ...]:
    close = {"[": "]", "(": ")"}.get(reader.peek().upper)
    if close is None:
        raise reader.error("expected a list")
    reader.next()
    if reader.take(close):
        return ()
    found = reader.separated(lambda: read_value(reader, depth + 1))
    reader.expect(close)
    return tuple(found)


def read_properties(reader: Reader) -> Properties:
    """`('a.b' = 'c', d = 5)`; every value is kept as text."""

    def item() -> tuple[str, str]:
        name = read_property_name(reader)
        reader.take("=")
        value = read_value(reader)
        if isinstance(value, bool):
            return name, str(value).lower()
        if value is None or (not isinstance(value, str | int) and not hasattr(value, "as_tuple")):
            raise reader.error("the value of a property is text, a number, TRUE or FALSE")
        return name, str(value)

    return tuple(reader.listed(item))


def read_property_name(reader: Reader) -> str:
    if reader.peek().kind == "string":
        return reader.text()
    parts = [reader.name("the name of a property")]
    while reader.peek().upper in (".", "-"):
        parts += [reader.next().text, reader.name("the name of a property")]
    return "".join(parts)
