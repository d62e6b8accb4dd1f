"""From rows that go to a change: vectors, rewritten files, removed files; new rows beside them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.read import read
from lakebed.engines.arrow.types import to_arrow
from lakebed.engines.arrow.write import LINEAGE
from lakebed.model.counts import RowCounts
from lakebed.model.expressions import Predicate
from lakebed.model.files import LiveFile
from lakebed.model.ids import FileId
from lakebed.model.schema import Schema
from lakebed.model.vectors import Positions
from lakebed.rowops.change import RowChange
from lakebed.rowops.target import Target


@dataclass(slots=True)
class Settlement:
    """What becomes of the files that lose rows; filled while the new rows are written."""

    removed: list[LiveFile] = field(default_factory=list)
    rewritten: list[LiveFile] = field(default_factory=list)
    vectored: dict[FileId, Positions] = field(default_factory=dict)
    copied_rows: int = 0


def settle(
    target: Target,
    going: Mapping[FileId, Positions],
    *,
    new_rows: Iterable[pa.RecordBatch] = (),
    whole: Iterable[LiveFile] = (),
    reads: Predicate,
    counts: "Tally",
) -> RowChange:
    """One change; `going` is looked at when all of `new_rows` have been taken.

    New rows and the remaining rows of rewritten files go into the same files.
    """
    settlement = Settlement(removed=list(whole))
    rows = _all_rows(target, going, new_rows, settlement)
    first = next(rows, None)
    written = target.write(chain((first,), rows)) if first is not None else []
    total = replace(
        counts.total(),
        copied_rows=settlement.copied_rows,
        rewritten_files=len(settlement.rewritten),
        vectored_files=len(settlement.vectored),
    )
    return RowChange(
        removed=(*settlement.removed, *settlement.rewritten),
        deleted=settlement.vectored,
        written=tuple(written),
        reads=reads,
        counts=total,
        has_row_ids=target.has_row_ids,
    )


@dataclass(slots=True)
class Tally:
    """Counts that are known when all rows have passed."""

    inserted_rows: int = 0
    updated_rows: int = 0
    deleted_rows: int = 0
    scanned_files: int = 0

    def total(self) -> RowCounts:
        return RowCounts(
            inserted_rows=self.inserted_rows,
            updated_rows=self.updated_rows,
            deleted_rows=self.deleted_rows,
            scanned_files=self.scanned_files,
        )


def _all_rows(
    target: Target,
    going: Mapping[FileId, Positions],
    new_rows: Iterable[pa.RecordBatch],
    settlement: Settlement,
) -> Iterator[pa.RecordBatch]:
    yield from new_rows
    sort_out(target, going, settlement)
    for batch in _remaining(target, going, settlement.rewritten):
        settlement.copied_rows += batch.num_rows
        yield batch


def sort_out(target: Target, going: Mapping[FileId, Positions], settlement: Settlement) -> None:
    """Which files go, which are written anew, and which get a vector."""
    for file_id, positions in going.items():
        live = target.known[file_id]
        left = live.rows - len(positions)
        if not left:
            settlement.removed.append(live)
        elif target.policy.rewrites(live, live.file.record_count - left):
            settlement.rewritten.append(live)
        else:
            settlement.vectored[file_id] = positions


def _remaining(
    target: Target, going: Mapping[FileId, Positions], files: list[LiveFile]
) -> Iterator[pa.RecordBatch]:
    if not files:
        return
    plan = target.plan(files, deleted={f.id: going[f.id] for f in files})
    for batch in read(plan, target.storage, metadata=target.lineage):
        yield _unnumbered(batch, target) if target.lineage else batch


def _unnumbered(batch: pa.RecordBatch, target: Target) -> pa.RecordBatch:
    """Rows that this commit itself brings have no sequence number yet: it is 0 until then."""
    numbers = batch.columns[-1]
    known = pc.if_else(pc.equal(numbers, 0), pa.scalar(None, pa.int64()), numbers)
    return pa.RecordBatch.from_arrays([*batch.columns[:-1], known], schema=written_schema(target))


def written_schema(target: Target) -> pa.Schema:
    """Of the batches that `Target.write` takes."""
    lineage = LINEAGE if target.lineage else ()
    return to_arrow(Schema(target.schema.id, (*target.schema.fields, *lineage)))
