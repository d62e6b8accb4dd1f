"""History by key: each row says from when until when it was true.

New rows join what is known of their keys, in whatever order they come, and the chain of each key is
made again. A row that says what the one before it says is no change, and is not kept.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakebed.model.errors import StepFailed
from lakebed.pipelines.columns import col
from lakebed.pipelines.net import DELETE
from lakebed.pipelines.step import IS_CURRENT, VALID_FROM, VALID_TO

ADDED = (VALID_FROM, VALID_TO, IS_CURRENT)
OPERATION = "__lakebed_op"
_GONE, _NEW, _PREVIOUS, _CONTENT = (
    "__lakebed_gone",
    "__lakebed_new",
    "__lakebed_previous",
    "__lakebed_content",
)


@dataclass(frozen=True, slots=True)
class History:
    """`moment` is when a row became true: a column of the result, or the time of the run."""

    key: tuple[str, ...]
    columns: tuple[str, ...]  # of the result, without `op`
    moment: Column
    op: str | None = None
    order: str | None = None  # the column that `moment` comes from: it alone makes no change

    def events(self, rows: DataFrame) -> DataFrame:
        """The result as events: what is true from when on, or that nothing is."""
        gone = F.lit(False) if self.op is None else col(self.op) == DELETE
        listed = [col(name) for name in self.columns]
        return rows.select(
            *listed,
            self.moment.cast(st.TimestampType()).alias(VALID_FROM),
            F.coalesce(gone, F.lit(False)).alias(_GONE),
            F.lit(True).alias(_NEW),
        ).distinct()

    def chains(self, events: DataFrame, known: DataFrame | None) -> DataFrame:
        """The history of every key that has an event, whole; columns of the table."""
        every = events
        if known is not None:
            keys = events.select(*map(col, self.key)).distinct()
            theirs = known.join(keys, list(self.key), "left_semi")
            every = self._as_events(theirs).unionByName(events)
        return self._chained(every)

    def changes(self, chains: DataFrame, known: DataFrame | None) -> DataFrame:
        """Rows to write, with `update` or `delete` in OPERATION; those that stay are left out."""
        names = [*self.columns, *ADDED]
        if known is None:
            return chains.select(*map(col, names)).withColumn(OPERATION, F.lit("update"))
        keys = chains.select(*map(col, self.key)).distinct()
        theirs = known.join(keys, list(self.key), "left_semi").select(*map(col, names))
        place = [*self.key, VALID_FROM]
        equal = F.lit(True)
        for name in names:
            equal = equal & F.col(f"n.`{name}`").eqNullSafe(F.col(f"o.`{name}`"))
        written = (
            chains.select(*map(col, names)).alias("n").join(theirs.alias("o"), equal, "left_anti")
        )
        gone = theirs.join(chains.select(*map(col, place)), place, "left_anti").select(
            *map(col, names)
        )
        return written.withColumn(OPERATION, F.lit("update")).unionByName(
            gone.withColumn(OPERATION, F.lit(DELETE))
        )

    def _as_events(self, known: DataFrame) -> DataFrame:
        """Rows there are, and an end where a row ended and no other began."""
        listed = [col(name) for name in self.columns]
        starts = known.select(
            *listed, col(VALID_FROM), F.lit(False).alias(_GONE), F.lit(False).alias(_NEW)
        )
        ends = known.where(col(VALID_TO).isNotNull()).select(
            *listed,
            col(VALID_TO).alias(VALID_FROM),
            F.lit(True).alias(_GONE),
            F.lit(False).alias(_NEW),
        )
        begun = known.select(*map(col, self.key), col(VALID_FROM))
        return starts.unionByName(
            ends.join(begun, [*self.key, VALID_FROM], "left_anti").select(*starts.columns)
        )

    def _chained(self, events: DataFrame) -> DataFrame:
        keys = [col(name) for name in self.key]
        # A new word about a moment stands over an old one, and of one moment the row over its end.
        newest = Window.partitionBy(*keys, col(VALID_FROM)).orderBy(col(_NEW).desc(), col(_GONE))
        one = events.withColumn(_PREVIOUS, F.row_number().over(newest)).where(col(_PREVIOUS) == 1)
        order = Window.partitionBy(*keys).orderBy(VALID_FROM)
        told = [col(n) for n in self.columns if n not in (*self.key, self.order)]
        content = F.to_json(F.struct(F.lit(1), *told), {"ignoreNullFields": "false"})
        said = one.withColumn(_CONTENT, F.when(~col(_GONE), content))
        before = F.lag(_CONTENT).over(order)
        first = F.row_number().over(order) == 1
        marked = said.withColumn(
            _PREVIOUS, (first & ~col(_GONE)) | (~first & ~before.eqNullSafe(col(_CONTENT)))
        )
        kept = marked.where(col(_PREVIOUS))
        ended = kept.withColumn(VALID_TO, F.lead(VALID_FROM).over(order))
        shown = ended.where(~col(_GONE)).withColumn(IS_CURRENT, col(VALID_TO).isNull())
        return shown.select(*map(col, self.columns), *map(col, ADDED))


def refuse_ambiguous(events: DataFrame, key: tuple[str, ...], table: str) -> None:
    """Two different rows of one key and one moment, or a moment that is NULL."""
    nameless = events.where(col(VALID_FROM).isNull()).limit(1).collect()
    if nameless:
        raise StepFailed(
            f"a row of {table} does not say from when on it is true",
            hint="the column of sequence_by must not be NULL",
        )
    grouped = events.groupBy(*map(col, key), col(VALID_FROM)).count().where("count > 1")
    found = grouped.limit(1).collect()
    if found:
        shown = ", ".join(f"{name}={found[0][name]!r}" for name in key)
        raise StepFailed(
            f"{found[0]['count']} different rows of {table} have the key {shown} at one moment",
            hint="leave one row per key, or order them: sequence_by=…",
        )
