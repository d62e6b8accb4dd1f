"""From rows that go to a change, the new rows written by Spark."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.ids import FileId
from lakebed.model.vectors import Positions
from lakebed.rowops.change import RowChange
from lakebed.rowops.settle import Settlement, Tally, sort_out
from lakebed.rowops.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakebed.engines.spark.bench import Bench
    from lakebed.engines.spark.positions import Hits

_NONE = Positions()


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """A table to change; `write` takes rows with their lineage, if the table has any."""

    table: Target
    bench: "Bench"
    write: "Callable[[DataFrame], list[DataFile]]"


def by_file(files: Sequence[LiveFile], hits: "Iterable[Hits]") -> dict[FileId, Positions]:
    found: dict[FileId, Positions] = {}
    for each in hits:
        file_id = files[each.file].id
        found[file_id] = found.get(file_id, _NONE) | each.positions
    return found


def settle(
    target: SparkTarget,
    going: Mapping[FileId, Positions],
    *,
    new_rows: "Sequence[DataFrame]" = (),
    whole: Iterable[LiveFile] = (),
    reads: Predicate,
    counts: Tally,
    inserts: bool = False,
) -> RowChange:
    """One change; with `inserts` the new rows that are not updated ones count as inserted."""
    table, bench = target.table, target.bench
    settlement = Settlement(removed=list(whole))
    sort_out(table, going, settlement)
    rewritten, frames = settlement.rewritten, list(new_rows)
    if rewritten:
        plan = table.plan(rewritten, deleted={f.id: going[f.id] for f in rewritten})
        frames.append(bench.copied(plan, table.lineage))
    written: list[DataFile] = []
    if frames:
        written = target.write(bench.together(frames, table.schema, table.lineage))
    copied = sum(f.rows - len(going[f.id]) for f in rewritten)
    if inserts:
        counts.inserted_rows = sum(f.record_count for f in written) - copied - counts.updated_rows
    return RowChange(
        removed=(*settlement.removed, *rewritten),
        deleted=settlement.vectored,
        written=tuple(written),
        reads=reads,
        counts=replace(
            counts.total(),
            copied_rows=copied,
            rewritten_files=len(rewritten),
            vectored_files=len(settlement.vectored),
        ),
        has_row_ids=table.has_row_ids,
    )
