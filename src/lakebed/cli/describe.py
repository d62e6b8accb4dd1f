"""Values of the API as records: what `--json` answers and what tables are drawn from."""

import dataclasses
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakebed.cli.output import count_of
from lakebed.model.partitioning import partition_terms, sort_terms
from lakebed.model.schema import Schema
from lakebed.model.single_values import to_json
from lakebed.model.types import DecimalType, Field, FixedType, Primitive, Type

if TYPE_CHECKING:
    from lakebed.api.status import Lag, Status
    from lakebed.api.table import FileEntry, Table
    from lakebed.maintenance.findings import Finding, Report
    from lakebed.model.history import Commit, Ref
    from lakebed.model.runs import Run

Record = dict[str, Any]
_EPOCH = date(1970, 1, 1)


def table_record(table: "Table") -> Record:
    schema = table.schema
    return {
        "name": table.name,
        "uuid": table.uuid,
        "version": table.version,
        "rows": table.row_count,
        "location": table.location,
        "formats": list(table.formats),
        "comment": table.comment,
        "columns": columns_of(schema),
        "primary_key": [schema.field(key).name for key in schema.primary_key],
        "partition_by": partition_terms(table.partitioning, schema),
        "sort_by": sort_terms(table.sort_order, schema),
        "constraints": dict(table.constraints),
        "properties": dict(table.properties),
    }


def columns_of(schema: Schema) -> list[Record]:
    return [
        {
            "id": field.id,
            "name": field.name,
            "type": str(field.type),
            "required": field.required,
            "default": _default(field),
            "comment": field.doc,
        }
        for field in schema.fields
    ]


def _default(field: Field) -> object:
    kind = field.type
    if field.write_default is None or not isinstance(kind, Primitive | DecimalType | FixedType):
        return None
    return to_json(kind, field.write_default)


def commit_record(commit: "Commit") -> Record:
    return {
        "table": commit.table,
        "version": commit.version,
        "time": commit.time,
        "operation": commit.operation,
        "branch": commit.branch,
        "duration_ms": commit.duration_ms,
        "author": commit.author,
        "message": commit.message,
        "added_rows": commit.summary.get("added_rows", 0),
        "removed_rows": commit.summary.get("removed_rows", 0),
        "published": commit.published,
        "reason": commit.reason,
        "replayed": commit.replayed,
        "transaction_id": commit.transaction_id,
        "summary": dict(commit.summary),
    }


def ref_record(ref: "Ref") -> Record:
    return {
        "name": ref.name,
        "kind": ref.kind,
        "version": ref.version,
        "snapshot_id": ref.snapshot_id,
        "created": ref.created,
        "max_age_ms": ref.max_age_ms,
        "min_snapshots": ref.min_snapshots,
        "max_snapshot_age_ms": ref.max_snapshot_age_ms,
    }


def commit_line(commit: "Commit") -> str:
    """One sentence about a commit, for people."""
    table = commit.table if commit.branch == "main" else f"{commit.table}@{commit.branch}"
    if commit.replayed:
        return f"{table}: version {commit.version} was the answer before; nothing was written"
    added, removed = commit.summary.get("added_rows", 0), commit.summary.get("removed_rows", 0)
    counts = [f"{count_of(added, 'row')} added" if added else ""]
    counts += [f"{count_of(removed, 'row')} removed" if removed else ""]
    told = ", ".join(c for c in counts if c) or commit.operation
    late = "" if commit.published else " (not published yet)"
    return f"{table} is at version {commit.version}: {told}{late}"


def file_record(entry: "FileEntry", types: dict[str, Type]) -> Record:
    partition = {n: _readable(v, types.get(n)) for n, v in entry.partition.items()}
    return {
        "path": entry.path,
        "rows": entry.record_count,
        "size_bytes": entry.size_bytes,
        "partition": partition,
        "added_version": entry.added_version,
    }


def partition_types(table: "Table") -> dict[str, Type]:
    spec = table.partitioning
    return {
        field.name: kind for field, kind in zip(spec.fields, spec.types(table.schema), strict=True)
    }


def _readable(value: object, kind: Type | None) -> object:
    """A partition value as people write it; numbers and text stay as they are."""
    match value, kind:
        case int(), Primitive("date"):
            return _day(value)
        case bytes(), _:
            return value.hex()
        case _, DecimalType():
            return str(value)
        case _:
            return value


def _day(days: int) -> object:
    try:
        return (_EPOCH + timedelta(days=days)).isoformat()
    except OverflowError:
        return days


def status_record(status: "Status") -> Record:
    return {
        "stopped": status.stopped,
        "lagging": status.lagging,
        "warn_s": status.warn_s,
        "versions_behind": status.backlog.versions,
        "lag_s": status.backlog.seconds,
        "waiting": [_lag_record(lag) for lag in status.lags],
        "split_commits": [
            {
                "transaction_id": split.transaction_id,
                "published": list(split.published),
                "waiting": list(split.waiting),
            }
            for split in status.split_commits
        ],
        # Without hits: they are one process's own, and this one has read nothing.
        "cache": status.cache
        and {
            "folder": status.cache.folder,
            "used_bytes": status.cache.used_bytes,
            "limit_bytes": status.cache.limit_bytes,
        },
    }


def _lag_record(lag: "Lag") -> Record:
    return {
        "table": lag.table,
        "format": lag.format,
        "kind": lag.kind,
        "from_version": lag.from_version,
        "to_version": lag.to_version,
        "waiting": lag.waiting,
        "lag_s": lag.lag_s,
        "attempts": lag.attempts,
        "stopped": lag.stopped,
        "error_code": lag.error_code,
        "error": lag.error,
    }


def report_record(report: "Report") -> Record:
    return {
        "clean": report.clean,
        "tables": report.tables,
        "files": report.files,
        "findings": [finding_record(f) for f in report.findings],
        "notes": [finding_record(f) for f in report.notes],
        "repaired": list(report.repaired),
    }


def finding_record(finding: "Finding") -> Record:
    return {
        "table": finding.table,
        "code": finding.code,
        "format": finding.format,
        "path": finding.path,
        "message": finding.message,
    }


def run_record(run: "Run") -> Record:
    failure = run.report.failure
    took_ms = None if run.finished_ms is None else run.finished_ms - run.started_ms
    return {
        "id": run.id,
        "pipeline": run.pipeline,
        "status": run.status,
        "started": datetime.fromtimestamp(run.started_ms / 1000, UTC).isoformat(),
        "seconds": None if took_ms is None else took_ms / 1000,
        "author": run.author,
        "parameters": dict(run.report.parameters),
        "steps": [dataclasses.asdict(step) for step in run.report.steps],
        "written": dict(run.report.written),
        "error": None if failure is None else dataclasses.asdict(failure),
    }
