"""The table an operation works on, as it sees it: a version, or a transaction's own view of one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.core.prune import might_match
from lakebed.engines.arrow.write import LINEAGE
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.history import TableState
from lakebed.model.ids import FileId, Version
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.vectors import Positions
from lakebed.rowops.policy import Policy
from lakebed.storage.base import Storage

LINEAGE_NAMES = tuple(field.name for field in LINEAGE)


@dataclass(frozen=True, slots=True)
class Target:
    name: str  # as expressions call it
    root: str
    version: Version
    state: TableState
    # At least the files in which the bound predicate can hold; all of them when it is None.
    visible: Callable[[Predicate | None], list[LiveFile]]
    specs: Callable[[], Mapping[int, PartitionSpec]]  # every one of the table, asked for last
    storage: Storage
    policy: Policy
    positions: Callable[[Sequence[LiveFile]], Mapping[FileId, Positions]]  # the rows that are gone
    write: Callable[[Iterable[pa.RecordBatch]], list[DataFile]]  # conformed, with lineage if any
    has_row_ids: bool  # rows have ids, or get them by this very change
    known: dict[FileId, LiveFile] = field(default_factory=dict)  # files that were asked for

    @property
    def schema(self) -> Schema:
        return self.state.schema

    @property
    def lineage(self) -> tuple[str, ...]:
        """Columns about rows that outlive a rewrite."""
        return LINEAGE_NAMES if self.has_row_ids else ()

    def kept(self, predicate: Predicate | None) -> list[LiveFile]:
        """The files in which a row can match the bound predicate."""
        files = self.candidates(predicate)
        return files if predicate is None else [f for f in files if self.may_hold(predicate, f)]

    def candidates(self, predicate: Predicate | None) -> list[LiveFile]:
        """These and maybe more, told without a look at each."""
        found = self.visible(predicate)
        self.known.update((f.id, f) for f in found)
        return found

    def may_hold(self, predicate: Predicate, live: LiveFile) -> bool:
        return might_match(predicate, live.file, self.spec_of(live), self.schema)

    def spec_of(self, live: LiveFile) -> PartitionSpec | None:
        return self.specs().get(live.file.spec_id)

    def plan(
        self,
        files: Sequence[LiveFile],
        *,
        columns: tuple[str, ...] | None = None,
        predicate: Predicate | None = None,
        deleted: Mapping[FileId, Positions] | None = None,
    ) -> Plan:
        """A plan over some of the files; `deleted` are rows to leave out beside those gone."""
        gone = dict(self.positions(files))
        for file_id, more in (deleted or {}).items():
            gone[file_id] = gone[file_id] | more if file_id in gone else more
        return Plan(
            root=self.root,
            version=self.version,
            schema=self.schema,
            columns=tuple(f.name for f in self.schema.fields) if columns is None else columns,
            predicate=predicate,
            files=tuple(files),
            pruned=len(self.known) - len(files),
            deleted=gone,
        )
