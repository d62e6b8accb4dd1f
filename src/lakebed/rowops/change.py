"""What an operation came to: rows that go, files that go, files written in their place."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.model.counts import NO_ROWS, RowCounts
from lakebed.model.expressions import TRUE, Predicate
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.ids import FileId
from lakebed.model.vectors import Positions


@dataclass(frozen=True, slots=True)
class RowChange:
    removed: tuple[LiveFile, ...] = ()
    deleted: Mapping[FileId, Positions] = field(default_factory=dict)  # rows that newly go
    written: tuple[DataFile, ...] = ()
    reads: Predicate = TRUE  # bound: the rows that the decision rests on
    counts: RowCounts = NO_ROWS
    has_row_ids: bool = False  # the files written carry the ids of rows that were there before

    @property
    def is_empty(self) -> bool:
        return not self.removed and not self.deleted and not self.written
