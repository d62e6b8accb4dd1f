"""Random schemas, rows and predicates, and a slow interpreter that says what a predicate means."""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lakebed.engines.arrow.types import to_arrow
from lakebed.model.expressions import (
    Always,
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from lakebed.model.ids import FieldId
from lakebed.model.schema import Schema, new_schema
from lakebed.model.types import (
    INTEGERS,
    PRIMITIVES,
    DecimalType,
    Field,
    FixedType,
    Primitive,
    Scalar,
    Stored,
    StructType,
    Type,
)

Leaf = Always | Compare | In | Like | IsNull
Row = dict[int, Stored | None]  # by field id; a struct has True or None
TICKS = {"timestamp": 10**6, "timestamp_ntz": 10**6, "timestamp_ns": 10**9, "timestamptz_ns": 10**9}
KINDS: list[Scalar] = [
    *(Primitive(name) for name in PRIMITIVES),
    DecimalType(5, 2),
    DecimalType(20, 0),
    FixedType(2),
]
TEXTS = st.text("ab%_\\\n\U0010ffffé", max_size=4)
BYTES = st.binary(max_size=3) | st.sampled_from([b"\xff", b"\xff\xff", b"a", b"ab"])
FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, 0.1, math.inf, -math.inf, math.nan])
UUIDS = st.sampled_from([bytes(16), b"\x80" + bytes(15), b"\xff" * 16])


def values(kind: Type) -> st.SearchStrategy[Stored]:
    """Stored values, few enough that they meet each other and the literals."""
    match kind:
        case DecimalType(precision, scale):
            units = st.integers(-300, 300) | st.integers(-(10**precision) + 1, 10**precision - 1)
            return units.map(lambda n: Decimal(n).scaleb(-scale))
        case FixedType(length):
            return st.binary(min_size=length, max_size=length)
        case Primitive(name) if name in INTEGERS:
            half = 2 ** (INTEGERS[name] - 1)
            return st.integers(-4, 4) | st.integers(-half, half - 1)
        case Primitive("float"):
            return FLOATS.map(lambda x: float(pa.scalar(x, pa.float32()).as_py()))
        case Primitive(name) if name in TICKS:
            days = st.sampled_from([-366, -31, -1, 0, 1, 31, 365, 19_000])
            return st.builds(
                lambda d, t: d * 86_400 * TICKS[name] + t, days, st.sampled_from([0, 1, -1, 10**9])
            )
        case Primitive("time"):
            return st.sampled_from([0, 1, 86_399_999_999, 3_600_000_000])
        case Primitive("date"):
            return st.sampled_from([-400, -31, -1, 0, 1, 30, 31, 365, 19_000])
        case _:
            return _plain_values(str(kind))


def _plain_values(name: str) -> st.SearchStrategy[Stored]:
    plain: dict[str, st.SearchStrategy[Stored]] = {
        "boolean": st.booleans(),
        "double": FLOATS | st.floats(),
        "string": TEXTS,
        "uuid": UUIDS,
        "binary": BYTES,
    }
    return plain[name]


def literals(kind: Type) -> st.SearchStrategy[Stored]:
    """What may be written beside a column of this type, often between its values or beyond them."""
    match kind:
        case DecimalType() | Primitive("byte" | "short" | "int" | "long" | "float" | "double"):
            odd = [Decimal("2.5"), Decimal("-0.005"), Decimal("1e50"), Decimal("-1e400"), 2**80]
            return st.one_of(values(kind), st.sampled_from(odd), FLOATS, st.integers(-5, 5))
        case FixedType() | Primitive("boolean" | "binary" | "string"):
            return values(kind)
        case Primitive("uuid"):
            shown = UUIDS.map(
                lambda b: re.sub(r"^(.{8})(....)(....)(....)", r"\1-\2-\3-\4-", b.hex())
            )
            return UUIDS | shown
        case Primitive("time"):
            texts = ["00:00", "00:00:00.0000005", "01:00:00", "23:59:59.999999", "23:59:59.9999999"]
            return st.sampled_from(texts)
        case _:
            return _moments(zoned=str(kind) in ("timestamp", "timestamptz_ns", "date"))


