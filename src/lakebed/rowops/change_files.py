"""What a version did to rows, as Parquet files for Delta's readers of changes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.core.ledger import Ledger, VersionView
from lakebed.engines.arrow.write import WriteOptions, write_changes
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.history import TableState
from lakebed.model.ids import FileId
from lakebed.model.partitioning import UNPARTITIONED
from lakebed.model.vectors import Positions
from lakebed.rowops.feed import Feed
from lakebed.rowops.pairing import AFTER, BEFORE, DELETE, INSERT
from lakebed.rowops.steps import open_to_all, step_of
from lakebed.rowops.workbench import Workbench
from lakebed.storage.base import Storage

_OPS = pa.array([INSERT, DELETE, BEFORE, AFTER])
_DELTAS = pa.array(["insert", "delete", "update_preimage", "update_postimage"])


class ChangeFiles:
    """The same rows that `changes` gives; they are streamed."""

    def __init__(
        self,
        storage: Storage,
        open_bench: Callable[[], Workbench],
        options: Callable[[TableState], WriteOptions],
    ) -> None:
        self._storage = storage
        self._open_bench = open_bench
        self._options = options

    def write(self, ledger: Ledger, view: VersionView, folder: str) -> list[DataFile]:
        state = view.state
        schema = open_to_all(state.schema)
        step = step_of(view, schema, lambda files: _positions(ledger, files))
        columns = tuple(f.name for f in schema.fields)
        with self._open_bench() as bench:
            feed = Feed(schema, columns, None, self._storage, bench)
            return write_changes(
                _marked(feed.batches(step), len(columns)),
                storage=self._storage,
                root=view.head.location,
                schema=schema,
                spec=state.spec if state.delta_partitioned else UNPARTITIONED,
                options=self._options(state),
                folder=folder,
            )


def _positions(ledger: Ledger, files: Sequence[LiveFile]) -> Mapping[FileId, Positions]:
    vectors = {f.id: f.vector.id for f in files if f.vector is not None}
    bitmaps = ledger.bitmaps(sorted(set(vectors.values()))) if vectors else {}
    return {file_id: Positions.from_bytes(bitmaps[v]) for file_id, v in vectors.items()}


def _marked(batches: Iterable[pa.RecordBatch], columns: int) -> Iterator[pa.RecordBatch]:
    """The table's columns and what happened, in Delta's words."""
    for batch in batches:
        marks = _DELTAS.take(pc.index_in(batch.column(columns), _OPS))
        kept = [*batch.columns[:columns], marks]
        schema = pa.schema([*list(batch.schema)[:columns], pa.field("_change_type", pa.string())])
        yield pa.RecordBatch.from_arrays(kept, schema=schema)
