"""Metadata tables: what `sales.orders$history` and the like show, as rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from lakebed.api.parts import Parts
from lakebed.api.table import Table
from lakebed.core.ledger import Ledger
from lakebed.model.errors import SqlUnsupported
from lakebed.sql.query import MetadataTable

_TIME = pa.timestamp("ms", "UTC")
_TEXTS = pa.map_(pa.string(), pa.string())
_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class _Shown:
    schema: pa.Schema
    rows: Callable[[Table, Ledger], list[dict[str, Any]]]


def metadata_rows(
    parts: Parts, table: Table, kind: MetadataTable, arguments: Sequence[object]
) -> pa.Table:
    if kind == "changes":
        return _changes(table, arguments)
    if arguments:
        raise SqlUnsupported(f"{table.name}${kind} takes no arguments", hint="leave them out")
    shown = _TABLES[kind]
    ledger = parts.outbox.ledger(table.id)
    return pa.Table.from_pylist(shown.rows(table, ledger), schema=shown.schema)


def _changes(table: Table, arguments: Sequence[object]) -> pa.Table:
    """`orders$changes(from, to)`: versions, the second one left out for the newest."""
    if len(arguments) > 2 or not all(type(a) is int for a in arguments):
        raise SqlUnsupported(
            "$changes takes the version to begin after, and the last one",
            hint="write numbers: orders$changes(2, 5)",
        )
    numbers = [int(str(a)) for a in arguments]
    first = numbers[0] if numbers else 0
    last = numbers[1] if len(numbers) > 1 else None
    return table.changes(from_version=first, to_version=last).to_arrow()


def _history(table: Table, _: Ledger) -> list[dict[str, Any]]:
    return [
        {
            "version": c.version,
            "time": c.time,
            "operation": c.operation,
            "author": c.author,
            "message": c.message,
            "transaction_id": c.transaction_id,
            "summary": _texts(c.summary),
            "published": c.published,
        }
        for c in table.history(limit=_LIMIT)
    ]


def _files(table: Table, _: Ledger) -> list[dict[str, Any]]:
    return [
        {
            "path": f.path,
            "size_bytes": f.size_bytes,
            "record_count": f.record_count,
            "deleted_rows": f.deleted_rows,
            "partition": _json(f.partition),
            "added_version": f.added_version,
        }
        for f in table.files()
    ]


def _snapshots(_: Table, ledger: Ledger) -> list[dict[str, Any]]:
    return [
        {
            "snapshot_id": s.id,
            "parent_id": s.parent_id,
            "version": s.version,
            "line": s.line,
            "sequence_number": s.sequence_number,
            "time": s.time_ms,
            "operation": s.operation,
            "summary": _texts(s.summary),
            "manifest_list": s.manifest_list,
        }
        for s in ledger.snapshots()
    ]


def _schemas(table: Table, ledger: Ledger) -> list[dict[str, Any]]:
    current = table.schema.id
    return [
        {
            "schema_id": schema.id,
            "column_id": field.id,
            "path": ".".join(f.name for f in schema.path_of(field.id)),
            "type": str(field.type),
            "required": field.required,
            "comment": field.doc,
            "current": schema.id == current,
        }
        for schema in ledger.schemas()
        for field in schema.walk()
    ]


def _partitions(table: Table, _: Ledger) -> list[dict[str, Any]]:
    sums: dict[str, dict[str, Any]] = {}
    for f in table.files():
        key = _json(f.partition)
        row = sums.setdefault(key, {"partition": key, "files": 0, "rows": 0, "size_bytes": 0})
        row["files"] += 1
        row["rows"] += f.record_count - f.deleted_rows
        row["size_bytes"] += f.size_bytes
    return [sums[key] for key in sorted(sums)]


def _refs(table: Table, _: Ledger) -> list[dict[str, Any]]:
    return [
        {
            "name": ref.name,
            "kind": ref.kind,
            "version": ref.version,
            "snapshot_id": ref.snapshot_id,
            "created": ref.created_ms,
            "max_age_ms": ref.max_age_ms,
            "min_snapshots": ref.min_snapshots,
            "max_snapshot_age_ms": ref.max_snapshot_age_ms,
        }
        for ref in table.refs()
    ]


def _publications(_: Table, ledger: Ledger) -> list[dict[str, Any]]:
    times = ledger.publication_times()
    return [
        {
            "format": p.format,
            "kind": p.kind,
            "number": p.number,
            "version": p.version,
            "path": p.path,
            "size_bytes": p.size_bytes,
            "digest": p.digest,
            **_when(*times.get((p.format, p.kind, p.number), (None, None))),
        }
        for p in ledger.all_publications()
    ]


def _when(written_ms: int | None, committed_ms: int | None) -> dict[str, Any]:
    """When readers could see a version, and how long after its commit."""
    if written_ms is None or committed_ms is None:
        return {"written": written_ms, "lag_s": None}
    return {"written": written_ms, "lag_s": max(0, written_ms - committed_ms) / 1000}


def _texts(values: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in values.items()]


def _json(partition: Mapping[str, object]) -> str:
    return orjson.dumps(dict(partition), default=str).decode()


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


_TABLES = {
    "history": _Shown(
        _schema(
            version=pa.int64(),
            time=_TIME,
            operation=pa.string(),
            author=pa.string(),
            message=pa.string(),
            transaction_id=pa.string(),
            summary=_TEXTS,
            published=pa.bool_(),
        ),
        _history,
    ),
    "files": _Shown(
        _schema(
            path=pa.string(),
            size_bytes=pa.int64(),
            record_count=pa.int64(),
            deleted_rows=pa.int64(),
            partition=pa.string(),
            added_version=pa.int64(),
        ),
        _files,
    ),
    "snapshots": _Shown(
        _schema(
            snapshot_id=pa.int64(),
            parent_id=pa.int64(),
            version=pa.int64(),
            line=pa.int64(),
            sequence_number=pa.int64(),
            time=_TIME,
            operation=pa.string(),
            summary=_TEXTS,
            manifest_list=pa.string(),
        ),
        _snapshots,
    ),
    "schemas": _Shown(
        _schema(
            schema_id=pa.int64(),
            column_id=pa.int64(),
            path=pa.string(),
            type=pa.string(),
            required=pa.bool_(),
            comment=pa.string(),
            current=pa.bool_(),
        ),
        _schemas,
    ),
    "partitions": _Shown(
        _schema(partition=pa.string(), files=pa.int64(), rows=pa.int64(), size_bytes=pa.int64()),
        _partitions,
    ),
    "refs": _Shown(
        _schema(
            name=pa.string(),
            kind=pa.string(),
            version=pa.int64(),
            snapshot_id=pa.int64(),
            created=_TIME,
            max_age_ms=pa.int64(),
            min_snapshots=pa.int64(),
            max_snapshot_age_ms=pa.int64(),
        ),
        _refs,
    ),
    "publications": _Shown(
        _schema(
            format=pa.string(),
            kind=pa.string(),
            number=pa.int64(),
            version=pa.int64(),
            path=pa.string(),
            size_bytes=pa.int64(),
            digest=pa.string(),
            written=_TIME,
            lag_s=pa.float64(),
        ),
        _publications,
    ),
}