def _moments(*, zoned: bool) -> st.SearchStrategy[str]:
    days = ["1970-01-01", "1969-12-31", "1970-02-01", "1971-01-01", "2022-01-08", "0001-01-01"]
    clocks = ["", " 00:00:00", "T00:00:00.000001", " 00:00:00.0000005", " 00:00:01", " 12:00:00"]
    zones = ["", "Z", "+02:00"] if zoned else [""]
    return st.builds(
        lambda d, c, z: d + c + (z if c else ""), *map(st.sampled_from, (days, clocks, zones))
    )


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    fields = [Field(FieldId(0), f"c{n}", kind) for n, kind in enumerate(kinds)]
    if draw(st.booleans()):
        inner = Field(FieldId(0), "x y", draw(st.sampled_from(KINDS)))
        fields.append(Field(FieldId(0), "s", StructType((inner,))))
    return new_schema(tuple(fields))


@st.composite
def rows(draw: st.DrawFn, schema: Schema) -> list[Row]:
    return [draw(_row(schema)) for _ in range(draw(st.integers(0, 6)))]


@st.composite
def _row(draw: st.DrawFn, schema: Schema) -> Row:
    row: Row = {}
    for field in schema.fields:
        if isinstance(field.type, StructType):
            inner = field.type.fields[0]
            row[field.id] = draw(st.sampled_from([True, True, None]))
            row[inner.id] = draw(st.none() | values(inner.type)) if row[field.id] else None
        else:
            row[field.id] = draw(st.none() | values(field.type))
    return row


@st.composite
def predicates(draw: st.DrawFn, schema: Schema, depth: int = 2) -> Predicate:
    shape = draw(st.sampled_from(["leaf", "leaf", "and", "or", "not"])) if depth else "leaf"
    if shape == "leaf":
        return draw(_leaf(schema))
    if shape == "not":
        return Not(draw(predicates(schema, depth - 1)))
    parts = tuple(draw(predicates(schema, depth - 1)) for _ in range(draw(st.integers(1, 3))))
    return And(parts) if shape == "and" else Or(parts)


@st.composite
def _leaf(draw: st.DrawFn, schema: Schema) -> Predicate:
    if draw(st.integers(0, 20)) == 0:
        return Constant(draw(st.sampled_from([True, False, None])))
    field = draw(st.sampled_from(list(schema.walk())))
    column = Column(tuple(f.name for f in schema.path_of(field.id)))
    if isinstance(field.type, StructType) or draw(st.integers(0, 9)) == 0:
        return IsNull(column)
    if field.type == Primitive("string") and draw(st.booleans()):
        return Like(column, draw(TEXTS))
    if draw(st.booleans()):
        listed = draw(st.lists(literals(field.type), max_size=3))
        return In(column, tuple(listed), draw(st.booleans()) or not listed)
    sign: Any = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    return Compare(column, sign, draw(literals(field.type)))


def to_batch(schema: Schema, table: list[Row]) -> pa.RecordBatch:
    arrow = to_arrow(schema)
    arrays = []
    for field, wanted in zip(schema.fields, arrow, strict=True):
        if isinstance(field.type, StructType):
            inner, member = field.type.fields[0], wanted.type.field(0)
            column = pa.array([row[inner.id] for row in table], member.type)
            absent = pa.array([row[field.id] is None for row in table], pa.bool_())
            arrays.append(pa.StructArray.from_arrays([column], fields=[member], mask=absent))
        else:
            arrays.append(pa.array([row[field.id] for row in table], wanted.type))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


