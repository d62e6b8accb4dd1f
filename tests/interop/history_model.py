"""A plain-Python model of a table through all its changes: columns by key, rows by column key.

It knows nothing of files: a row is a dict, and an instance of it has a number of its own, `UID`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

UID = -1  # the key under which a row keeps the number of its instance
ID = 0
Values = dict[int, Any]
Rows = tuple[Values, ...]
Test = Callable[[Values], bool | None]

TYPES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "boolean": pa.bool_(),
    "decimal(5,2)": pa.decimal128(5, 2),
    "decimal(9,2)": pa.decimal128(9, 2),
}
VALUES: dict[str, tuple[Any, ...]] = {
    "int": (-(2**31), -1, 0, 7, 2**31 - 1),
    "long": (-(2**63), 0, 7, 2**40),
    "float": (-1.5, 0.0, 0.25),
    "double": (-1.5, 0.1, 1e300),
    "string": ("", "a", "b", "long enough to be cut in statistics, žluťoučký", "x'y"),
    "date": (date(1969, 12, 31), date(2024, 2, 29)),
    "boolean": (True, False),
    "decimal(5,2)": (Decimal("-999.99"), Decimal("1.25")),
    "decimal(9,2)": (Decimal("1234567.25"), Decimal("0.00")),
}
WIDER = {"int": "long", "float": "double", "decimal(5,2)": "decimal(9,2)"}


@dataclass(frozen=True)
class Column:
    key: int
    name: str
    kind: str  # "struct" has members
    required: bool = False
    members: tuple["Column", ...] = ()
    before: Any = None  # what rows show that are older than the column
    default: Any = None  # what rows get that leave it out

    @property
    def type(self) -> pa.DataType:
        return pa.struct([m.field for m in self.members]) if self.members else TYPES[self.kind]

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.type, nullable=not self.required)

    def shown(self, values: Values) -> Any:
        value = values.get(self.key, self.before)
        if not self.members or value is None:
            return value
        return {m.name: m.shown(value) for m in self.members}

    def draw(self, dice: Random) -> Any:
        if not self.required and dice.random() < 0.25:
            return None
        if self.members:
            return {m.key: m.draw(dice) for m in self.members}
        return dice.choice(VALUES[self.kind])


START = (
    Column(ID, "id", "long", required=True),
    Column(1, "p", "string"),
    Column(2, "n", "int"),
    Column(3, "q", "int", required=True),
    Column(4, "s", "struct", members=(Column(5, "a", "int"), Column(6, "b", "string"))),
)
SCHEMA = "id long not null, p string, n int, q int not null, s struct<a: int, b: string>"


@dataclass(frozen=True)
class Version:
    """What a version of a line holds; columns belong to the table."""

    rows: Rows
    columns: tuple[Column, ...]
    time_ms: int
    formats: tuple[str, ...]
    features: frozenset[str]

    def to_arrow(self) -> pa.Table:
        return to_arrow(self.rows, self.columns)


def to_arrow(rows: Rows, columns: tuple[Column, ...]) -> pa.Table:
    """Rows in the columns' names and types of now."""
    listed = [{c.name: c.shown(row) for c in columns} for row in rows]
    return pa.Table.from_pylist(listed, pa.schema([c.field for c in columns]))


@dataclass
class Line:
    """A branch or main: what each of its versions holds."""

    versions: dict[int, Version]
    first: int = 0  # as far back as it can be restored
    taken: int = 0
    based_on: int = 0  # main's number of changes of rows when it began or was taken

    @property
    def head(self) -> Version:
        return self.versions[max(self.versions)]


@dataclass(frozen=True)
class Condition:
    """The same question as SQL and as Python, with SQL's three values."""

    sql: str
    test: Test

    def holds(self, row: Values) -> bool:
        return self.test(row) is True

    def both(self, other: "Condition") -> "Condition":
        def test(row: Values) -> bool | None:
            results = (self.test(row), other.test(row))
            return False if False in results else (None if None in results else True)

        return Condition(f"({self.sql}) AND ({other.sql})", test)

    def negated(self) -> "Condition":
        def test(row: Values) -> bool | None:
            return None if (told := self.test(row)) is None else not told

        return Condition(f"NOT ({self.sql})", test)


def quoted(name: str) -> str:
    return f'"{name}"'


def drawn(dice: Random, columns: tuple[Column, ...]) -> Condition:
    """A condition on the key or on some column, which may be NULL."""
    rest, modulus = dice.randrange(3), dice.choice([3, 5])
    by_key = Condition(f"id % {modulus} = {rest}", lambda row: row[ID] % modulus == rest)
    plain = [c for c in columns if c.kind in ("string", "int", "date")]
    if not plain or dice.random() < 0.3:
        return by_key
    column = dice.choice(plain)
    made = _on(dice, column)
    return dice.choice([made, made, made.negated(), made.both(by_key)])


def _on(dice: Random, column: Column) -> Condition:
    def value(row: Values) -> Any:
        return row.get(column.key, column.before)

    name = quoted(column.name)
    if dice.random() < 0.2:
        return Condition(f"{name} IS NULL", lambda row: value(row) is None)
    wanted = dice.choice(VALUES[column.kind])
    text = literal(column.kind, wanted)
    if column.kind == "string" or dice.random() < 0.5:
        return Condition(
            f"{name} = {text}", lambda row: None if (v := value(row)) is None else v == wanted
        )
    return Condition(
        f"{name} >= {text}", lambda row: None if (v := value(row)) is None else v >= wanted
    )


def literal(kind: str, value: Any) -> str:
    if value is None:
        return "NULL"
    match kind:
        case "string":
            return "'" + str(value).replace("'", "''") + "'"
        case "date":
            return f"DATE '{value.isoformat()}'"
        case "float" | "double":
            return f"CAST({value!r} AS {kind.upper()})"
        case _:
            return str(value)


@dataclass
class Numbers:
    """Keys that nobody had before: of rows, of instances of rows, of columns."""

    rows: int = 0
    instances: int = 0
    columns: int = 6
    names: int = 0

    def row(self) -> int:
        self.rows += 1
        return self.rows

    def instance(self) -> int:
        self.instances += 1
        return self.instances

    def column(self) -> int:
        self.columns += 1
        return self.columns


@dataclass
class Model:
    lines: dict[str, Line] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=Numbers)
    features: frozenset[str] = frozenset()
    moves: int = 0  # changes of main's rows

    @property
    def main(self) -> Line:
        return self.lines["main"]

    def starts(self, format_: str) -> int | None:
        """The first version of main that a format offers now; None when it is off."""
        start = None
        for number, version in self.main.versions.items():
            if format_ not in version.formats:
                start = None
            elif start is None:
                start = number
        return start

    def fresh(self, dice: Random, columns: tuple[Column, ...], key: int | None = None) -> Values:
        values = {c.key: c.draw(dice) for c in columns}
        values[ID] = self.numbers.row() if key is None else key
        values[UID] = self.numbers.instance()
        return values


def changed(rows: Rows, chosen: Condition, new: Callable[[Values], Values]) -> Rows:
    return tuple({**row, **new(row)} if chosen.holds(row) else row for row in rows)


def without(rows: Rows, chosen: Condition) -> Rows:
    return tuple(row for row in rows if not chosen.holds(row))


def swapped(columns: tuple[Column, ...], one: Column, other: Column) -> tuple[Column, ...]:
    names = {one.key: other.name, other.key: one.name}
    return tuple(replace(c, name=names.get(c.key, c.name)) for c in columns)
