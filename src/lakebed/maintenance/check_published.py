"""Rows against what was published: recorded files, and both formats replayed by our readers."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from lakebed.core.ledger import Ledger
from lakebed.formats.base import digest
from lakebed.formats.delta.features import protocol_of
from lakebed.formats.delta.read import read_snapshot as read_delta
from lakebed.formats.delta.schema_json import schema_string
from lakebed.formats.delta.vectors import read_vectors as read_delta_vectors
from lakebed.formats.iceberg.names import VERSION_HINT, Names, number_in_hint
from lakebed.formats.iceberg.read import IcebergSnapshot, read_metadata
from lakebed.formats.iceberg.read import read_snapshot as read_iceberg
from lakebed.formats.iceberg.read import read_vectors as read_iceberg_vectors
from lakebed.formats.iceberg.types import schema_json
from lakebed.maintenance.findings import Finding
from lakebed.model.errors import LakebedError
from lakebed.model.files import LiveFile
from lakebed.model.history import BRANCH, DELTA, ICEBERG, PublicationRecord, Ref, TableHead
from lakebed.model.ids import MAIN_LINE, Line, SnapshotId, Version
from lakebed.model.vectors import Positions
from lakebed.storage.base import Storage

_BITMAPS = 1000  # read from the rows at once
Shown = dict[str, tuple[int, int | None]]  # path -> (size, rows)


def check_published(
    storage: Storage, ledger: Ledger, head: TableHead, stored: Mapping[str, int]
) -> Iterator[Finding]:
    published = ledger.all_publications()
    since = {line: _restart(ledger, line) for line in {r.line for r in published}}
    records = [r for r in published if r.version >= since[r.line]]
    for record in records:
        yield from _check_file(storage, head, record, stored)
    formats = ledger.state(head.state_id).formats
    for format_, check in ((DELTA, _check_delta), (ICEBERG, _check_iceberg)):
        shown_by = _shown(records, format_)
        if not shown_by or format_ not in formats:
            continue
        try:
            yield from check(storage, ledger, head, shown_by)
        except LakebedError as error:
            path = str(error.context.get("path") or shown_by[-1].path)
            path = path.removeprefix(f"{head.location}/")
            yield Finding(str(head.name), "UNREADABLE", error.message, path, format_)


def _restart(ledger: Ledger, line: Line) -> Version:
    """A repair publishes a line anew; what came before it is only history."""
    repairs = [c.version for c in ledger.commits(2**62, line) if c.operation == "repair"]
    return max(repairs, default=Version(0))


def _shown(records: list[PublicationRecord], format_: str) -> list[PublicationRecord]:
    """The publications of a format that show rows, the newest last."""
    kinds = ("commit", "start", "metadata")
    found = [r for r in records if r.format == format_ and r.kind in kinds]
    return sorted(found, key=lambda r: r.number)


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
    storage: Storage, ledger: Ledger, head: TableHead, shown_by: list[PublicationRecord]
) -> Iterator[Finding]:
    table, newest = str(head.name), shown_by[-1]
    found = read_delta(storage, head.location, newest.version)
    state = ledger.view(newest.version).state
    shown: Shown = {
        path: (add.size_bytes, _delta_rows(add.stats)) for path, add in found.files.items()
    }
    named = [(path, a.deletion_vector) for path, a in found.files.items() if a.deletion_vector]
    vectors = read_delta_vectors(storage, head.location, named)
    at = (newest.version, MAIN_LINE)
    yield from _compare(ledger, table, DELTA, at, shown=shown, vectors=vectors)
    if found.metadata.schema_string != schema_string(state.schema, mapped=state.delta_mapping):
        yield Finding(table, "DIFFERS", "Delta shows another schema", newest.path, DELTA)
    if found.protocol != protocol_of(state):
        yield Finding(table, "DIFFERS", "Delta shows another protocol", newest.path, DELTA)


def _delta_rows(stats: str | None) -> int | None:
    rows = orjson.loads(stats).get("numRecords") if stats else None
    return int(rows) if rows is not None else None


def _check_iceberg(
    storage: Storage, ledger: Ledger, head: TableHead, shown_by: list[PublicationRecord]
) -> Iterator[Finding]:
    table, newest = str(head.name), shown_by[-1]
    found = read_iceberg(storage, head.location, metadata_path=newest.path)
    main = next((r for r in reversed(shown_by) if r.line == MAIN_LINE), newest)
    yield from _check_snapshot(storage, ledger, head, found, (main.version, MAIN_LINE))
    for ref in _shown_branches(ledger, found.metadata):
        yield from _check_branch(storage, ledger, head, newest, ref)
    (commit,) = ledger.commits_until(newest.version, newest.line, 1)
    state = ledger.state(commit.state_id)
    current = found.metadata.get("current-schema-id")
    schemas = {s.get("schema-id"): s for s in found.metadata.get("schemas", [])}
    if schemas.get(current) != orjson.loads(
        orjson.dumps(schema_json(state.schema, state.iceberg_version))
    ):
        yield Finding(table, "DIFFERS", "Iceberg shows another schema", newest.path, ICEBERG)
    yield from _check_hint(storage, head, newest)


def _check_hint(storage: Storage, head: TableHead, newest: PublicationRecord) -> Iterator[Finding]:
    """It may be ahead of the rows, whose publication is under way, never behind them."""
    hint = storage.get(f"{head.location}/{VERSION_HINT}")
    number = number_in_hint(head.uuid, hint)
    if number is None or number < newest.number or not _is_stored(storage, head, number):
        message = f"the version hint says {hint.decode(errors='replace').strip()!r}"
        yield Finding(str(head.name), "DIFFERS", message, VERSION_HINT, ICEBERG)


def _is_stored(storage: Storage, head: TableHead, number: int) -> bool:
    return storage.stat(f"{head.location}/{Names(head.uuid, number).metadata}") is not None


def _shown_branches(ledger: Ledger, metadata: Mapping[str, Any]) -> list[Ref]:
    """As they are shown; what a tag names is history."""
    refs = metadata.get("refs")
    shown = refs if isinstance(refs, dict) else {}
    found = []
    for ref in ledger.refs():
        there = shown.get(ref.name)
        snapshot_id = there.get("snapshot-id") if isinstance(there, dict) else None
        if ref.kind == BRANCH and isinstance(snapshot_id, int):
            found.append(replace(ref, snapshot_id=SnapshotId(snapshot_id)))
    return found


def _check_branch(
    storage: Storage, ledger: Ledger, head: TableHead, newest: PublicationRecord, ref: Ref
) -> Iterator[Finding]:
    known = ledger.snapshot(ref.snapshot_id) if ref.snapshot_id is not None else None
    if known is None:
        message = f"the branch {ref.name} shows a snapshot that the rows do not have"
        yield Finding(str(head.name), "DIFFERS", message, newest.path, ICEBERG)
        return
    path = newest.path
    found = read_iceberg(storage, head.location, metadata_path=path, snapshot_id=known.id)
    yield from _check_snapshot(storage, ledger, head, found, (known.version, known.line))


def broken_branches(storage: Storage, ledger: Ledger, head: TableHead) -> list[Ref]:
    """Branches that Iceberg shows otherwise than the rows, or not at all."""
    newest = ledger.publications(ICEBERG, "metadata", 1)
    if not newest:
        return []
    metadata = read_metadata(storage, head.location, newest[0].path)
    return [
        ref
        for ref in _shown_branches(ledger, metadata)
        if _is_broken(storage, ledger, head, newest[0], ref)
    ]


def _is_broken(
    storage: Storage, ledger: Ledger, head: TableHead, newest: PublicationRecord, ref: Ref
) -> bool:
    try:
        return any(_check_branch(storage, ledger, head, newest, ref))
    except LakebedError:
        return True


def _check_snapshot(
    storage: Storage,
    ledger: Ledger,
    head: TableHead,
    found: IcebergSnapshot,
    at: tuple[Version, Line],
) -> Iterator[Finding]:
    shown: Shown = {
        path: (each.file.size_bytes, each.file.record_count) for path, each in found.files.items()
    }
    vectors = read_iceberg_vectors(storage, head.location, found)
    yield from _compare(ledger, str(head.name), ICEBERG, at, shown=shown, vectors=vectors)


def _compare(
    ledger: Ledger,
    table: str,
    format_: str,
    place: tuple[Version, Line],
    *,
    shown: Shown,
    vectors: Mapping[str, Positions],
) -> Iterator[Finding]:
    version, line = place
    live = ledger.files_at(version, line)
    rows: Shown = {f.file.path: (f.file.size_bytes, f.file.record_count) for f in live}
    at = f"version {version}" if line == MAIN_LINE else f"version {version} of a branch"
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
