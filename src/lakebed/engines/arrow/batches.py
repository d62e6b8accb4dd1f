"""A stream of batches with a known schema: what every kind of input becomes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Batches:
    """Read once. Batches may differ from `schema` where it was only guessed from the first ones."""

    schema: pa.Schema
    _batches: Iterable[pa.RecordBatch]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self._batches)
