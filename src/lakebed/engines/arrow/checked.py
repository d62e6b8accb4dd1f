"""Rows of an overwrite with a condition: each must match it."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.evaluate import matches
from lakebed.model.errors import SchemaMismatch
from lakebed.model.expressions import Predicate


def checked(batches: Iterable[pa.RecordBatch], predicate: Predicate) -> Iterator[pa.RecordBatch]:
    """The batches, of which every row matches, or an error."""
    row = 0
    for batch in batches:
        good = pc.fill_null(matches(predicate, batch), False)
        if pc.sum(good).as_py() not in (None, batch.num_rows):
            bad = row + pc.index(good, False).as_py()
            raise SchemaMismatch(
                f"row {bad + 1} does not match the condition of this overwrite",
                hint="an overwrite with `where` may only write rows that match it",
                row=bad,
            )
        row += batch.num_rows
        yield batch
