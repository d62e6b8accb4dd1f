"""Values of every type, extremes included, and tables that hold them at every place there is."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakebed import Lake, Table

Values = list[Any]


def _decimals(*texts: str) -> Values:
    return [None, None, *(Decimal(text) for text in texts)]


# One value per row. Nulls come first, so that one file holds nothing else.
SHARED: dict[str, Values] = {
    "boolean": [None, None, True, False, True, True, False, False],
    "byte": [None, None, -128, 127, 0, 1, -1, 5],
    "short": [None, None, -(2**15), 2**15 - 1, 0, 1, -1, 500],
    "int": [None, None, -(2**31), 2**31 - 1, 0, 1, -1, 70_000],
    "long": [None, None, -(2**63), 2**63 - 1, 0, 2**53 + 1, -1, 70_000],
    "float": [None, None, -math.inf, math.inf, math.nan, -0.0, 2.0**-149, 3.4028234663852886e38],
    "double": [None, None, -math.inf, math.inf, math.nan, -0.0, 5e-324, 1.7976931348623157e308],
    "date": [None, None, -719_162, 2_932_896, 0, -1, 19_000, -365],  # 0001-01-01 to 9999-12-31
    "timestamp": [
        None,
        None,
        -62_135_596_800_000_000,  # 0001-01-01
        253_402_300_799_999_999,  # the last microsecond of 9999
        0,
        -1,
        1_700_000_000_123_456,
        -86_400_000_001,
    ],
    "string": [
        None,
        None,
        "",
        "\U0001d11e\U0001f389" * 20,
        "a",
        "z" * 5000,
        'it\'s "q" \\ %2F=',
        "\U0010ffff" * 40,
    ],
    "binary": [None, None, b"", b"\x00", b"\xff" * 40, bytes(range(256)), b"a", b"\xf0\x9f"],
    "decimal(9,2)": _decimals("-9999999.99", "9999999.99", "0.00", "-0.01", "0.01", "12.30"),
    "decimal(18,4)": _decimals(
        "-99999999999999.9999", "99999999999999.9999", "0.0000", "-0.0001", "0.0001", "5.0000"
    ),
    "decimal(38,10)": _decimals(
        "-9999999999999999999999999999.9999999999",
        "9999999999999999999999999999.9999999999",
        "0.0000000000",
        "-0.0000000001",
        "0.0000000001",
        "7.0000000000",
    ),
}
NTZ: dict[str, Values] = {"timestamp_ntz": SHARED["timestamp"]}
ICEBERG_ONLY: dict[str, Values] = {
    "time": [None, None, 0, 86_399_999_999, 1, 43_200_000_000, 123_456, 5],
    "uuid": [
        None,
        None,
        b"\x00" * 16,
        b"\xff" * 16,
        bytes(range(16)),
        b"\x80" + b"\x00" * 15,
        b"\x7f" * 16,
        b"u" * 16,
    ],
    "fixed(3)": [
        None,
        None,
        b"\0\0\0",
        b"\xff\xff\xff",
        b"abc",
        b"\x80\0\0",
        b"\x7f\xff\xff",
        b"xyz",
    ],
}
NANOSECONDS: dict[str, Values] = {
    "timestamp_ns": [None, None, -(2**62), 2**62, 0, -1, 1_700_000_000_123_456_789, -999],
    "timestamptz_ns": [None, None, -(2**62), 2**62, 0, -1, 1_700_000_000_123_456_789, -999],
}
ROWS = 8
FILE_ROWS = 2  # so many rows per append: four files, four versions
BOTH = ("delta", "iceberg")


@dataclass(frozen=True)
class Case:
    """A table to build: columns by name as (type, values)."""

    name: str
    columns: Mapping[str, tuple[str, Values]]
    formats: tuple[str, ...] = BOTH
    feature: str = ""  # a row of docs/readers.md
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def schema_text(self) -> str:
        listed = [f"`{name}` {kind}" for name, (kind, _) in self.columns.items()]
        return ", ".join(["id long not null", *listed])

    def build(self, lake: Lake) -> Table:
        table = lake.create_table(
            f"types.{self.name}", self.schema_text, formats=self.formats, **self.options
        )
        for start in range(0, ROWS, FILE_ROWS):
            table.append(self.rows(table.arrow_schema, range(start, start + FILE_ROWS)))
        return table

    def rows(self, schema: pa.Schema, numbers: range) -> pa.Table:
        return pa.table(
            {
                "id": pa.array(numbers, pa.int64()),
                **{
                    name: pa.array([values[n] for n in numbers], schema.field(name).type)
                    for name, (_, values) in self.columns.items()
                },
            },
            schema=schema,
        )

    def rows_at(self, version: int) -> int:
        """Version 0 is the empty table; every later one adds a file."""
        return version * FILE_ROWS


def column_of(kind: str) -> str:
    return "c_" + "".join(c if c.isalnum() else "_" for c in kind).strip("_")


def top_level(kinds: Mapping[str, Values]) -> dict[str, tuple[str, Values]]:
    return {column_of(kind): (kind, values) for kind, values in kinds.items()}


def in_structs(kinds: Mapping[str, Values]) -> dict[str, tuple[str, Values]]:
    """One struct of all, null at first, and one inside another."""
    members = ", ".join(f"{column_of(kind)}: {kind}" for kind in kinds)
    values = [{column_of(kind): v[n] for kind, v in kinds.items()} for n in range(ROWS)]
    outer = [None, {"inner": None}, *({"inner": v} for v in values[2:])]
    return {
        "s": (f"struct<{members}>", [None, *values[1:]]),
        "ss": (f"struct<inner: struct<{members}>>", outer),
    }


def in_lists(kinds: Mapping[str, Values]) -> dict[str, tuple[str, Values]]:
    """Per type a list: null, empty, with nulls, long; and a list of structs of lists."""
    found: dict[str, tuple[str, Values]] = {}
    for kind, v in kinds.items():
        lists = [None, [], [None], v[2:], [v[3], None, v[2]], v[2:4] * 3, [v[7]], [v[6], v[5]]]
        found["l_" + column_of(kind)] = (f"list<{kind}>", lists)
        deep = [[], [None], *([{"e": [x]}, {"e": None}, None] for x in v[2:])]
        found["ls_" + column_of(kind)] = (f"list<struct<e: list<{kind}>>>", deep)
    return found


def in_maps(kinds: Mapping[str, Values]) -> dict[str, tuple[str, Values]]:
    """Per type a map with it as value."""
    return {
        "mv_" + column_of(kind): (
            f"map<string, {kind}>",
            [None, [], *([("k", x), ("none", None)] for x in v[2:])],
        )
        for kind, v in kinds.items()
    }


def as_keys(kinds: Mapping[str, Values]) -> dict[str, tuple[str, Values]]:
    return {
        "mk_" + column_of(kind): (
            f"map<{kind}, int>",
            [None, [], *([(x, n)] for n, x in enumerate(v[2:]))],
        )
        for kind, v in kinds.items()
    }


_OWN_ROWS = ("time", *NANOSECONDS)  # readers differ over partitions by these types
_HOURLY = ("timestamp", "timestamp_ntz", "timestamp_ns", "timestamptz_ns")


def transforms_of(kind: str) -> Iterator[str]:
    """Partition terms that are allowed on a column of this type, `{}` being its name."""
    base = kind.partition("(")[0]
    if base != "fixed":  # Spark cannot read such a table, so it is refused
        yield "{}"
    if base not in ("boolean", "float", "double"):
        yield "bucket(4, {})"
    if base in ("byte", "short", "int", "long", "decimal", "string", "binary"):
        yield "truncate(3, {})"
    if base in ("date", *_HOURLY):
        yield from ("year({})", "month({})", "day({})")
    if base in _HOURLY:
        yield "hour({})"


def partitioned(kinds: Mapping[str, Values], formats: Sequence[str]) -> Iterator[Case]:
    for kind, values in kinds.items():
        for term in transforms_of(kind):
            column = column_of(kind)
            word = term.partition("(")[0].strip("{}") or "identity"
            yield Case(
                f"{word}_{column}",
                {
                    column: (kind, _cuttable(values) if word == "truncate" else values),
                    "other": ("long", [n * 10 for n in range(ROWS)]),
                },
                formats=tuple(formats),
                feature=f"partitions by {word}" + (f" of {kind}" if kind in _OWN_ROWS else ""),
                options={"partition_by": [term.format(column)]},
            )


def _cuttable(values: Values) -> Values:
    """The least integers have no multiple of three below them; such rows are refused."""
    least = {-(2 ** (bits - 1)) for bits in (8, 16, 32, 64)}
    return [v + 2 if isinstance(v, int) and v in least else v for v in values]


def nested(kinds: Mapping[str, Values]) -> dict[str, tuple[str, Values]]:
    return {**in_structs(kinds), **in_lists(kinds), **in_maps(kinds), **as_keys(kinds)}


_SMALL = {kind: SHARED[kind] for kind in ("byte", "short")}
_ONLY = ICEBERG_ONLY | NANOSECONDS
# Iceberg readers cannot be trusted with floating partition values: such a table is refused.
_FLOATS = {kind: SHARED[kind] for kind in ("float", "double")}
_PARTITIONABLE = {kind: v for kind, v in (SHARED | NTZ).items() if kind not in _FLOATS}
PLACES: tuple[Case, ...] = (
    Case("top_level", top_level(SHARED), feature="every type both formats have"),
    Case("in_structs", in_structs(SHARED), feature="structs"),
    Case("in_lists", in_lists(SHARED), feature="lists"),
    Case(
        "null_lists",
        {"ls": ("list<struct<e: int>>", [None, None, *([{"e": n}] for n in range(6))])},
        feature="NULL in a column of lists of structs",
    ),
    Case("in_maps", in_maps(SHARED), feature="maps"),
    Case(
        "as_keys",
        as_keys({kind: v for kind, v in SHARED.items() if kind not in _SMALL}),
        feature="maps",
    ),
    Case("small_keys", as_keys(_SMALL), feature="maps with byte or short keys"),
    Case("ntz", top_level(NTZ), feature="timestamp_ntz"),
    Case("ntz_nested", nested(NTZ), feature="timestamp_ntz"),
    Case(
        "odd_names",
        {"unit price": ("int", SHARED["int"]), "größe,()=;": ("string", SHARED["string"])},
        feature="column names that need column mapping",
    ),
    Case(
        "sorted",
        top_level({kind: SHARED[kind] for kind in ("int", "string", "timestamp")}),
        feature="sort order",
        options={"sort_by": ["c_int desc nulls last", "c_string"]},
    ),
    *(Case(column_of(kind), top_level({kind: v}), ("iceberg",), kind) for kind, v in _ONLY.items()),
    *(
        Case(f"nested_{column_of(kind)}", nested({kind: v}), ("iceberg",), f"{kind} inside others")
        for kind, v in _ONLY.items()
    ),
)
PARTITIONED: tuple[Case, ...] = (
    *partitioned(_PARTITIONABLE, BOTH),
    *partitioned(_FLOATS, ("delta",)),
    *partitioned(_ONLY, ("iceberg",)),
)
CASES = (*PLACES, *PARTITIONED)
