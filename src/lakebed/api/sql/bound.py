"""What a statement reads, found and ready for the engine."""

from dataclasses import dataclass

import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.model.ids import TableId
from lakebed.sql.query import Reference
from lakebed.sql.where import Doubt


@dataclass(frozen=True, slots=True)
class Bound:
    """One relation for the engine: the rows of a plan, rows in memory, or a query over others."""

    reference: Reference  # with its full name
    rows: Plan | pa.Table | str
    table_id: TableId | None = None  # whose version must be kept while it is read
    doubts: tuple[Doubt, ...] = ()

    @property
    def name(self) -> str:
        return str(self.reference.name)
