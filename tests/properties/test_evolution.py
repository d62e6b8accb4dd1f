"""Random alterations and appends: the lake, PyIceberg and deltalake show what plain Python says.

The model keeps rows by the ids of columns, so that it knows nothing of names in files.
"""

import tempfile
import warnings
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

import lakebed
from lakebed.model.errors import InvalidInput, NoChanges
from lakebed.model.evolution import find_path
from lakebed.model.ids import FieldId
from lakebed.model.types import Field, ListType, Primitive, StructType, Type

Row = dict[FieldId, Any]
NAMES = ("a", "b", "c", "d", "A")
LEVELS: tuple[tuple[str, ...], ...] = ((), ("s",), ("s", "t"), ("l", "element"))
KINDS = ("byte", "int", "float", "decimal(5,2)", "string", "long")
WIDER = ("short", "int", "long", "double", "decimal(9,2)", "decimal(18,2)")
DEFAULTS = {"byte": 7, "int": 70_000, "float": 0.5, "decimal(5,2)": Decimal("1.25")}
START = (
    "id long not null, a int, b string, s struct<a: int, b: string, t: struct<a: float, b: long>>,"
    " l list<struct<a: int, b: decimal(5,2)>>"
)
VALUES: dict[str, list[Any]] = {
    "byte": [-128, 0, 127],
    "short": [-(2**15), 300],
    "int": [-(2**31), 70_000],
    "long": [2**40, -1],
    "float": [1.5, -0.25],
    "double": [1e300, 0.1],
    "string": ["", "x", "ž"],
    "decimal(5,2)": [Decimal("1.25"), Decimal("-999.99")],
    "decimal(9,2)": [Decimal("1234567.25")],
    "decimal(18,2)": [Decimal("-1234567890123456.25")],
}


def _value(data: st.DataObject, kind: Type) -> Any:
    """A value by ids; lists of structs are never NULL, which PyIceberg would read as empty."""
    match kind:
        case StructType(fields):
            if data.draw(st.booleans()):
                return None
            return {f.id: _value(data, f.type) for f in fields}
        case ListType(_, StructType(fields)):
            return [
                {f.id: _value(data, f.type) for f in fields}
                for _ in range(data.draw(st.integers(0, 2)))
            ]
        case _:
            return data.draw(st.sampled_from([None, *VALUES[str(kind)]]))


def _shown(field: Field, values: Row) -> Any:
    """What a reader must show: by the name of now, with the initial default where it is younger."""
    if field.id not in values:
        return field.initial_default
    return _named(field.type, values[field.id])


def _named(kind: Type, value: Any) -> Any:
    match kind:
        case StructType(fields):
            return None if value is None else {f.name: _shown(f, value) for f in fields}
        case ListType(_, StructType(fields)):
            return [{f.name: _shown(f, item) for f in fields} for item in value]
        case _:
            return value


