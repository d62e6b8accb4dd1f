"""Rows found by an engine, collected as positions per file."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.metadata import numbers_of
from lakebed.model.files import LiveFile
from lakebed.model.ids import FileId
from lakebed.model.vectors import Positions


class Found:
    """`files` are those of the plan that was read; a row is a place among them and a position."""

    def __init__(self, files: Sequence[LiveFile]) -> None:
        self._files = files
        self._positions: dict[FileId, Positions] = {}
        self.rows = 0

    def add(self, places: pa.Array, positions: pa.Array) -> None:
        alone = len(self._files) == 1
        for place in (0,) if alone else pc.unique(places).to_pylist():
            of_file = positions if alone else positions.filter(pc.equal(places, place))
            found = Positions(numbers_of(of_file))
            file_id = self._files[place].id
            before = self._positions.get(file_id)
            self._positions[file_id] = found if before is None else before | found
            self.rows += len(of_file)

    def by_file(self) -> Mapping[FileId, Positions]:
        return self._positions
