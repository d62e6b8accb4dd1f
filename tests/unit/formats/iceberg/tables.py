"""Tables to publish: Parquet files with field ids, written the way the engines write them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.model import transforms
from lakebed.model.files import ColumnStats, DataFile
from lakebed.model.ids import FieldId, Version
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.types import (
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    Stored,
    StructType,
    Type,
    is_scalar,
)
from lakebed.model.vectors import Positions
from lakebed.storage.base import Storage
from tests.unit.formats.iceberg.fake_ledger import FakeLedger, publish

Rows = list[dict[str, Any]]

_ARROW = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "uuid": pa.uuid(),
    "binary": pa.binary(),
}


def arrow_type(kind: Type) -> pa.DataType:
    match kind:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case FixedType(length):
            return pa.binary(length)
        case Primitive(name):
            return _ARROW[name]
        case StructType(fields):
            return pa.struct([arrow_field(f) for f in fields])
        case ListType(i, element, required):
            return pa.list_(arrow_field(Field(i, "element", element, required, None, "element")))
        case MapType(key_id, key, value_id, value, required):
            return pa.map_(
                arrow_field(Field(key_id, "key", key, True, None, "key")),
                arrow_field(Field(value_id, "value", value, required, None, "value")),
            )


def arrow_field(field: Field) -> pa.Field:
    metadata = {"PARQUET:field_id": str(field.id)}
    return pa.field(
        field.physical, arrow_type(field.type), nullable=not field.required, metadata=metadata
    )


def stored_values(column: pa.Array, kind: Type) -> list[Any]:
    """A column in stored form."""
    if isinstance(kind, Primitive) and kind.name == "uuid":
        return [None if v is None else v.bytes for v in column.to_pylist()]
    if isinstance(kind, Primitive) and kind.name == "date":
        return list(column.cast(pa.int32()).to_pylist())
    if isinstance(kind, Primitive) and kind.name.startswith("time"):
        return list(column.cast(pa.int64()).to_pylist())
    return list(column.to_pylist())


def column_stats(table: pa.Table, fields: Sequence[Field]) -> dict[FieldId, ColumnStats]:
    found: dict[FieldId, ColumnStats] = {}
    for field in fields:
        column = table.column(field.physical).combine_chunks()
        if isinstance(field.type, StructType):
            inner = pa.Table.from_arrays(column.flatten(), [f.physical for f in field.type.fields])
            found |= column_stats(inner, field.type.fields)
        elif is_scalar(field.type):
            found[field.id] = _stats(stored_values(column, field.type), field.type)
    return found


def _stats(values: list[Any], kind: Type) -> ColumnStats:
    floating = kind in (Primitive("float"), Primitive("double"))
    nans = [v for v in values if isinstance(v, float) and math.isnan(v)]
    filled = [v for v in values if v is not None and not (floating and math.isnan(v))]
    return ColumnStats(
        len(values),
        values.count(None),
        len(nans) if floating else None,
        10 * len(values),
        min(filled, default=None),
        max(filled, default=None),
    )


class Table:
    """A published table and the rows it should have at every version."""

    def __init__(self, storage: Storage, ledger: FakeLedger) -> None:
        self.storage = storage
        self.ledger = ledger
        self.rows: list[list[tuple[int, Rows]]] = []  # per version: live files with their rows
        self.by_file: dict[int, Rows] = {}
        self.commit()

    @property
    def schema(self) -> Schema:
        return self.ledger.states[-1].schema

    @property
    def location(self) -> str:
        return self.storage.location(self.ledger.location)

    @property
    def metadata_path(self) -> str:
        newest = [p for p in self.ledger.published if p.kind == "metadata"][-1]
        return f"{self.location}/{newest.path}"

    def commit(self, *batches: Rows, kind: str = "commit", **changes: Any) -> Version:
        """Each batch becomes a file per partition."""
        files = [file for batch in batches for file in self._write(batch)]
        first = len(self.ledger.files) + 1
        version = self.ledger.commit([f for f, _ in files], **changes)
        for number, (_, rows) in enumerate(files):
            self.by_file[first + number] = rows
        publish(self.storage, self.ledger, version, kind)
        return version

    def rows_at(self, version: int) -> Rows:
        found = []
        for f in self.ledger.files_at(Version(version)):
            bitmap = self.ledger.all_bitmaps[f.vector.id] if f.vector else None
            gone = Positions.from_bytes(bitmap) if bitmap else Positions()
            found += [row for at, row in enumerate(self.by_file[f.id]) if at not in gone]
        return found

    def _write(self, rows: Rows) -> list[tuple[DataFile, Rows]]:
        spec = self.ledger.states[-1].spec
        groups: dict[tuple[Any, ...], Rows] = {}
        for row, key in zip(rows, self._partitions(rows, spec), strict=True):
            groups.setdefault(tuple(map(_hashable, key)), []).append(row)
        return [(self._write_file(group, spec), group) for group in groups.values()]

    def _arrow(self, rows: Rows) -> pa.Table:
        named = {f.name: f for f in self.schema.fields}
        physical = [
            {named[n].physical: _renamed(named[n].type, v) for n, v in row.items()} for row in rows
        ]
        return pa.Table.from_pylist(
            physical, schema=pa.schema([arrow_field(f) for f in self.schema.fields])
        )

    def _partitions(self, rows: Rows, spec: PartitionSpec) -> list[tuple[Stored | None, ...]]:
        table, columns = self._arrow(rows), []
        for field in spec.fields:
            *above, leaf = self.schema.path_of(field.source_id)
            column = table
            for step in (*above, leaf):
                column = (
                    column.column(step.physical).combine_chunks()
                    if isinstance(column, pa.Table)
                    else column.field(step.physical)
                )
            values = stored_values(column, leaf.type)
            columns.append([transforms.apply(field.transform, leaf.type, v) for v in values])
        return list(zip(*columns, strict=True)) if columns else [()] * len(rows)

    def _write_file(self, rows: Rows, spec: PartitionSpec) -> DataFile:
        table = self._arrow(rows)
        path = f"data/{self.ledger.head().version if self.rows else 0}-{next(_COUNTER)}.parquet"
        if spec.fields:
            path = f"data/p=a %20b é/{path.removeprefix('data/')}"
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, store_schema=False, compression="zstd")
        data = sink.getvalue().to_pybytes()
        assert self.storage.put_if_absent(f"{self.ledger.location}/{path}", data)
        return DataFile(
            path=path,
            size_bytes=len(data),
            record_count=len(rows),
            spec_id=spec.id,
            partition=self._partitions(rows, spec)[0],
            stats=column_stats(table, self.schema.fields),
            split_offsets=(4,),
        )


def _counter() -> Any:
    number = 0
    while True:
        number += 1
        yield number


_COUNTER = _counter()


def _hashable(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _renamed(kind: Type, value: Any) -> Any:
    """Members of structs under their physical names."""
    if value is None:
        return None
    match kind:
        case StructType(fields):
            return {f.physical: _renamed(f.type, value.get(f.name)) for f in fields}
        case ListType(_, element):
            return [_renamed(element, v) for v in value]
        case MapType(_, _, _, inner):
            items = value.items() if isinstance(value, Mapping) else value
            return [(k, _renamed(inner, v)) for k, v in items]
        case _:
            return value
