"""A table joined with a source, and what becomes of each row by the clauses of a MERGE."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakebed.engines.arrow.write import LINEAGE
from lakebed.engines.spark.act import Act
from lakebed.engines.spark.fit import fit
from lakebed.engines.spark.layout import rows_per_file
from lakebed.engines.spark.predicate import named
from lakebed.engines.spark.session import is_connect
from lakebed.engines.spark.types import spark_type
from lakebed.engines.spark.values import Assignments, condition
from lakebed.model.schema import Schema
from lakebed.model.types import Field

_SENT_BYTES = 16 * 2**20  # of a source that every executor gets, as files would hold it
PLACE = ("_file", "_pos")
ROW_ID, SEQUENCE = (field.name for field in LINEAGE)


@dataclass(frozen=True, slots=True)
class Source:
    """Rows that stay what they are however often they are looked at, each with a number."""

    frame: DataFrame
    columns: tuple[st.StructField, ...]
    row: str  # the column of numbers
    rows: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def find(self, name: str) -> st.StructField | None:
        """The column of this name: as it is written, else without regard to case."""
        exact = [c for c in self.columns if c.name == name]
        alike = [c for c in self.columns if c.name.casefold() == name.casefold()]
        return next(iter(exact or alike), None)


def take_source(frame: DataFrame, beside: Iterable[str]) -> Source:
    """Computed once: a source that is computed again could differ."""
    row = unused("_lakebed_row", (*frame.columns, *beside))
    numbered = frame.withColumn(row, F.monotonically_increasing_id())
    kept, rows = _kept(numbered)
    return Source(kept, tuple(frame.schema.fields), row, rows)


def _kept(frame: DataFrame) -> tuple[DataFrame, int]:
    """Rows are counted on the way where Spark tells of it: that saves a job."""
    found: int | None = None
    if is_connect(frame.sparkSession):
        kept = frame.localCheckpoint(eager=True)
    else:
        seen = Observation()
        kept = frame.observe(seen, F.count("*").alias("rows")).localCheckpoint(eager=True)
        found = seen.get.get("rows")
    return kept, kept.count() if found is None else found


def unused(name: str, taken: Iterable[str]) -> str:
    known = {other.casefold() for other in taken}
    while name in known:
        name += "_"
    return name


class Joining:
    """`target` has the table's columns and those `about` rows, which outlive the join."""

    def __init__(
        self,
        target: DataFrame,
        source: Source,
        schema: Schema,
        *,
        aliases: tuple[str, str],
        about: Sequence[str],
    ) -> None:
        self._schema, self._source, self._about = schema, source, tuple(about)
        self._t, self._s = (_quoted(alias) for alias in aliases)
        self._alias = aliases[0]
        self._target, self._rows = target.alias(aliases[0]), source.frame.alias(aliases[1])
        self._is_small = source.rows <= rows_per_file(schema, _SENT_BYTES)
        self._sent = F.broadcast(self._rows) if self._is_small else self._rows
        taken = (*(f.name for f in schema.fields), *source.names)
        self._act, self._met = (unused(f"_lakebed_{n}", taken) for n in ("act", "from"))

    @property
    def act(self) -> Column:
        return named(self._act)

    def pairs(self, on: str, acts: Sequence[Act]) -> DataFrame:
        """Rows of the table that meet rows of the source: the act for each, and its new row."""
        both = self._target.crossJoin(self._rows)
        joined = self._target.join(self._sent, condition(both, on, "ON"))
        met = F.col(f"{self._s}.{_quoted(self._source.row)}").alias(self._met)
        return self._decided(joined, acts, (*self._places(), met)).localCheckpoint(eager=True)

    def alone(self, pairs: DataFrame, acts: Sequence[Act]) -> DataFrame:
        """Rows of the table that meet none, with an act for them and the new row."""
        left = self._target.join(pairs.select(*map(named, PLACE)), list(PLACE), "left_anti")
        found = self._decided(left.alias(self._alias), acts, self._places())
        return found.where(self.act > 0).localCheckpoint(eager=True)

    def inserted(self, pairs: DataFrame, acts: Sequence[Act]) -> DataFrame:
        """New rows of those of the source that meet none."""
        number = F.col(f"{self._s}.{_quoted(self._source.row)}")
        met = pairs.select(named(self._met)).distinct()
        if self._is_small:  # as many numbers as the source has rows, at most
            met = F.broadcast(met)
        left = self._rows.join(met, number == named(self._met), "left_anti")
        found = self._decided(left, acts, ()).where(self.act > 0)
        return self.written(found)

    def written(self, found: DataFrame, acts: Sequence[Act] | None = None) -> DataFrame:
        """The new rows of some acts, as files hold them; of inserted ones nothing is known yet."""
        if acts is not None:
            found = found.where(self.act.isin([act.number for act in acts if act.writes]))
        columns = [named(f.name) for f in self._schema.fields]
        if ROW_ID in self._about:
            unknown = F.lit(None).cast("long")
            known = named(ROW_ID) if ROW_ID in found.columns else unknown
            columns += [known.alias(ROW_ID), unknown.alias(SEQUENCE)]
        return found.select(*columns)

    def met_twice(self, pairs: DataFrame, columns: Sequence[str]) -> dict[str, object]:
        """Of a row of the source that acts on the same row of the table as another: its values."""
        acting = pairs.where(self.act > 0)
        once = acting.groupBy(*PLACE).agg(F.min(named(self._met)).alias("one"), F.count("*"))
        (twice,) = once.where("`count(1)` > 1").limit(1).select("one").collect()
        row = self._source.frame.where(named(self._source.row) == F.lit(twice["one"]))
        return row.select(*map(named, columns)).collect()[0].asDict()

    def _decided(self, frame: DataFrame, acts: Sequence[Act], kept: Sequence[Column]) -> DataFrame:
        chosen = F.lit(0)
        for act in reversed(acts):
            test = F.lit(True)
            if act.condition is not None:
                test = condition(frame, act.condition, f"the condition of {act.what}")
            chosen = F.when(test, F.lit(act.number)).otherwise(chosen)
        writing = [act for act in acts if act.writes]
        makers = {act.number: self._maker(frame, act) for act in writing}
        for_all = len(acts) == 1 and acts[0].condition is None
        pick = self._only if for_all else self._by_act
        columns = [
            pick({n: make(field) for n, make in makers.items()}).alias(field.name)
            for field in (self._schema.fields if writing else ())
        ]
        return frame.withColumn(self._act, chosen).select(*kept, self.act, *columns)

    def _only(self, values: Mapping[int, Column]) -> Column:
        """Of the act that is for every row: nothing is to be asked."""
        (value,) = values.values()
        return value

    def _by_act(self, values: Mapping[int, Column]) -> Column:
        made = F.lit(None)
        for number, value in values.items():
            made = F.when(self.act == F.lit(number), value).otherwise(made)
        return made

    def _maker(self, frame: DataFrame, act: Act) -> Callable[[Field], Column]:
        if act.values is None:
            return self._of_source
        assigned = Assignments(frame, act.values, act.what)
        if act.action != "update":
            return assigned.whole
        return lambda field: assigned.value(field, partial(self._before, field))

    def _before(self, field: Field) -> Column:
        column = F.col(f"{self._t}.{_quoted(field.name)}")
        return fit(column, spark_type(field.type), field)

    def _of_source(self, field: Field) -> Column:
        given = self._source.find(field.name)
        assert given is not None, field.name
        column = F.col(f"{self._s}.{_quoted(given.name)}")
        return fit(column, given.dataType, field)

    def _places(self) -> list[Column]:
        return [F.col(f"{self._t}.{_quoted(name)}") for name in self._about]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
