"""History by key: each row says from when until when it was true.

New rows join what is known of their keys, in whatever order they come, and the chain of each key is
made again. A row that says what the one before it says is no change, and is not shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakebed.model.errors import StepFailed
from lakebed.pipelines.columns import backticked, col, comparable, distinct
from lakebed.pipelines.net import DELETE
from lakebed.pipelines.step import IS_CURRENT, VALID_FROM, VALID_TO

ADDED = (VALID_FROM, VALID_TO, IS_CURRENT)
IS_END = "_is_end"
OPERATION = "__lakebed_op"
_NEW, _RANK, _CONTENT, _SHOWN = (
    "__lakebed_new",
    "__lakebed_rank",
    "__lakebed_content",
    "__lakebed_shown",
)


@dataclass(frozen=True, slots=True)
class History:
    """`moment` is when a row became true: a column of the result, or the time of the run."""

    key: tuple[str, ...]
    columns: tuple[str, ...]  # of the result, without `op`
    moment: Column
    op: str | None = None
    order: str | None = None  # the column that `moment` comes from: it alone makes no change

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """Those of the table."""
        return (*self.columns, *ADDED)

    @property
    def hidden_columns(self) -> tuple[str, ...]:
        """Those of the table of events that do not show."""
        return (*self.columns, VALID_FROM, IS_END)

    def events(self, rows: DataFrame) -> DataFrame:
        """The result as events: what is true from when on, or that nothing is."""
        gone = F.lit(False) if self.op is None else col(self.op) == DELETE
        listed = [col(name) for name in self.columns]
        made = rows.select(
            *listed,
            self.moment.cast(st.TimestampType()).alias(VALID_FROM),
            F.coalesce(gone, F.lit(False)).alias(IS_END),
            F.lit(True).alias(_NEW),
        )
        return distinct(made)

    def vanished(self, known: DataFrame, present: DataFrame, now: Column) -> DataFrame:
        """Keys that are current and that a result of all rows does not have: they end now."""
        keys = present.select(*map(col, self.key))
        missing = known.where(col(IS_CURRENT)).join(keys, list(self.key), "left_anti")
        ends = F.greatest(now, col(VALID_FROM)).alias(VALID_FROM)
        listed = [col(name) for name in self.columns]
        return missing.select(*listed, ends, F.lit(True).alias(IS_END), F.lit(True).alias(_NEW))

    def chains(
        self, events: DataFrame, known: DataFrame | None, hidden: DataFrame | None
    ) -> DataFrame:
        """Every event of every key that has a new one; each says whether it shows."""
        every = events
        keys = events.select(*map(col, self.key)).distinct()
        if known is not None:
            theirs = known.join(keys, list(self.key), "left_semi")
            every = every.unionByName(self._as_events(theirs))
        if hidden is not None:
            theirs = hidden.join(keys, list(self.key), "left_semi")
            old = theirs.select(*map(col, self.hidden_columns)).withColumn(_NEW, F.lit(False))
            every = every.unionByName(old)
        return self._chained(every)

    def shown(self, chains: DataFrame) -> DataFrame:
        """The rows of the table."""
        order = Window.partitionBy(*map(col, self.key)).orderBy(VALID_FROM)
        kept = chains.where(col(_SHOWN)).withColumn(VALID_TO, F.lead(VALID_FROM).over(order))
        rows = kept.where(~col(IS_END)).withColumn(IS_CURRENT, col(VALID_TO).isNull())
        return rows.select(*map(col, self.shown_columns))

    def hidden(self, chains: DataFrame) -> DataFrame:
        """Ends, and rows that repeat the one before: one that comes late may stand between."""
        return chains.where(col(IS_END) | ~col(_SHOWN)).select(*map(col, self.hidden_columns))

    def changes(self, now: DataFrame, before: DataFrame, names: Sequence[str]) -> DataFrame:
        """Rows to write, with `update` or `delete` in OPERATION; those that stay are left out.

        `before` are rows of any keys; those of keys that `now` does not have are deleted.
        """
        place = [*self.key, VALID_FROM]
        equal = F.lit(True)
        for name in names:
            kind, (n, o) = (
                now.schema[name].dataType,
                (F.col(f"{s}.{backticked(name)}") for s in "no"),
            )
            equal = equal & comparable(kind, n).eqNullSafe(comparable(kind, o))
        written = now.alias("n").join(before.alias("o"), equal, "left_anti")
        gone = before.join(now.select(*map(col, place)), place, "left_anti").select(
            *map(col, names)
        )
        return written.withColumn(OPERATION, F.lit("update")).unionByName(
            gone.withColumn(OPERATION, F.lit(DELETE))
        )

    def of_keys(self, stored: DataFrame, chains: DataFrame, names: Sequence[str]) -> DataFrame:
        """What is stored of the keys that have events."""
        keys = chains.select(*map(col, self.key)).distinct()
        return stored.join(keys, list(self.key), "left_semi").select(*map(col, names))

    def _as_events(self, known: DataFrame) -> DataFrame:
        """Rows there are, and an end where a row ended and no other began."""
        listed = [col(name) for name in self.columns]
        starts = known.select(
            *listed, col(VALID_FROM), F.lit(False).alias(IS_END), F.lit(False).alias(_NEW)
        )
        ends = known.where(col(VALID_TO).isNotNull()).select(
            *listed,
            col(VALID_TO).alias(VALID_FROM),
            F.lit(True).alias(IS_END),
            F.lit(False).alias(_NEW),
        )
        begun = known.select(*map(col, self.key), col(VALID_FROM))
        return starts.unionByName(
            ends.join(begun, [*self.key, VALID_FROM], "left_anti").select(*starts.columns)
        )

    def _chained(self, events: DataFrame) -> DataFrame:
        keys = [col(name) for name in self.key]
        # A new word about a moment stands over an old one, and of one moment the row over its end.
        newest = Window.partitionBy(*keys, col(VALID_FROM)).orderBy(col(_NEW).desc(), col(IS_END))
        one = events.withColumn(_RANK, F.row_number().over(newest)).where(col(_RANK) == 1)
        order = Window.partitionBy(*keys).orderBy(VALID_FROM)
        kinds = {f.name: f.dataType for f in events.schema.fields}
        told = [n for n in self.columns if n not in (*self.key, self.order)]
        content = F.struct(F.lit(1), *(comparable(kinds[n], col(n)) for n in told))
        said = one.withColumn(_CONTENT, F.when(~col(IS_END), content))
        before = F.lag(_CONTENT).over(order)
        first = F.row_number().over(order) == 1
        changed = (first & ~col(IS_END)) | (~first & ~before.eqNullSafe(col(_CONTENT)))
        marked = said.withColumn(_SHOWN, changed)
        return marked.select(*map(col, self.hidden_columns), col(_SHOWN))


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
