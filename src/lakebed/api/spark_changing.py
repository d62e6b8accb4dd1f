"""Changes of rows by Spark in a transaction: planned on what it sees, and staged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

from lakebed.api.merge import key_names, to_on
from lakebed.api.rowops import RowChanger, to_condition
from lakebed.api.spark_rows import SparkRows
from lakebed.model.changes import AppendFiles
from lakebed.model.counts import RowCounts
from lakebed.model.errors import AmbiguousMerge, InvalidExpression, InvalidInput
from lakebed.model.files import DataFile
from lakebed.model.names import parse_table_name
from lakebed.rowops.change import RowChange
from lakebed.rowops.clause import Aliases, Clause, When
from lakebed.rowops.condition import Condition
from lakebed.rowops.known import of_alias
from lakebed.rowops.literal import value_to_sql
from lakebed.rowops.merge import refuse_other_columns
from lakebed.rowops.source import check_names
from lakebed.rowops.spark.delete import delete
from lakebed.rowops.spark.merge import Matching, merge
from lakebed.rowops.spark.settle import SparkTarget
from lakebed.rowops.spark.update import update
from lakebed.sql.spark_expression import check_spark_expression, equal_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakebed.engines.spark.bench import Bench
    from lakebed.engines.spark.joining import Source

Clauses = tuple[Clause, ...]
ALIASES = Aliases("t", "s")
# Spark reads these in another way than we do: such a text is left to it alone.
_OTHERWISE = ('"', "\\", "`", "--", "/*")


@dataclass(frozen=True, slots=True)
class SparkChanger:
    bench: "Bench"
    rows: RowChanger

    def delete(self, condition: Condition) -> RowCounts:
        return self._staged(delete(self._target("delete"), self._known(condition)), "delete")

    def update(self, values: Mapping[str, str], condition: Condition | None) -> RowCounts:
        known = None if condition is None else self._known(condition)
        return self._staged(update(self._target("update"), values, known), "update")

    def overwrite(self, frame: "DataFrame", condition: Condition) -> RowCounts:
        """Rows that match, take the place of those that do."""
        staged = self.rows.staged
        change = delete(self._target("delete"), self._known(condition))
        files = self._write(frame, must_match=condition.text)
        counts = change.counts + RowCounts(inserted_rows=sum(f.record_count for f in files))
        staged.take_rows(replace(change, counts=counts))
        staged.append(AppendFiles(tuple(files), staged.state.schema.id), "overwrite")
        return counts

    def merge(self, source: "Source", matching: Matching, clauses: Sequence[Clause]) -> RowCounts:
        for clause in clauses:
            _check_clause(clause)
        return self._staged(merge(self._target("merge"), source, matching, clauses), "merge")

    def upsert(self, rows: "SparkSource", named: str | Sequence[str] | None) -> RowCounts:
        """`named` is the key, the primary key unless given."""
        schema = self.rows.staged.state.schema
        key = key_names(schema, named, self.rows.name)
        refuse_other_columns(schema, rows.columns, "upsert")
        source = rows.taken(self, key)
        repeated = self.bench.repeated(source, key)
        if repeated is not None:
            shown = ", ".join(f"{name} = {value!r}" for name, value in repeated.items())
            raise AmbiguousMerge(f"several rows have the key {shown}", hint="leave one row per key")
        pairs = tuple((("t", name), ("s", name)) for name in key)
        quoted = [name.replace("`", "``") for name in key]
        text = " AND ".join(f"t.`{name}` = s.`{name}`" for name in quoted)
        matching = Matching(Condition(text, None, is_exact=False), pairs, ALIASES)
        clauses = (Clause(When.MATCHED, "update"), Clause(When.NOT_MATCHED, "insert"))
        return self.merge(source, matching, clauses)

    def _known(self, condition: Condition) -> Condition:
        """The condition with what can be told of it without Spark, for this table."""
        try:
            condition.bound(self.rows.staged.state.schema)
        except InvalidExpression:
            # It names columns by the alias, or compares what only Spark compares.
            return of_alias(condition, self.rows.alias or parse_table_name(self.rows.name).name)
        return condition

    def _staged(self, change: RowChange, operation: str) -> RowCounts:
        self.rows.staged.change_rows(change, operation)
        return change.counts

    def _target(self, operation: str) -> SparkTarget:
        table = self.rows.target(operation)

        def write(frame: "DataFrame") -> list[DataFile]:
            return self._write(frame, lineage=table.has_row_ids)

        return SparkTarget(table, self.bench, write)

    def _write(
        self, frame: "DataFrame", *, lineage: bool = False, must_match: str | None = None
    ) -> list[DataFile]:
        staged = self.rows.staged
        rows = SparkRows(self.bench, frame, lineage, must_match)
        return rows.write(self.rows.parts, staged.head, staged.state)


class SparkSource:
    """Rows to merge, computed once however often they are looked at."""

    def __init__(self, bench: "Bench", frame: object) -> None:
        self._bench = bench
        self._frame = bench.check_frame(frame)
        self._source: Source | None = None

    @property
    def columns(self) -> list[str]:
        return list(self._frame.columns)

    def taken(self, changer: SparkChanger, key: Sequence[str] = ()) -> "Source":
        """`key` are columns that no row may leave open."""
        if self._source is None:
            check_names(self._frame.columns)
            schema = changer.rows.staged.state.schema
            fields = [field for field in schema.fields if field.name in key]
            frame = self._bench.keyed(self._frame, fields) if fields else self._frame
            self._source = self._bench.source(frame, [f.name for f in schema.fields])
        return self._source

    def forget(self) -> None:
        """Its rows are lost: they are computed anew for a merge that begins anew."""
        self._source = None


def spark_condition(where: object, *, is_utc: bool) -> Condition:
    """A condition in Spark's SQL; what we read of it in the same way leaves files out."""
    text = check_spark_expression(where, "the condition")
    if is_utc and not any(mark in text for mark in _OTHERWISE):
        try:
            return to_condition(text)
        except InvalidExpression:
            pass
    return Condition(text, None, is_exact=False)


