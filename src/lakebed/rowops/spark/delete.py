"""Deleting rows on Spark: only their positions come back from it."""

from lakebed.model.expressions import TRUE
from lakebed.rowops.change import RowChange
from lakebed.rowops.condition import Condition
from lakebed.rowops.delete import PLACE, is_whole
from lakebed.rowops.settle import Tally
from lakebed.rowops.spark.settle import SparkTarget, by_file, settle


def delete(target: SparkTarget, condition: Condition) -> RowChange:
    """A file all of whose rows must match goes unread; one in which none can is not opened."""
    table, bench = target.table, target.bench
    bound = condition.bound(table.schema)
    kept = table.kept(bound)
    whole = [f for f in kept if condition.is_exact and is_whole(table, bound, f)]
    partly = [f for f in kept if f not in whole]
    rows = bench.read(table.plan(partly, predicate=bound), PLACE)
    if not condition.is_exact:
        rows = bench.where(rows, table.name, condition.text)
    going = by_file(partly, bench.hits(rows)) if partly else {}
    gone = sum(map(len, going.values())) + sum(f.rows for f in whole)
    return settle(
        target,
        going,
        whole=whole,
        reads=TRUE if bound is None else bound,
        counts=Tally(deleted_rows=gone, scanned_files=len(partly)),
    )
