"""The index of files: finds the few that a predicate can match among very many.

It is made from the rows of files, which never change, so that it is never wrong: files that came
after it are looked at one by one, and which files are visible is asked for those that it finds.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from lakebed.core.crash import crash_point
from lakebed.core.index_build import entries_of
from lakebed.core.index_probe import ANYTHING, buckets_of, probe_of
from lakebed.core.index_search import find_ids
from lakebed.core.ledger import typing_and_specs
from lakebed.meta import files, index, tables
from lakebed.meta.index import Entry, Extent
from lakebed.meta.store import Store, Tx
from lakebed.model.expressions import Predicate
from lakebed.model.history import TableHead
from lakebed.model.ids import TableId
from lakebed.model.partitioning import PartitionSpec

_log = logging.getLogger("lakebed.index")
_WIDTH = 500  # a tail of more would take longer to look through than all zones of a million files
_TOGETHER = 4  # chunks that are made in one transaction


@dataclass(frozen=True, slots=True)
class Candidates:
    """All files that can match are among these ids or have the id `beyond` or a greater one."""

    ids: list[int]
    beyond: int


class FileIndex:
    """`width` files make a chunk."""

    def __init__(self, store: Store, *, width: int = _WIDTH) -> None:
        self._store = store
        self._width = width

    def find(
        self,
        tx: Tx,
        head: TableHead,
        predicate: Predicate,
        specs: Mapping[int, PartitionSpec],
    ) -> Candidates | None:
        """None when the index is of no use: it is not there, or too many files can match."""
        if head.next_file_id < self._width:
            return None  # not even asked for: most tables are small
        extent = index.get_extent(tx, head.id)
        if extent is None or extent.chunks == 0:
            return None
        probe = probe_of(predicate, buckets_of(list(specs.values())))
        if probe == ANYTHING:
            return None
        found: list[int] = []
        most = max(self._width, head.live_files // 2)
        for page in find_ids(tx, head.id, extent, probe):
            found += page
            if len(found) > most:
                return None
        return Candidates(found, extent.chunks * extent.width)

    def extend(self, table_id: TableId) -> bool:
        """Add some chunks, all of them or none; is there more to add?"""
        made = self._made(table_id)
        if made is None:
            return False
        before, after, entries = made
        # Lost with the machine's power it is made again.
        with self._store.write(durable=False) as tx:
            if tables.get_table(tx, table_id) is None:
                return False
            if index.lock_extent(tx, table_id, before.width) != before:
                return True  # somebody else was faster
            index.insert_chunks(tx, table_id, entries, after)
            crash_point("index_after_rows")
        crash_point("index_after_write")
        _log.debug("table %s: files are indexed up to %s", table_id, after * before.width)
        return True

    def build(self, table_id: TableId) -> int:
        """Bring it up to date at once; the number of files it holds then."""
        while self.extend(table_id):
            pass
        with self._store.read() as tx:
            extent = index.get_extent(tx, table_id)
        return 0 if extent is None else extent.width * extent.chunks

    def drop(self, table_id: TableId) -> None:
        with self._store.write() as tx:
            index.delete_index(tx, table_id)

    def _made(self, table_id: TableId) -> tuple[Extent, int, list[Entry]] | None:
        """The index as it is, the number of chunks after some more, and those; None: no more."""
        with self._store.read() as tx:
            head = tables.get_table(tx, table_id)
            if head is None:
                return None
            extent = index.get_extent(tx, table_id) or Extent(self._width, 0)
            width, first = extent.width, extent.chunks
            # Ids are given in the order of commits: none below a known one can come later.
            stop = min(head.next_file_id // width, first + _TOGETHER)
            if stop <= first:
                return None
            typing, specs = typing_and_specs(tx, table_id)
            by_id = {int(s.id): s for s in specs}
            entries: list[Entry] = []
            for chunk in range(first, stop):
                at = chunk * width
                some = files.all_in_run(tx, table_id, typing, first=at, stop=at + width)
                entries += entries_of(chunk, width, some, typing, by_id)
        return extent, stop, entries
