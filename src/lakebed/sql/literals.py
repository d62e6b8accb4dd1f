"""Literals of SQL text as values: numbers exact, typed text kept with its type."""

import re
import struct
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from lakebed.model.expressions import TypedText
from lakebed.model.types import INTEGERS, Primitive, Stored

_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_LONGEST_NUMBER = 1000
_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DECIMAL": "decimal",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
    "DATETIME": "timestamp_ntz",
    "TIMESTAMP_NS": "timestamp_ns",
    "TIMESTAMPTZ_NS": "timestamptz_ns",
    "CHAR": "string",
    "VARCHAR": "string",
    "TEXT": "string",
    "UUID": "uuid",
    "BINARY": "binary",
    "VARBINARY": "binary",
}
_KEPT_AS_TEXT = (
    "date",
    "time",
    "timestamp",
    "timestamp_ntz",
    "timestamp_ns",
    "timestamptz_ns",
    "uuid",
)


class NotLiteral(Exception):
    """Raised for SQL that is no literal; `node` is the part that is not."""

    def __init__(self, node: exp.Expr, reason: str = "") -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


def read_literal(node: exp.Expr) -> Stored | None:
    """The value of a literal; None is NULL."""
    match node:
        case exp.Paren():
            return read_literal(node.this)
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            return str(node.this) if node.is_string else _number(node, str(node.this))
        case exp.HexString():
            return _bytes(node)
        case exp.Neg():
            return _negated(node, read_literal(node.this))
        case exp.Add() | exp.Sub() | exp.Mul():
            return _arithmetic(node)
        case exp.Cast() if type(node) is exp.Cast:
            return _cast(node)
        case _:
            raise NotLiteral(node)


def _number(node: exp.Expr, text: str) -> int | Decimal:
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise NotLiteral(node, f"{text[:40]!r} is no number that can be compared")
    return int(text) if text.isdecimal() else Decimal(text)


def _bytes(node: exp.HexString) -> bytes:
    digits = str(node.this)
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise NotLiteral(node, f"X'{digits[:40]}' is not made of pairs of hex digits") from None


def _negated(node: exp.Expr, value: Stored | None) -> Stored | None:
    if isinstance(value, Decimal):
        return value.copy_negate()  # the minus sign would round
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return None if value is None else -value
    raise NotLiteral(node)


def _arithmetic(node: exp.Add | exp.Sub | exp.Mul) -> int:
    left, right = read_literal(node.this), read_literal(node.expression)
    if type(left) is not int or type(right) is not int:
        raise NotLiteral(node, "arithmetic is supported between integers only")
    if isinstance(node, exp.Mul):
        return left * right
    return left + right if isinstance(node, exp.Add) else left - right


def _cast(node: exp.Cast) -> Stored | None:
    value = read_literal(node.this)
    kind = node.args["to"]
    options = {key for key, value in node.args.items() if value} - {"this", "to"}
    name = _type_name(kind) if isinstance(kind, exp.DataType) and not options else None
    if name is None:
        raise NotLiteral(node, "this CAST is not supported")
    if value is None:
        return None
    made = _convert(value, name)
    if name == "decimal" and isinstance(made, Decimal):
        made = _fit(made, [str(p.this.this) for p in kind.expressions])
    if made is None:
        raise NotLiteral(node, f"{str(value)[:40]!r} cannot be cast to {name}")
    return made


def _type_name(kind: exp.DataType) -> str | None:
    written = getattr(kind.this, "name", "")
    if written == "USERDEFINED":
        written = str(kind.args.get("kind") or "").upper()
    return None if kind.args.get("nested") else _TYPES.get(written)


def _convert(value: Stored, name: str) -> Stored | None:
    """The literal in another type, or None if that would lose something."""
    text = str(value).strip() if isinstance(value, str | int | Decimal | float) else None
    if isinstance(value, TypedText):
        return value if str(value.kind) == name else None
    if isinstance(value, bool):
        return value if name == "boolean" else None
    if name in _KEPT_AS_TEXT:
        return TypedText(value, Primitive(name)) if isinstance(value, str) else None
    if name == "string":
        return value if isinstance(value, str) else None
    if name == "binary":
        return value.encode() if isinstance(value, str) else value if text is None else None
    return None if text is None else _from_text(text, name)


def _from_text(text: str, name: str) -> Stored | None:
    if name == "boolean":
        return {"true": True, "false": False}.get(text.lower())
    if name in INTEGERS:
        number = int(text) if _INTEGER.fullmatch(text) else None
        half = 2 ** (INTEGERS[name] - 1)
        return number if number is not None and -half <= number < half else None
    if name == "decimal":
        return Decimal(text) if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text) else None
    try:
        double = float(text)
        return struct.unpack("<f", struct.pack("<f", double))[0] if name == "float" else double
    except (ValueError, OverflowError):
        return None


def _fit(value: Decimal, parameters: list[str]) -> Decimal | None:
    """The decimal if its type holds it without rounding; DECIMAL alone means DECIMAL(10, 0)."""
    if not all(p.isdecimal() and len(p) <= 2 for p in parameters):
        return None
    precision, scale = [*(int(p) for p in parameters), *(10, 0)[len(parameters) :]][:2]
    units = Fraction(value) * 10**scale
    return value if units.denominator == 1 and abs(units) < 10**precision else None
