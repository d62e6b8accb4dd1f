"""When what is made from a table's rows is brought up to date: the index and kept extremes."""

from lakebed.core.extremes import OFTEN, Extremes
from lakebed.core.index import FileIndex
from lakebed.model.history import CommitRecord, TableHead
from lakebed.model.ids import TableId


def is_due(head: TableHead, commit: CommitRecord) -> bool:
    """Told from a commit alone, as every process does: after so many files, or versions."""
    first = head.next_file_id - int(commit.summary.get("added_files", 0))
    often = commit.version % OFTEN == OFTEN - 1
    return often or first // OFTEN != head.next_file_id // OFTEN


class Upkeep:
    """Never needed for an answer: what it leaves undone costs time."""

    def __init__(self, index: FileIndex, extremes: Extremes) -> None:
        self._index = index
        self._extremes = extremes

    def run(self, table_id: TableId) -> bool:
        """Is there more to do?"""
        self._extremes.keep_up(table_id)
        return self._index.extend(table_id)