class Model:
    def __init__(self, table: lakebed.Table) -> None:
        self.table = table
        self.rows: list[Row] = []

    def append(self, data: st.DataObject) -> None:
        schema = self.table.schema
        number = len(self.rows)
        row = {f.id: _value(data, f.type) for f in schema.fields}
        row[schema.fields[[f.name for f in schema.fields].index("id")].id] = number
        self.table.append([{f.name: _named(f.type, row[f.id]) for f in schema.fields}])
        self.rows.append(row)

    def wanted(self) -> list[dict[str, Any]]:
        return [{f.name: _shown(f, row) for f in self.table.schema.fields} for row in self.rows]

    def alter(self, data: st.DataObject) -> None:
        """One step that may be refused; nothing has changed then."""
        before = self.table.version
        level = data.draw(st.sampled_from(LEVELS))
        path = (*level, data.draw(st.sampled_from((*NAMES, "s", "l", "t"))))
        step = data.draw(st.sampled_from(STEPS))
        try:
            words = step(self, data, path)
        except (InvalidInput, NoChanges) as refused:
            note(f"refused: {refused}")
            assert self.table.version == before
            return
        note(words)

    def _add(self, data: st.DataObject, path: tuple[str, ...]) -> str:
        kind = data.draw(st.sampled_from(KINDS))
        default = data.draw(st.sampled_from([None, DEFAULTS.get(kind)]))
        ids = {f.id for f in self.table.schema.walk()}
        first = data.draw(st.booleans())
        self.table.alter().add_column(path, kind, default=default, first=first).commit()
        assert find_path(self.table.schema.fields, path)[-1].id not in ids
        return f"add {path} {kind} {default}"

    def _rename(self, data: st.DataObject, path: tuple[str, ...]) -> str:
        new = data.draw(st.sampled_from(NAMES))
        self.table.alter().rename_column(path, new).commit()
        return f"rename {path} {new}"

    def _swap(self, _: st.DataObject, path: tuple[str, ...]) -> str:
        parent = path[:-1]
        alter = self.table.alter().rename_column((*parent, "a"), "tmp")
        alter.rename_column((*parent, "b"), "a").rename_column((*parent, "tmp"), "b").commit()
        return f"swap {parent}"

    def _drop(self, _: st.DataObject, path: tuple[str, ...]) -> str:
        self.table.alter().drop_column(path).commit()
        return f"drop {path}"

    def _again(self, data: st.DataObject, path: tuple[str, ...]) -> str:
        kind = data.draw(st.sampled_from(KINDS))
        self.table.alter().drop_column(path).add_column(path, kind).commit()
        return f"drop and add {path} {kind}"

    def _move(self, _: st.DataObject, path: tuple[str, ...]) -> str:
        self.table.alter().move_column(path, before="a").commit()
        return f"move {path}"

    def _widen(self, data: st.DataObject, path: tuple[str, ...]) -> str:
        kind = data.draw(st.sampled_from(WIDER))
        self.table.alter().widen_column(path, kind).commit()
        return f"widen {path} {kind}"


STEPS = (
    Model._add,
    Model._rename,
    Model._swap,
    Model._drop,
    Model._again,
    Model._move,
    Model._widen,
)


def _deltalake(location: str) -> list[dict[str, Any]]:
    builder = QueryBuilder().register("t", DeltaTable(location))
    return [dict(r) for r in pl.DataFrame(builder.execute("SELECT * FROM t")).to_dicts()]


def _pyiceberg(location: str) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, about v3
        rows: list[dict[str, Any]] = (
            StaticTable.from_metadata(location).scan().to_arrow().to_pylist()
        )
        return rows


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: int(row["id"]))


@pytest.mark.parametrize("formats", [["delta", "iceberg"], ["iceberg"]], ids=["both", "iceberg"])
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_readers_follow_every_alteration(formats: list[str], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, lakebed.open(folder, create=True) as lake:
        model = Model(lake.create_table("s.t", START, formats=formats))
        model.append(data)
        for _ in range(data.draw(st.integers(1, 6))):
            for _ in range(data.draw(st.integers(1, 3))):
                model.alter(data)
            model.append(data)
        table, wanted = model.table, model.wanted()

        assert _sorted(table.to_arrow().to_pylist()) == wanted
        _check_filters(table, wanted)
        assert lake.check().clean
        assert _sorted(_pyiceberg(table.location)) == wanted
        widened = any(f.widened for f in table.schema.walk())
        if "delta" in formats and not widened:
            assert _sorted(_deltalake(table.location)) == wanted


def _check_filters(table: lakebed.Table, wanted: list[dict[str, Any]]) -> None:
    """Pruned or not, the same rows."""
    for field in table.schema.fields:
        if isinstance(field.type, StructType | ListType):
            continue
        name = f"`{field.name}`"
        empty = [r["id"] for r in wanted if r[field.name] is None]
        assert _ids(table, f"{name} IS NULL") == empty
        for value in {r[field.name] for r in wanted if r[field.name] is not None}:
            text = f"'{value}'" if isinstance(value, str) else f"{value}"
            same = [r["id"] for r in wanted if r[field.name] == value]
            assert _ids(table, f"{name} = {text}") == same
            if field.type != Primitive("string"):
                more = [r["id"] for r in wanted if (v := r[field.name]) is not None and v >= value]
                assert _ids(table, f"{name} >= {text}") == more


def _ids(table: lakebed.Table, where: str) -> list[int]:
    found: pa.Table = table.scan(where=where, columns=["id"]).to_arrow()
    return sorted(found["id"].to_pylist())
