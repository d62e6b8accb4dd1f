"""Pure: what a commit adds and takes away, counted, and the summaries that tell it."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakebed.model.counts import COUNT_NAMES
from lakebed.model.files import LiveFile
from lakebed.model.history import TableHead


@dataclass(frozen=True, slots=True)
class Tally:
    """Rows are those a reader sees; records are those in the files, deleted or not."""

    added_files: int
    added_rows: int
    added_records: int
    added_bytes: int
    added_vectors: int
    added_deletes: int
    removed_files: int
    removed_rows: int
    removed_records: int
    removed_bytes: int
    removed_vectors: int
    removed_deletes: int


# Entries of a commit's summary that are counted here; a user's value would contradict them.
SUMMARY_NAMES = frozenset(
    {"operation", "duration_ms", "restored_version", "branch_version"}
    | {f"{verb}_{what}" for verb in ("added", "removed") for what in ("files", "rows", "bytes")}
    | {f"{verb}-data-files" for verb in ("added", "deleted", "total")}
    | {f"{verb}-records" for verb in ("added", "deleted", "total")}
    | {f"{verb}-files-size" for verb in ("added", "removed", "total")}
    | {
        f"{verb}-{what}"
        for verb in ("added", "removed", "total")
        for what in ("delete-files", "position-deletes", "equality-deletes", "dvs")
    }
    | set(COUNT_NAMES)
)


def tally(opened: Sequence[LiveFile], closed: Sequence[LiveFile]) -> Tally:
    """A file that only gets another vector is neither added nor removed; its rows are."""
    before, after = {f.id: f for f in closed}, {f.id: f for f in opened}
    added = [f for f in opened if f.id not in before]
    removed = [f for f in closed if f.id not in after]
    moved = [after[i].rows - f.rows for i, f in before.items() if i in after]
    new = [f.vector for f in opened if f.vector]
    old = [f.vector for f in closed if f.vector]
    return Tally(
        added_files=len(added),
        added_rows=sum(f.rows for f in added) + sum(n for n in moved if n > 0),
        added_records=sum(f.file.record_count for f in added),
        added_bytes=sum(f.file.size_bytes for f in added),
        added_vectors=len(new),
        added_deletes=sum(v.cardinality for v in new),
        removed_files=len(removed),
        removed_rows=sum(f.rows for f in removed) - sum(n for n in moved if n < 0),
        removed_records=sum(f.file.record_count for f in removed),
        removed_bytes=sum(f.file.size_bytes for f in removed),
        removed_vectors=len(old),
        removed_deletes=sum(v.cardinality for v in old),
    )


def commit_summary(sums: Tally) -> dict[str, int]:
    return {
        "added_files": sums.added_files,
        "added_rows": sums.added_rows,
        "added_bytes": sums.added_bytes,
        "removed_files": sums.removed_files,
        "removed_rows": sums.removed_rows,
        "removed_bytes": sums.removed_bytes,
    }


def iceberg_summary(head: TableHead, sums: Tally) -> dict[str, str]:
    """In Iceberg's words; `head` is the table before."""
    summary: dict[str, int] = {}
    if sums.added_files:
        summary["added-data-files"] = sums.added_files
        summary["added-records"] = sums.added_records
    if sums.removed_files:
        summary["deleted-data-files"] = sums.removed_files
        summary["deleted-records"] = sums.removed_records
    if sums.added_vectors:
        summary["added-delete-files"] = summary["added-dvs"] = sums.added_vectors
        summary["added-position-deletes"] = sums.added_deletes
    if sums.removed_vectors:
        summary["removed-delete-files"] = summary["removed-dvs"] = sums.removed_vectors
        summary["removed-position-deletes"] = sums.removed_deletes
    if sums.added_bytes:
        summary["added-files-size"] = sums.added_bytes
    if sums.removed_bytes:
        summary["removed-files-size"] = sums.removed_bytes
    records = head.live_rows + head.live_deletes + sums.added_records - sums.removed_records
    summary["total-data-files"] = head.live_files + sums.added_files - sums.removed_files
    summary["total-records"] = records
    summary["total-files-size"] = head.live_bytes + sums.added_bytes - sums.removed_bytes
    vectors = head.live_vectors + sums.added_vectors - sums.removed_vectors
    summary["total-delete-files"] = vectors
    deletes = head.live_deletes + sums.added_deletes - sums.removed_deletes
    summary["total-position-deletes"] = deletes
    summary["total-equality-deletes"] = 0
    return {name: str(value) for name, value in summary.items()}
