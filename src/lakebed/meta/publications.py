"""SQL for what was published: files of both formats, and Iceberg's manifests."""

from collections.abc import Sequence

import orjson

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.history import VECTORS, ManifestRecord, PublicationRecord
from lakebed.model.ids import MAIN_LINE, Line, SnapshotId, TableId, Version

_PUBLICATION = (
    "SELECT format, kind, number, version, path, size_bytes, digest, line FROM publications"
)
_INSERT = (
    "INSERT INTO publications (table_id, format, kind, number, version, path, size_bytes, digest,"
    " line, written_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# A file of deletion vectors is published again when the whole table is, with a later version.
_AGAIN = (
    " ON CONFLICT (table_id, format, kind, number) DO UPDATE SET version = EXCLUDED.version,"
    " size_bytes = EXCLUDED.size_bytes, digest = EXCLUDED.digest"
)
_AT_ONCE = 100
_NUMBERED = (
    _PUBLICATION
    + " WHERE table_id = ? AND format = ? AND kind = ? AND number IN ("
    + ", ".join("?" * _AT_ONCE)
    + ")"
)
_MANIFEST = (
    "SELECT manifest_id, path, size_bytes, digest, spec_id, sequence_number, min_sequence_number,"
    " snapshot_id, counts, partitions, first_row_id, first_file_id, last_file_id, content"
    " FROM manifests"
)


def insert_publication(tx: Tx, table_id: TableId, record: PublicationRecord, now_ms: int) -> None:
    tx.run(
        _INSERT + _AGAIN if record.kind == VECTORS else _INSERT,
        (
            table_id,
            record.format,
            record.kind,
            record.number,
            record.version,
            record.path,
            record.size_bytes,
            record.digest,
            record.line,
            now_ms,
        ),
    )


def newest_publications(
    tx: Tx, table_id: TableId, format_: str, kind: str, limit: int
) -> list[PublicationRecord]:
    """Newest first."""
    rows = tx.all(
        _PUBLICATION
        + " WHERE table_id = ? AND format = ? AND kind = ? ORDER BY number DESC LIMIT ?",
        (table_id, format_, kind, limit),
    )
    return [_publication(r) for r in rows]


def newest_of_line(
    tx: Tx, table_id: TableId, format_: str, kind: str, line: Line, *, up_to: Version
) -> PublicationRecord | None:
    """The newest of a line's versions up to one."""
    row = tx.one(
        _PUBLICATION + " WHERE table_id = ? AND format = ? AND kind = ? AND line = ?"
        " AND version <= ? ORDER BY version DESC, number DESC LIMIT 1",
        (table_id, format_, kind, line, up_to),
    )
    return _publication(row) if row else None


def get_numbered(
    tx: Tx, table_id: TableId, format_: str, kind: str, numbers: Sequence[int]
) -> dict[int, PublicationRecord]:
    """Those of some numbers that there are."""
    found: dict[int, PublicationRecord] = {}
    for start in range(0, len(numbers), _AT_ONCE):
        some = numbers[start : start + _AT_ONCE]
        # One statement for any number of them: the last one fills the marks that are left.
        marks = [*some, *[some[-1]] * (_AT_ONCE - len(some))]
        for row in tx.all(_NUMBERED, (table_id, format_, kind, *marks)):
            found[row[2]] = _publication(row)
    return found


def list_publications(tx: Tx, table_id: TableId) -> list[PublicationRecord]:
    rows = tx.all(_PUBLICATION + " WHERE table_id = ? ORDER BY format, kind, number", (table_id,))
    return [_publication(r) for r in rows]


def publication_times(
    tx: Tx, table_id: TableId
) -> dict[tuple[str, str, int], tuple[int, int | None]]:
    """By format, kind and number: when it was written, and when its version was committed."""
    rows = tx.all(
        "SELECT p.format, p.kind, p.number, p.written_ms, c.time_ms FROM publications p"
        " LEFT JOIN commits c ON c.table_id = p.table_id AND c.line = p.line"
        " AND c.version = p.version WHERE p.table_id = ?",
        (table_id,),
    )
    return {(row[0], row[1], row[2]): (row[3], row[4]) for row in rows}


def insert_manifests(
    tx: Tx,
    table_id: TableId,
    manifests: Sequence[ManifestRecord],
    number: int,
    line: Line = MAIN_LINE,
) -> None:
    tx.run_many(
        "INSERT INTO manifests (table_id, added_number, line, manifest_id, path, size_bytes,"
        " digest, spec_id, sequence_number, min_sequence_number, snapshot_id, counts, partitions,"
        " first_row_id, first_file_id, last_file_id, content)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                table_id,
                number,
                line,
                m.id,
                m.path,
                m.size_bytes,
                m.digest,
                m.spec_id,
                m.sequence_number,
                m.min_sequence_number,
                m.snapshot_id,
                orjson.dumps(m.counts).decode(),
                orjson.dumps(m.partitions).decode(),
                m.first_row_id,
                m.first_id,
                m.last_id,
                m.content,
            )
            for m in manifests
        ],
    )


def retire_manifests(tx: Tx, table_id: TableId, ids: Sequence[int], number: int) -> None:
    tx.run_many(
        "UPDATE manifests SET removed_number = ? WHERE table_id = ? AND manifest_id = ?",
        [(number, table_id, manifest_id) for manifest_id in ids],
    )


def live_manifests(tx: Tx, table_id: TableId, line: Line = MAIN_LINE) -> list[ManifestRecord]:
    rows = tx.all(
        # In the order of the index, or SQLite would look at every manifest there ever was.
        _MANIFEST + " WHERE table_id = ? AND line = ? AND removed_number IS NULL"
        " ORDER BY first_file_id",
        (table_id, line),
    )
    return sorted(map(_manifest, rows), key=lambda m: m.content)


def manifests_at(tx: Tx, table_id: TableId, line: Line, number: int) -> list[ManifestRecord]:
    """Those of a line as a publication left them."""
    rows = tx.all(
        _MANIFEST + " WHERE table_id = ? AND line = ? AND added_number <= ?"
        " AND (removed_number IS NULL OR removed_number > ?) ORDER BY content, first_file_id",
        (table_id, line, number, number),
    )
    return [_manifest(r) for r in rows]


def manifest_paths(tx: Tx, table_id: TableId) -> set[str]:
    """Every manifest and manifest list ever recorded."""
    paths = tx.all("SELECT path FROM manifests WHERE table_id = ?", (table_id,))
    lists = tx.all(
        "SELECT manifest_list FROM snapshots WHERE table_id = ? AND manifest_list IS NOT NULL",
        (table_id,),
    )
    return {p for (p,) in paths} | {p for (p,) in lists}


def _publication(row: Row) -> PublicationRecord:
    return PublicationRecord(
        row[0], row[1], row[2], Version(row[3]), row[4], row[5], row[6], Line(row[7])
    )


def _manifest(row: Row) -> ManifestRecord:
    counts = orjson.loads(row[8])
    return ManifestRecord(
        row[0],
        row[1],
        row[2],
        row[3],
        row[4],
        row[5],
        row[6],
        SnapshotId(row[7]),
        (counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]),
        tuple(tuple(p) for p in orjson.loads(row[9])),
        row[10],
        row[11],
        row[12],
        row[13],
    )
