"""A lake's table of very many files that are not there, made by the commit loop itself.

All rows are those that so many appends, removals and deletes leave behind; what is missing is what
they publish, and the Parquet files.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks.measures.plan_files import ROWS, Shape

if TYPE_CHECKING:
    from lakebed.api.lake import Lake
    from lakebed.api.table import Table
    from lakebed.core.commit import Committer
    from lakebed.model.changes import Change
    from lakebed.model.files import DataFile
    from lakebed.model.history import TableHead
    from lakebed.model.types import Stored

TABLE = "bench.t"
_SWEEP = 20_000  # files between two commits that remove some, and delete rows of others


def make_table(lake: "Lake", shape: Shape, *, together: int) -> "Table":
    """A table whose commits add `together` files each; its index is brought up to date."""
    from lakebed.core.index import FileIndex
    from lakebed.core.upkeep import Upkeep
    from lakebed.meta import outbox

    table = lake.create_table(
        TABLE, "a long, b long, c string, d timestamp", partition_by=["day(d)"], formats="delta"
    )
    table.append(outside())
    parts = lake._parts  # noqa: SLF001 - no door takes files that are not there
    store = parts.planner._store  # noqa: SLF001 - as above
    _Filler(parts.committer, parts.catalog.get(table.id, table.name), shape).fill(together)
    with store.write() as tx:
        outbox.forget_format(tx, table.id, "delta")  # as if all of it were published
    upkeep = Upkeep(FileIndex(store), parts.extremes)
    while upkeep.run(table.id):
        pass
    return table


def outside() -> list[dict[str, object]]:
    """A row that no condition meets."""
    return [{"a": -5, "b": -5, "c": uuid.uuid4().hex, "d": datetime(2300, 1, 1, tzinfo=UTC)}]


class _Filler:
    def __init__(self, committer: "Committer", head: "TableHead", shape: Shape) -> None:
        self._committer = committer
        self._head = head
        self._first = head.next_file_id
        self._shape = shape

    def fill(self, together: int) -> None:
        from lakebed.model.changes import AppendFiles
        from lakebed.model.ids import SchemaId

        for start in range(0, self._shape.files, _SWEEP):
            stop = min(start + _SWEEP, self._shape.files)
            for at in range(start, stop, together):
                added = [self._file(n) for n in range(at, min(at + together, stop))]
                self._commit("append", AppendFiles(tuple(added), SchemaId(0)))
            self._sweep(range(start, stop))

    def _sweep(self, numbers: Sequence[int]) -> None:
        from lakebed.model.changes import DeleteRows, RemoveFiles
        from lakebed.model.ids import FileId
        from lakebed.model.vectors import Positions

        gone = tuple(FileId(self._first + n) for n in numbers if not self._shape.is_live(n))
        losing = {FileId(self._first + n): Positions([3]) for n in numbers if self._shape.loses(n)}
        if gone:
            self._commit("delete", RemoveFiles(gone, None))
        if losing:
            self._commit("delete", DeleteRows(losing, None))

    def _commit(self, operation: str, change: "Change") -> None:
        from lakebed.core.commit import Committed
        from lakebed.model.changes import Proposal, TableChanges

        head = self._head
        ours = TableChanges(head.id, head.version, operation, (change,))
        made = self._committer.commit(
            Proposal(uuid.uuid4().hex, "bench", None, "write_serializable", (ours,))
        )
        assert isinstance(made, Committed), made
        self._head = made.commits[0][0]

    def _file(self, n: int) -> "DataFile":
        from lakebed.model.files import ColumnStats, DataFile
        from lakebed.model.ids import FieldId, SpecId

        known = self._shape.known(n)
        bounds: Sequence[tuple[Stored, Stored]] = (known.a, known.b, known.c, known.d)
        stats = {
            FieldId(number): ColumnStats(ROWS, 0, None, 800, low, high)
            for number, (low, high) in enumerate(bounds, 1)
        }
        return DataFile(known.path, 10_000, ROWS, SpecId(0), (known.day,), stats)
