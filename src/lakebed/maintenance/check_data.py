"""Rows against data files: each exists, has its size and holds its rows."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from lakebed.core.ledger import Ledger
from lakebed.engines.arrow.footer import count_rows
from lakebed.maintenance.findings import Finding
from lakebed.model.errors import LakebedError
from lakebed.model.files import LiveFile
from lakebed.model.history import TableHead
from lakebed.model.ids import MAIN_LINE, Version
from lakebed.storage.base import Storage


def check_rows(ledger: Ledger, head: TableHead, live: list[LiveFile]) -> Iterator[Finding]:
    """The rows among themselves: versions without gaps, times that grow, counters that agree."""
    table = str(head.name)
    commits = list(reversed(ledger.commits_until(head.version, MAIN_LINE, head.version + 2)))
    if [c.version for c in commits] != list(range(head.version + 1)):
        yield Finding(table, "ROWS", f"versions 0 to {head.version} are not all there")
    if any(b.time_ms <= a.time_ms for a, b in pairwise(commits)):
        yield Finding(table, "ROWS", "commit times do not grow")
    rows = sum(f.rows for f in live)
    size = sum(f.file.size_bytes for f in live)
    counted, kept = (len(live), rows, size), (head.live_files, head.live_rows, head.live_bytes)
    if counted != kept:
        yield Finding(table, "ROWS", f"counters say {kept}, the files are {counted}")


def check_data(
    storage: Storage, ledger: Ledger, head: TableHead, stored: Mapping[str, int]
) -> Iterator[Finding]:
    """`stored` maps each path below the table's root to its size."""
    table = str(head.name)
    live = ledger.files_at(head.version)
    yield from check_rows(ledger, head, live)
    old = ledger.removed_between(after=Version(-1), up_to=head.version)
    for each in [*live, *old]:
        path, size = each.file.path, each.file.size_bytes
        if path not in stored:
            yield Finding(table, "DATA_FILE_MISSING", "a data file is gone", path)
        elif stored[path] != size:
            message = f"a data file has {stored[path]} bytes, not {size}"
            yield Finding(table, "DATA_FILE_DIFFERS", message, path)
        elif each.removed_version is None:
            yield from _check_count(storage, head, each)


def _check_count(storage: Storage, head: TableHead, each: LiveFile) -> Iterator[Finding]:
    table, path = str(head.name), each.file.path
    try:
        rows = count_rows(storage, f"{head.location}/{path}")
    except LakebedError as error:
        yield Finding(table, "DATA_FILE_DIFFERS", error.message, path)
        return
    if rows != each.file.record_count:
        message = f"a data file holds {rows} rows, not {each.file.record_count}"
        yield Finding(table, "DATA_FILE_DIFFERS", message, path)
