"""Random schemas, and rows that fit them, for round trips through files."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lakebed.engines.arrow.exact import FIRST_DAY, LAST_DAY
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.ids import FieldId
from lakebed.model.schema import Schema, new_schema
from lakebed.model.types import (
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    StructType,
    Type,
)

NEW = FieldId(0)
DAY = 86_400_000_000
MICROS = st.integers(FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "byte": st.integers(-(2**7), 2**7 - 1),
    "short": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": LONG,
    "float": st.floats(width=32),
    "double": st.floats(),
    "date": st.integers(FIRST_DAY, LAST_DAY),
    "time": st.integers(0, DAY - 1),
    "timestamp": MICROS,
    "timestamp_ntz": MICROS,
    "timestamp_ns": LONG,
    "timestamptz_ns": LONG,
    "string": st.text(max_size=50),
    "uuid": st.binary(min_size=16, max_size=16),
    "binary": st.binary(max_size=50),
}


def values(kind: Type) -> st.SearchStrategy[Any]:
    """Values of a type as Python has them for Arrow; dates and times as integers."""
    match kind:
        case Primitive(name):
            return SCALARS[name]
        case DecimalType(precision, scale):
            most = 10**precision - 1
            return st.integers(-most, most).map(lambda n: Decimal(f"{n}E-{scale}"))
        case FixedType(length):
            return st.binary(min_size=length, max_size=length)
        case ListType(_, element, required):
            return st.lists(optional(values(element), required), max_size=3)
        case MapType(_, key, _, value, required):
            pairs = st.tuples(values(key), optional(values(value), required))
            return st.lists(pairs, max_size=3)
        case StructType(fields):
            members = {f.name: optional(values(f.type), f.required) for f in fields}
            return st.fixed_dictionaries(members)


def optional(strategy: st.SearchStrategy[Any], required: bool) -> st.SearchStrategy[Any]:
    return strategy if required else st.none() | strategy


def scalar_types() -> st.SearchStrategy[Type]:
    decimals = st.integers(1, 38).flatmap(
        lambda p: st.integers(0, p).map(lambda s: DecimalType(p, s))
    )
    primitives: st.SearchStrategy[Type] = st.sampled_from([Primitive(name) for name in SCALARS])
    return primitives | decimals | st.integers(1, 40).map(FixedType)


def types() -> st.SearchStrategy[Type]:
    return st.recursive(scalar_types(), _nested, max_leaves=4)


def _nested(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    names = st.sampled_from(["x", "y z", "Ü"])
    member: Callable[..., Field] = lambda n, t, r: Field(NEW, n, t, r)  # noqa: E731
    members = st.lists(
        st.builds(member, names, inner, st.booleans()),
        min_size=1,
        max_size=3,
        unique_by=lambda f: f.name,
    )
    return st.one_of(
        members.map(lambda fields: StructType(tuple(fields))),
        st.builds(lambda t, r: ListType(NEW, t, r), inner, st.booleans()),
        st.builds(lambda k, t, r: MapType(NEW, k, NEW, t, r), scalar_types(), inner, st.booleans()),
    )


@st.composite
def tables(
    draw: st.DrawFn, kinds: st.SearchStrategy[Type] | None = None
) -> tuple[Schema, pa.Table]:
    """A schema and a table of its exact Arrow types."""
    drawn = draw(st.lists(types() if kinds is None else kinds, min_size=1, max_size=4))
    fields = [Field(NEW, f"c {n}", kind, draw(st.booleans())) for n, kind in enumerate(drawn)]
    schema = new_schema(tuple(fields))
    size = draw(st.integers(0, 20))
    rows = [
        draw(st.lists(optional(values(f.type), f.required), min_size=size, max_size=size))
        for f in schema.fields
    ]
    arrow = to_arrow(schema)
    arrays = [pa.array(column, kind) for column, kind in zip(rows, arrow.types, strict=True)]
    return schema, pa.Table.from_arrays(arrays, schema=arrow)
