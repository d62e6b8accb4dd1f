"""Rows against what was published: recorded files, and both formats replayed by our readers."""

from collections.abc import Iterator, Mapping

import orjson

from lakebed.core.ledger import Ledger
from lakebed.formats.base import digest
from lakebed.formats.delta.features import protocol_of
from lakebed.formats.delta.read import read_snapshot as read_delta
from lakebed.formats.delta.schema_json import schema_string
from lakebed.formats.delta.vectors import read_vectors as read_delta_vectors
from lakebed.formats.iceberg.names import VERSION_HINT
from lakebed.formats.iceberg.read import read_snapshot as read_iceberg
from lakebed.formats.iceberg.read import read_vectors as read_iceberg_vectors
from lakebed.formats.iceberg.types import schema_json
from lakebed.maintenance.findings import Finding
from lakebed.model.errors import LakebedError
from lakebed.model.files import LiveFile
from lakebed.model.history import DELTA, ICEBERG, PublicationRecord, TableHead
from lakebed.model.ids import Version
from lakebed.model.vectors import Positions
from lakebed.storage.base import Storage

_BITMAPS = 1000  # read from the rows at once
Shown = dict[str, tuple[int, int | None]]  # path -> (size, rows)


def check_published(
    storage: Storage, ledger: Ledger, head: TableHead, stored: Mapping[str, int]
) -> Iterator[Finding]:
    since = _restart(ledger, head)
    records = [r for r in ledger.all_publications() if r.version >= since]
    for record in records:
        yield from _check_file(storage, head, record, stored)
    formats = ledger.state(head.state_id).formats
    for format_, check in ((DELTA, _check_delta), (ICEBERG, _check_iceberg)):
        newest = _newest(records, format_)
        if newest is None or format_ not in formats:
            continue
        try:
            yield from check(storage, ledger, head, newest)
        except LakebedError as error:
            path = str(error.context.get("path") or newest.path)
            yield Finding(str(head.name), "UNREADABLE", error.message, path, format_)


def _restart(ledger: Ledger, head: TableHead) -> Version:
    """A repair publishes everything anew; what came before it is only history."""
    repairs = [c.version for c in ledger.commits(head.version + 1) if c.operation == "repair"]
    return max(repairs, default=Version(0))


def _newest(records: list[PublicationRecord], format_: str) -> PublicationRecord | None:
    kinds = ("commit", "start", "metadata")
    found = [r for r in records if r.format == format_ and r.kind in kinds]
    return max(found, key=lambda r: r.number, default=None)


def _check_file(
    storage: Storage, head: TableHead, record: PublicationRecord, stored: Mapping[str, int]
) -> Iterator[Finding]:
    table = str(head.name)
    if record.path not in stored:
        message = f"the {record.kind} file of version {record.version} is gone"
        yield Finding(table, "PUBLISHED_FILE_MISSING", message, record.path, record.format)
    elif digest(storage.get(f"{head.location}/{record.path}")) != record.digest:
        message = f"the {record.kind} file of version {record.version} is not what was written"
        yield Finding(table, "PUBLISHED_FILE_DIFFERS", message, record.path, record.format)


def _check_delta(
    storage: Storage, ledger: Ledger, head: TableHead, newest: PublicationRecord
) -> Iterator[Finding]:
    table = str(head.name)
    found = read_delta(storage, head.location, newest.version)
    state = ledger.view(newest.version).state
    shown: Shown = {
        path: (add.size_bytes, _delta_rows(add.stats)) for path, add in found.files.items()
    }
    named = [(path, a.deletion_vector) for path, a in found.files.items() if a.deletion_vector]
    vectors = read_delta_vectors(storage, head.location, named)
    yield from _compare(ledger, table, DELTA, newest, shown, vectors)
    if found.metadata.schema_string != schema_string(state.schema, mapped=state.delta_mapping):
        yield Finding(table, "DIFFERS", "Delta shows another schema", newest.path, DELTA)
    if found.protocol != protocol_of(state):
        yield Finding(table, "DIFFERS", "Delta shows another protocol", newest.path, DELTA)


def _delta_rows(stats: str | None) -> int | None:
    rows = orjson.loads(stats).get("numRecords") if stats else None
    return int(rows) if rows is not None else None


def _check_iceberg(
    storage: Storage, ledger: Ledger, head: TableHead, newest: PublicationRecord
) -> Iterator[Finding]:
    table = str(head.name)
    found = read_iceberg(storage, head.location, metadata_path=newest.path)
    state = ledger.view(newest.version).state
    shown: Shown = {
        path: (each.file.size_bytes, each.file.record_count) for path, each in found.files.items()
    }
    vectors = read_iceberg_vectors(storage, head.location, found)
    yield from _compare(ledger, table, ICEBERG, newest, shown, vectors)
    current = found.metadata.get("current-schema-id")
    schemas = {s.get("schema-id"): s for s in found.metadata.get("schemas", [])}
    if schemas.get(current) != orjson.loads(
        orjson.dumps(schema_json(state.schema, state.iceberg_version))
    ):
        yield Finding(table, "DIFFERS", "Iceberg shows another schema", newest.path, ICEBERG)
    hint = storage.get(f"{head.location}/{VERSION_HINT}").decode(errors="replace").strip()
    if f"metadata/{hint}.metadata.json" != newest.path:
        message = f"the version hint says {hint!r}"
        yield Finding(table, "DIFFERS", message, VERSION_HINT, ICEBERG)


def _compare(
    ledger: Ledger,
    table: str,
    format_: str,
    newest: PublicationRecord,
    shown: Shown,
    vectors: Mapping[str, Positions],
) -> Iterator[Finding]:
    live = ledger.files_at(newest.version)
    rows: Shown = {f.file.path: (f.file.size_bytes, f.file.record_count) for f in live}
    at = f"version {newest.version}"
    for path in sorted(rows.keys() - shown.keys()):
        yield Finding(table, "DIFFERS", f"{format_} lacks a file at {at}", path, format_)
    for path in sorted(shown.keys() - rows.keys()):
        yield Finding(table, "DIFFERS", f"{format_} shows a file too much at {at}", path, format_)
    for path in sorted(rows.keys() & shown.keys()):
        if rows[path] != shown[path]:
            message = f"{format_} says {shown[path]} (bytes, rows), the rows {rows[path]}"
            yield Finding(table, "DIFFERS", message, path, format_)
    for path in _other_vectors(ledger, live, vectors):
        message = f"{format_} deletes other rows of a file than the rows do at {at}"
        yield Finding(table, "DIFFERS", message, path, format_)


def _other_vectors(
    ledger: Ledger, live: list[LiveFile], shown: Mapping[str, Positions]
) -> Iterator[str]:
    """Files whose deleted positions are not those of the rows."""
    for start in range(0, len(live), _BITMAPS):
        files = live[start : start + _BITMAPS]
        bitmaps = ledger.bitmaps([f.vector.id for f in files if f.vector])
        for f in files:
            ours = Positions.from_bytes(bitmaps[f.vector.id]) if f.vector else Positions()
            if shown.get(f.file.path, Positions()) != ours:
                yield f.file.path
