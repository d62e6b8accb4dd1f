"""Rows that live in another engine, which writes them itself: too many to pass through here."""

from abc import ABC, abstractmethod

import pyarrow as pa

from lakebed.api.parts import Parts
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile
from lakebed.model.history import TableHead, TableState


class EngineRows(ABC):
    """Taken wherever rows are: `append`, `overwrite`, and the first rows of a table."""

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """Known before any row is."""

    @abstractmethod
    def write(
        self, parts: Parts, head: TableHead, state: TableState, must_match: Predicate | None
    ) -> list[DataFile]:
        """Write every row, or raise; `must_match` is bound, and TRUE for every row."""
