"""Other readers of what we publish, behind two questions: all rows, and the rows that match."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import deltalake
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import expressions as ib
from pyiceberg.table import StaticTable

from lakebed import Table

Operator = Literal["=", "<", ">=", "null", "not null"]


@dataclass(frozen=True)
class Filter:
    """A condition on one top-level column; `value` in stored form, `kind` our word for its type."""

    column: str
    operator: Operator
    kind: str
    value: Any = None


@dataclass(frozen=True)
class At:
    """One version of a published table, as each format names it."""

    location: str
    version: int
    snapshot_id: int | None
    metadata_path: str | None


class Reader(Protocol):
    format: str

    def read(self, at: At) -> pa.Table: ...

    def ids(self, at: At, condition: Filter, whole: pa.Table) -> tuple[list[int], list[int]]:
        """Keys of the rows that match: as filtered by the reader, which may leave files out, and
        as told for every row of the whole table, which may not."""
        ...


def moment(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None) + timedelta(microseconds=micros)


def day(days: int) -> date:
    return date(1970, 1, 1) + timedelta(days=days)


def places(table: Table) -> dict[int, At]:
    """Every version that both formats offer, by number."""
    location = Path(table.location)
    hint = location / "metadata" / "version-hint.text"
    snapshots: list[tuple[int, int]] = []
    if hint.exists():
        newest = orjson.loads(
            (location / f"metadata/{hint.read_text()}.metadata.json").read_bytes()
        )
        snapshots = [(s["timestamp-ms"], s["snapshot-id"]) for s in newest["snapshots"]]
    found = {}
    for commit in table.history():
        ids = [i for time_ms, i in sorted(snapshots) if time_ms <= commit.time_ms]
        paths = list(location.glob(f"metadata/{commit.version:05d}-*.metadata.json"))
        found[commit.version] = At(
            str(location),
            commit.version,
            ids[-1] if ids else None,
            str(paths[0]) if paths else None,
        )
    return found


def _mask(condition: Filter, name: str, literal: Callable[[Filter], str]) -> str:
    match condition.operator:
        case "null":
            return f"{name} IS NULL"
        case "not null":
            return f"{name} IS NOT NULL"
        case operator:
            return f"{name} {operator} {literal(condition)}"


def _split(table: pa.Table) -> list[int]:
    return sorted(table.filter(pc.field("m"))["id"].to_pylist())


class DeltaArrow:
    """deltalake, through a pyarrow dataset: statistics become guarantees of fragments."""

    format = "delta"

    def read(self, at: At) -> pa.Table:
        return deltalake.DeltaTable(at.location, version=at.version).to_pyarrow_table()

    def ids(self, at: At, condition: Filter, whole: pa.Table) -> tuple[list[int], list[int]]:
        dataset = deltalake.DeltaTable(at.location, version=at.version).to_pyarrow_dataset()
        matches = _arrow(condition, dataset.schema.field(condition.column).type)
        found = dataset.to_table(filter=matches)["id"].to_pylist()
        return sorted(found), sorted(whole.filter(matches)["id"].to_pylist())


def _arrow(condition: Filter, kind: pa.DataType) -> pc.Expression:
    column = pc.field(condition.column)
    if condition.operator == "null":
        return column.is_null()
    if condition.operator == "not null":
        return column.is_valid()
    value = pa.array([condition.value], _stored_type(kind)).cast(kind)[0]
    return _compared(condition, column, value)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


class DeltaQuery:
    """deltalake's own engine, DataFusion."""

    format = "delta"

    def read(self, at: At) -> pa.Table:
        return self._run(at, "SELECT * FROM t")

    def ids(self, at: At, condition: Filter, whole: pa.Table) -> tuple[list[int], list[int]]:
        name = f'"{condition.column}"'
        matches = _mask(condition, name, _datafusion)
        found = self._run(at, f"SELECT id FROM t WHERE {matches}")["id"].to_pylist()
        return sorted(found), _split(self._run(at, f"SELECT id, {matches} AS m FROM t"))

    def _run(self, at: At, query: str) -> pa.Table:
        table = deltalake.DeltaTable(at.location, version=at.version)
        return pa.table(deltalake.QueryBuilder().register("t", table).execute(query).read_all())


def _datafusion(condition: Filter) -> str:
    value = condition.value
    match condition.kind.partition("(")[0]:
        case "date":
            return f"arrow_cast(CAST({value} AS INT), 'Date32')"
        case "timestamp":
            return f"arrow_cast(CAST({value} AS BIGINT), 'Timestamp(Microsecond, Some(\"UTC\"))')"
        case "timestamp_ntz":
            return f"arrow_cast(CAST({value} AS BIGINT), 'Timestamp(Microsecond, None)')"
        case "decimal":
            precision, scale = condition.kind[8:-1].split(",")
            return f"arrow_cast('{value:f}', 'Decimal128({precision}, {scale})')"
        case "float":
            return f"CAST('{value!r}' AS FLOAT)"
        case "double":
            return f"CAST('{value!r}' AS DOUBLE)"
        case _:
            return sql_literal(value)


def sql_literal(value: Any) -> str:
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"({value})" if isinstance(value, int) else str(value)


