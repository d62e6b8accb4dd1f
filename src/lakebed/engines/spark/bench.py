"""Spark as operations use it: frames read from plans, and written as data files."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebed.core.plan import Plan
from lakebed.engines.arrow.write import WriteOptions
from lakebed.engines.spark.fit import fit, fitted, required
from lakebed.engines.spark.joining import ROW_ID, SEQUENCE, Joining, Source, take_source
from lakebed.engines.spark.keys import SourceKey, SourceValues, repeated_key, values_of
from lakebed.engines.spark.positions import Hits, hits_in
from lakebed.engines.spark.predicate import named
from lakebed.engines.spark.read import read
from lakebed.engines.spark.refusals import told
from lakebed.engines.spark.types import from_spark, spark_type
from lakebed.engines.spark.values import Assignments, condition
from lakebed.engines.spark.write import write
from lakebed.model.errors import InvalidInput
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile
from lakebed.model.ids import FieldId
from lakebed.model.partitioning import PartitionSpec, SortOrder
from lakebed.model.schema import Schema
from lakebed.model.types import Field, FixedType
from lakebed.storage.base import Storage

_ANY = FixedType(0)  # NULL is all that is looked for


@dataclass(frozen=True, slots=True)
class Bench:
    session: SparkSession
    storage: Storage

    def check_frame(self, given: object) -> DataFrame:
        if not isinstance(given, DataFrame):
            raise InvalidInput(
                f"{type(given).__name__} is no DataFrame of Spark",
                hint="make one with sp.session.createDataFrame(…), or use the table's own methods",
            )
        return given

    def arrow_schema(self, frame: DataFrame) -> pa.Schema:
        return from_spark(frame.schema)

    def read(self, plan: Plan, metadata: tuple[str, ...] = ()) -> DataFrame:
        return read(self.session, plan, self.storage, metadata=metadata)

    def frame_of(self, rows: pa.Table) -> DataFrame:
        return self.session.createDataFrame(rows)

    def query(self, pieces: Sequence[tuple[str, str]], frames: Sequence[DataFrame]) -> DataFrame:
        """A query in pieces; behind each one stands the name `t0`, `t1`, … of a frame, or none."""
        if not frames:
            return self.session.sql("".join(piece for piece, _ in pieces))
        text = "".join(
            piece.replace("{", "{{").replace("}", "}}") + (f"{{{name}}}" if name else "")
            for piece, name in pieces
        )
        bound: dict[str, Any] = {f"t{n}": frame for n, frame in enumerate(frames)}
        return self.session.sql(text, **bound)

    def telling(self, what: str) -> AbstractContextManager[None]:
        """Errors of Spark in this block become ours."""
        return told(what)

    def where(self, frame: DataFrame, alias: str, text: str) -> DataFrame:
        """The rows for which a condition of the user's is TRUE."""
        rows = frame.alias(alias)
        return rows.where(condition(rows, text, "the condition"))

    def hits(self, frame: DataFrame) -> list[Hits]:
        """Where the rows of a frame are that has `_file` and `_pos`."""
        with told("looking for rows"):
            return hits_in(frame, F.lit(1))

    def updated(
        self, frame: DataFrame, schema: Schema, texts: Mapping[FieldId, str], alias: str
    ) -> DataFrame:
        """The rows with new values, and what the frame has beside the table's columns; kept."""
        rows = frame.alias(alias)
        assigned, columns = Assignments(rows, texts, "SET"), []
        for field in schema.fields:
            before = partial(fit, named(field.name), spark_type(field.type), field)
            columns.append(assigned.value(field, before).alias(field.name))
        names = {field.name for field in schema.fields}
        beside = [named(name) for name in frame.columns if name not in names]
        with told("changing rows"):
            return rows.select(*columns, *beside).localCheckpoint(eager=True)

    def changed(self, kept: DataFrame, schema: Schema, *, lineage: bool) -> DataFrame:
        """Changed rows as they are written: their ids stay, and the commit numbers them."""
        columns = [named(field.name) for field in schema.fields]
        if lineage:
            columns += [named(ROW_ID), F.lit(None).cast("long").alias(SEQUENCE)]
        return kept.select(*columns)

    def copied(self, plan: Plan, lineage: tuple[str, ...]) -> DataFrame:
        """Rows that only move; those that this commit brings have no number yet: it is 0."""
        rows = self.read(plan, lineage)
        if not lineage:
            return rows
        return rows.withColumn(SEQUENCE, F.nullif(named(SEQUENCE), F.lit(0).cast("long")))

    def together(
        self, frames: Sequence[DataFrame], schema: Schema, lineage: tuple[str, ...]
    ) -> DataFrame:
        """Columns stand in the schema's order; `write` fits what all frames have alike."""
        if len({frame.schema.simpleString() for frame in frames}) > 1:
            frames = [fitted(frame, schema, beside=lineage) for frame in frames]
        return reduce(DataFrame.union, frames)

    def keyed(self, frame: DataFrame, key: Sequence[Field]) -> DataFrame:
        """The frame, in which no key may be NULL."""
        names = {name.casefold(): name for name in frame.columns}
        for field in key:
            name = names[field.name.casefold()]
            checked = required(named(name), replace(field, required=True, type=_ANY))
            frame = frame.withColumn(name, checked)
        return frame

    def source(self, frame: DataFrame, beside: Iterable[str]) -> Source:
        """Rows to merge, computed once."""
        with told("reading the source"):
            return take_source(frame, beside)

    def repeated(self, source: Source, key: Sequence[str]) -> dict[str, object] | None:
        """The values of a key that several rows of the source have, if there is one."""
        with told("looking for keys"):
            return repeated_key(source, key)

    def key_values(self, source: Source, keys: Iterable[SourceKey], most: int) -> SourceValues:
        """The values of columns, sorted; only the first and the last when there are too many.

        A column is left out that does not compare as the table's, whose type is given, does.
        """
        with told("looking for keys"):
            return values_of(source, keys, most)

    def joining(
        self,
        plan: Plan,
        source: Source,
        *,
        aliases: tuple[str, str],
        about: tuple[str, ...],
    ) -> Joining:
        rows = self.read(plan, about)
        return Joining(rows, source, plan.schema, aliases=aliases, about=about)

    def joined_hits(self, joining: Joining, found: DataFrame) -> list[Hits]:
        with told("looking for rows"):
            return hits_in(found.where(joining.act > 0), joining.act)

    def write(
        self,
        frame: DataFrame,
        *,
        root: str,
        schema: Schema,
        spec: PartitionSpec,
        sort_order: SortOrder,
        options: WriteOptions,
        name_prefix: str,
        lineage: bool,
        checks: Mapping[str, str],
        must_match: Predicate | str | None = None,
        rounds: bool = False,
    ) -> list[DataFile]:
        return write(
            self.session,
            frame,
            storage=self.storage,
            root=root,
            schema=schema,
            spec=spec,
            sort_order=sort_order,
            options=options,
            name_prefix=name_prefix,
            lineage=lineage,
            checks=checks,
            must_match=must_match,
            rounds=rounds,
        )