def spark_matching(on: object, aliases: Aliases, *, is_utc: bool) -> Matching:
    text = check_spark_expression(on, "ON")
    plain = is_utc and not any(mark in text for mark in _OTHERWISE)
    condition = to_on(text) if plain else Condition(text, None, is_exact=False)
    return Matching(condition, equal_columns(text), aliases)


def spark_values(given: object) -> dict[str, str]:
    """Columns and what they become: text is Spark's SQL, other values stand for themselves."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput("no column is set", hint='give {"column": "expression"}')
    return {name: _value(name, value) for name, value in given.items()}


def _value(name: str, value: object) -> str:
    if isinstance(value, str):
        return check_spark_expression(value, f"SET {name!r}")
    match value:
        case bytes():
            return f"X'{value.hex()}'"
        case UUID():
            return f"'{value}'"
        case datetime() if value.tzinfo is None:
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        case datetime():
            utc = value.astimezone(UTC).replace(tzinfo=None)
            return f"TIMESTAMP_LTZ '{utc.isoformat(sep=' ')}Z'"
        case None | bool() | int() | float() | Decimal() | date():
            return value_to_sql(name, value)
        case _:
            raise InvalidInput(
                f"{name!r} is set to {value!r}, which Spark's SQL has no literal for",
                hint="write an expression as text, such as 'price * 2' or \"'text'\"",
                column=name,
            )


def _check_clause(clause: Clause) -> None:
    what = f"WHEN {clause.when.value}"
    if clause.condition is not None:
        check_spark_expression(clause.condition, f"the condition of {what}")
    for name, text in (clause.values or {}).items():
        check_spark_expression(text, f"{what} THEN {name!r}")


Stage = Callable[[SparkChanger], RowCounts]