@dataclass(frozen=True)
class Meaning:
    """Says what an unbound predicate means for a row, by exact arithmetic on every single value."""

    schema: Schema
    bound: bool = False  # literals are in stored form

    def of_bound(self, predicate: Predicate, row: Row) -> bool | None:
        return Meaning(self.schema, bound=True).of(predicate, row)

    def of(self, predicate: Predicate, row: Row) -> bool | None:
        match predicate:
            case Constant(answer):
                return answer
            case Not(operand):
                inner = self.of(operand, row)
                return None if inner is None else not inner
            case And(operands):
                return _all([self.of(p, row) for p in operands])
            case Or(operands):
                inverted = _all([_not(self.of(p, row)) for p in operands])
                return _not(inverted)
            case _:
                return self._leaf(predicate, row)

    def _leaf(self, predicate: Leaf, row: Row) -> bool | None:
        field = self.schema.find(predicate.column.path)
        assert field is not None
        value = row[field.id]
        if isinstance(predicate, IsNull):
            return value is None
        return None if value is None else self._test(predicate, field.type, value)

    def _test(self, leaf: Always | Compare | In | Like, kind: Type, value: Stored) -> bool | None:
        match leaf:
            case Always(_, answer):
                return answer
            case Like(_, pattern):
                return _like(str(value), pattern)
            case In(_, members, has_null):
                found: bool = any(
                    self._literal(kind, m) == _stored_key(kind, value) for m in members
                )
                return found or (None if has_null else False)
            case Compare(_, sign, literal):
                a, b = _stored_key(kind, value), self._literal(kind, literal)
                answers: dict[str, bool] = {
                    "=": a == b,
                    "!=": a != b,
                    "<": a < b,
                    "<=": a <= b,
                    ">": a > b,
                    ">=": a >= b,
                }
                return answers[sign]

    def _literal(self, kind: Type, literal: Stored) -> Any:
        return _stored_key(kind, literal) if self.bound else _key(kind, literal)


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _all(answers: list[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _stored_key(kind: Type, value: Any) -> Any:
    if str(kind) in TICKS:
        return (0, Fraction(value, TICKS[str(kind)]))
    if str(kind) in ("date", "time"):
        return (0, value * Fraction(86_400 if str(kind) == "date" else Fraction(1, 10**6)))
    return _key(kind, value)


def _key(kind: Type, literal: Any) -> Any:
    if isinstance(literal, str) and str(kind) == "time":
        hours, minutes, seconds = (literal + ":00")[:100].split(":")[:3]
        return (0, Fraction(int(hours) * 3600 + int(minutes) * 60) + Fraction(seconds))
    if isinstance(literal, str) and (str(kind) in TICKS or str(kind) == "date"):
        return (0, _seconds(literal))
    if isinstance(literal, str) and str(kind) == "uuid":
        return bytes.fromhex(literal.replace("-", ""))
    if isinstance(literal, str | bytes | bool):
        return literal
    if isinstance(literal, float) and not math.isfinite(literal):
        return (1, 0) if math.isnan(literal) else (0, literal)
    if str(kind) in ("float", "double") and abs(literal) < Decimal("1e308"):
        literal = float(literal)
    return (0, Fraction(literal))


def _seconds(text: str) -> Fraction:
    day, clock, fraction, zone = re.fullmatch(
        r"(.{10})(?:[T ](\d\d:\d\d:\d\d))?(\.\d+)?(.*)", text
    ).groups()  # type: ignore[union-attr]
    moment = datetime.fromisoformat(f"{day}T{clock or '00:00:00'}{zone or '+00:00'}")
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return Fraction(since.days * 86_400 + since.seconds) + Fraction("0" + (fraction or ".0"))


def _like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == "%":
        return any(_like(text[n:], rest) for n in range(len(text) + 1))
    if head == "_":
        return bool(text) and _like(text[1:], rest)
    if head == "\\" and rest:
        head, rest = rest[0], rest[1:]
    return text[:1] == head and _like(text[1:], rest)