class PyIceberg:
    """By folder for the newest version, by metadata file and by snapshot for older ones."""

    format = "iceberg"

    def read(self, at: At) -> pa.Table:
        by_folder = StaticTable.from_metadata(at.location)
        if at.snapshot_id is None:
            return StaticTable.from_metadata(str(at.metadata_path)).scan().to_arrow()
        found = by_folder.scan(snapshot_id=at.snapshot_id).to_arrow()
        by_file = StaticTable.from_metadata(str(at.metadata_path)).scan().to_arrow()
        assert found.num_rows == by_file.num_rows
        return found

    def ids(self, at: At, condition: Filter, whole: pa.Table) -> tuple[list[int], list[int]]:
        table = StaticTable.from_metadata(str(at.metadata_path))
        found = table.scan(row_filter=_iceberg(condition)).to_arrow()
        matches = _arrow(condition, whole.schema.field(condition.column).type)
        return sorted(found["id"].to_pylist()), sorted(whole.filter(matches)["id"].to_pylist())


def _iceberg(condition: Filter) -> Any:
    made: Any = ib  # its hints know the fields of its models, not what may be passed
    column, value = condition.column, _python(condition)
    match condition.operator:
        case "null":
            return made.IsNull(column)
        case "not null":
            return made.NotNull(column)
        case "=":
            return made.EqualTo(column, value)
        case "<":
            return made.LessThan(column, value)
        case _:
            return made.GreaterThanOrEqual(column, value)


def _python(condition: Filter) -> Any:
    value = condition.value
    if value is None:
        return None
    match condition.kind:
        case "date":
            return day(value)
        case "timestamp":
            return moment(value).replace(tzinfo=UTC)
        case "timestamp_ntz":
            return moment(value)
        case "time":
            return moment(value).time()
        case _:
            return value


class PolarsDelta:
    format = "delta"

    def scan(self, at: At) -> pl.LazyFrame:
        return pl.scan_delta(at.location, version=at.version)

    def read(self, at: At) -> pa.Table:
        return self.scan(at).collect().to_arrow()

    def ids(self, at: At, condition: Filter, whole: pa.Table) -> tuple[list[int], list[int]]:
        frame = self.scan(at)
        matches = _polars(condition, frame.collect_schema()[condition.column])
        found = frame.filter(matches).select("id").collect()["id"].to_list()
        every = frame.select("id", m=matches).collect().filter("m")["id"].to_list()
        return sorted(found), sorted(every)


class PolarsIceberg(PolarsDelta):
    format = "iceberg"

    def scan(self, at: At) -> pl.LazyFrame:
        return pl.scan_iceberg(str(at.metadata_path))


def _polars(condition: Filter, kind: pl.DataType) -> pl.Expr:
    column = pl.col(condition.column)
    if condition.operator == "null":
        return column.is_null()
    if condition.operator == "not null":
        return column.is_not_null()
    value = pl.lit(_python(condition), dtype=kind)
    return cast(pl.Expr, _compared(condition, column, value))


def _compared(condition: Filter, column: Any, value: Any) -> Any:
    match condition.operator:
        case "=":
            return column == value
        case "<":
            return column < value
        case _:
            return column >= value


class Ours:
    """Our own reader, in the same row of tests; matching is told by plain Python."""

    format = "lakebed"

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, at: At) -> pa.Table:
        return self._table.scan(version=at.version).to_arrow()

    def ids(self, at: At, condition: Filter, whole: pa.Table) -> tuple[list[int], list[int]]:
        where = _mask(condition, f'"{condition.column}"', _lakebed)
        scan = self._table.scan(version=at.version, where=where, columns=["id"])
        wanted = [_holds(condition, v) for v in _stored(whole[condition.column])]
        ids = [i for i, w in zip(whole["id"].to_pylist(), wanted, strict=True) if w]
        return sorted(scan.to_arrow()["id"].to_pylist()), sorted(ids)


def _stored(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.int32())
    return list(column.to_pylist())


def _holds(condition: Filter, value: Any) -> bool:
    """NaN is the greatest number, and equals itself."""
    if condition.operator in ("null", "not null"):
        return (value is None) == (condition.operator == "null")
    if value is None:
        return False
    if condition.kind in ("float", "double"):
        value, wanted = _order(value), _order(condition.value)
    else:
        wanted = condition.value
    return bool(
        {"=": value == wanted, "<": value < wanted, ">=": value >= wanted}[condition.operator]
    )


def _order(number: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(number) else (False, number)


def _lakebed(condition: Filter) -> str:
    value = condition.value
    match condition.kind.partition("(")[0]:
        case "date":
            return f"DATE '{day(value).isoformat()}'"
        case "timestamp":
            return f"TIMESTAMP '{moment(value).isoformat()}Z'"
        case "timestamp_ntz":
            return f"TIMESTAMP_NTZ '{moment(value).isoformat()}'"
        case "time":
            return f"'{moment(value).time().isoformat()}'"
        case "timestamp_ns" | "timestamptz_ns":
            seconds, nanos = divmod(value, 10**9)
            zone = "Z" if "tz" in condition.kind else ""
            return f"'{moment(seconds * 10**6).isoformat(timespec='seconds')}.{nanos:09d}{zone}'"
        case "uuid":
            text = value.hex()
            return f"'{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}'"
        case "float" | "double":
            return repr(value) if math.isfinite(value) else f"'{value!r}'"
        case "decimal":
            return f"{value:f}"
        case _:
            return sql_literal(value)
