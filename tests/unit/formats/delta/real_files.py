"""Real Parquet files for tests, with the records and statistics a writer would hand in."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.engines.arrow.partition import NULL_FOLDER
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.files import BOUND_LENGTH, ColumnStats, DataFile
from lakebed.model.history import TableState
from lakebed.model.ids import FieldId
from lakebed.model.types import Field, ListType, MapType, StructType, Type, is_scalar
from lakebed.storage.base import Storage
from tests.unit.formats.delta.rows import ROOT

Row = dict[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_file(storage: Storage, state: TableState, name: str, rows: Sequence[Row]) -> DataFile:
    """Rows of one partition by logical names; its column is in the file and in the folder."""
    sources = [state.schema.field(f.source_id) for f in state.spec.fields]
    partition = tuple(stored(rows[0][f.name]) for f in sources)
    assert all(tuple(stored(r[f.name]) for f in sources) == partition for r in rows)
    levels = [f"{quote(f.name, safe='')}={_folder(rows[0][f.name])}" for f in sources]
    path = "/".join(filter(None, ("data", *levels, name)))
    schema = to_arrow(state.schema, physical=True)
    physical = [_physical(StructType(state.schema.fields), row) for row in rows]
    table = pa.Table.from_pylist(physical, schema)
    with storage.open_output(f"{ROOT}/{path}") as output:
        pq.write_table(table, output, store_schema=False, compression="zstd")
    found = storage.stat(f"{ROOT}/{path}")
    assert found is not None
    stats = dict(_stats(state.schema.fields, rows))
    return DataFile(path, found.size_bytes, len(rows), state.spec.id, partition, stats)


def _folder(value: Any) -> str:
    """As other writers name it, with escapes; ours never need one."""
    if value is None:
        return NULL_FOLDER
    if isinstance(value, datetime):
        value = value.replace(tzinfo=None).isoformat()
    return quote(str(value).lower() if isinstance(value, bool) else str(value), safe="")


def _physical(kind: Type, value: Any) -> Any:
    if value is None:
        return None
    match kind:
        case StructType(fields):
            return {f.physical: _physical(f.type, value.get(f.name)) for f in fields}
        case ListType(_, element):
            return [_physical(element, v) for v in value]
        case MapType(_, _, _, inner):
            return [(k, _physical(inner, v)) for k, v in value]
        case _:
            return value


def _stats(fields: Sequence[Field], rows: Sequence[Row]) -> Iterator[tuple[FieldId, ColumnStats]]:
    for field in fields:
        values = [row.get(field.name) for row in rows]
        if isinstance(field.type, StructType):
            yield from _stats(field.type.fields, [v or {} for v in values])
        elif is_scalar(field.type):
            yield field.id, _column_stats([stored(v) for v in values])


def _column_stats(values: list[Any]) -> ColumnStats:
    present = [v for v in values if v is not None]
    finite = [v for v in present if v == v]  # noqa: PLR0124 - NaN is not equal to itself
    return ColumnStats(
        value_count=len(values),
        null_count=len(values) - len(present),
        nan_count=len(present) - len(finite),
        lower=_cut(min(finite)) if finite else None,
        upper=_cut_up(max(finite)) if finite else None,
    )


def _cut(value: Any) -> Any:
    return value[:BOUND_LENGTH] if isinstance(value, str | bytes) else value


def _cut_up(value: Any) -> Any:
    if isinstance(value, str) and len(value) > BOUND_LENGTH:
        last = ord(value[BOUND_LENGTH - 1])
        return None if last == 0x10FFFF else value[: BOUND_LENGTH - 1] + chr(last + 1)
    return None if isinstance(value, bytes) and len(value) > BOUND_LENGTH else value


def stored(value: Any) -> Any:
    match value:
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            return (moment - _EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - _EPOCH.date()).days
        case Decimal() | _:
            return value
