"""Deleting the rows a condition is TRUE for; where it is FALSE or NULL they stay."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from lakebed.core.prune import must_match
from lakebed.engines.arrow.arithmetic import DoesNotFit, sift
from lakebed.engines.arrow.read import read
from lakebed.model.counts import RowCounts
from lakebed.model.expressions import TRUE, Predicate
from lakebed.model.files import DataFile, LiveFile, staged
from lakebed.model.quoting import quoted
from lakebed.model.sieve import Sieve
from lakebed.rowops.change import RowChange
from lakebed.rowops.condition import Condition
from lakebed.rowops.found import Found
from lakebed.rowops.settle import Tally, settle
from lakebed.rowops.target import Target
from lakebed.rowops.workbench import Workbench

PLACE = ("_file", "_pos")
_FEW_ROWS = 4_000_000  # of more, the engine's threads find them sooner


def truncate(target: Target) -> RowChange:
    """Every file goes, unread."""
    live = target.kept(None)
    rows = sum(f.rows for f in live)
    return RowChange(tuple(live), reads=TRUE, counts=RowCounts(deleted_rows=rows))


def count_unmatched(
    target: Target, written: Sequence[DataFile], condition: Condition, bench: Workbench
) -> int:
    """Rows of files that are in no version yet, for which the condition is not TRUE."""
    files = staged(written, target.version)
    where = bench.expression(condition.text, "the condition")
    relation = bench.bind(replace(target.plan(()), files=tuple(files)), ())
    named = f"{relation} AS {quoted(target.name)}"
    bench.refuse_no_condition([where], named)
    found = bench.row(f"SELECT count(*) AS rows FROM {named} WHERE {where.sql} IS NOT TRUE")
    assert found is not None
    return int(found["rows"])


def delete(target: Target, condition: Condition, bench: Workbench) -> RowChange:
    """A file all of whose rows must match goes unread; one in which none can is not opened."""
    bound = condition.bound(target.schema)
    kept = target.kept(bound)
    whole = {f.id: f for f in kept if condition.is_exact and is_whole(target, bound, f)}
    partly = [f for f in kept if f.id not in whole]
    found = _found(target, condition, bound, partly, bench)
    gone = found.rows + sum(f.rows for f in whole.values())
    return settle(
        target,
        found.by_file(),
        whole=whole.values(),
        reads=TRUE if bound is None else bound,
        counts=Tally(deleted_rows=gone, scanned_files=len(partly)),
    )


def is_whole(target: Target, bound: Predicate | None, live: LiveFile) -> bool:
    """Must every row of the file match?"""
    return bound is None or must_match(bound, live.file, target.spec_of(live), target.schema)


def _found(
    target: Target,
    condition: Condition,
    bound: Predicate | None,
    files: list[LiveFile],
    bench: Workbench,
) -> Found:
    sieve = condition.sieve.bound(target.schema) if condition.sieve is not None else None
    if sieve is not None and sum(f.file.record_count for f in files) <= _FEW_ROWS:
        try:
            return _collected(files, _sifted(target, sieve, files))
        except DoesNotFit:
            pass  # the engine refuses such numbers, or knows better
    return _collected(files, _rows(target, condition, bound, files, bench))


def _collected(files: list[LiveFile], batches: Iterable[pa.RecordBatch]) -> Found:
    found = Found(files)
    for batch in batches:
        found.add(batch.column("_file"), batch.column("_pos"))
    return found


def _sifted(target: Target, sieve: Sieve, files: list[LiveFile]) -> Iterator[pa.RecordBatch]:
    """Without the engine: to load it takes longer than to look at a few rows."""
    if not files:
        return
    plan = target.plan(files, columns=sieve.columns, predicate=sieve.predicate)
    for batch in read(plan, target.storage, metadata=PLACE):
        kept = sift(sieve, batch)
        if kept.num_rows:
            yield kept


def _rows(
    target: Target,
    condition: Condition,
    bound: Predicate | None,
    files: list[LiveFile],
    bench: Workbench,
) -> Iterable[pa.RecordBatch]:
    if condition.is_exact:
        if not files:
            return ()
        plan = target.plan(files, columns=(), predicate=bound)
        return read(plan, target.storage, metadata=PLACE)
    relation = bench.bind(target.plan(files, predicate=bound), PLACE)
    where = bench.expression(condition.text, "the condition")
    named = f"{relation} AS {quoted(target.name)}"
    bench.refuse_no_condition([where], named)
    if not files:
        bench.try_on_nulls(where, named)
        return ()
    return bench.batches(f"SELECT _file, _pos FROM {named} WHERE {where.sql}")
