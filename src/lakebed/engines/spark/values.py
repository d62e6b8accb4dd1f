"""Expressions of Spark's SQL that users write: conditions, and new values of columns."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakebed.engines.spark.fit import fit, left_out
from lakebed.engines.spark.refusals import refusal, told
from lakebed.engines.spark.types import spark_type
from lakebed.model.errors import InvalidExpression, SchemaMismatch
from lakebed.model.ids import FieldId
from lakebed.model.types import Field, Primitive, StructType, is_scalar, walk

_TEXT = re.compile(r"\s*'(?:[^'\\]|'')*'\s*")
_NAIVE = re.compile(r"\s*'\s*\d{4,}-\d\d?-\d\d?(?:[ T][\d:.]*)?\s*'\s*")
Before = Callable[[], Column]


@dataclass(frozen=True, slots=True)
class Given:
    column: Column
    type: st.DataType
    text: str

    @property
    def is_text(self) -> bool:
        """A text in quotes, which takes the type of what it is given to."""
        return _TEXT.fullmatch(self.text) is not None


def given(frame: DataFrame, text: str, what: str) -> Given:
    """One expression over the frame's columns; `what` names it in errors."""
    with told(what):
        # Beside a column of every row an aggregate is refused.
        beside = F.monotonically_increasing_id()
        fields = frame.select(beside, F.expr(text)).schema.fields
    if len(fields) != 2:
        raise InvalidExpression(
            f"{what} is not one expression: {text.strip()[:200]}",
            hint="write an expression such as price * 2",
        )
    return Given(F.expr(text), fields[1].dataType, text)


def condition(frame: DataFrame, text: str, what: str) -> Column:
    """TRUE, FALSE or NULL for each row."""
    found = given(frame, text, what)
    if not isinstance(found.type, st.BooleanType | st.NullType):
        raise InvalidExpression(
            f"{what} is {found.type.simpleString()}, not TRUE or FALSE: {text.strip()[:200]}",
            hint="compare it with something, as in n <> 0",
        )
    return found.column.cast("boolean")


@dataclass(frozen=True, slots=True)
class Assignments:
    """Expressions by the id of the column, or member of a struct, that they go to."""

    frame: DataFrame
    texts: Mapping[FieldId, str]
    what: str

    def value(self, field: Field, before: Before) -> Column:
        """The column's new value; `before` gives what it was, fitted, and is asked if needed."""
        text = self.texts.get(field.id)
        if text is not None:
            return self._typed(field, text)
        if not isinstance(field.type, StructType) or not self._touches(field):
            return before()
        members = [
            self.value(member, partial(_member, before, member.name)).alias(member.name)
            for member in field.type.fields
        ]
        return F.struct(*members)

    def whole(self, field: Field) -> Column:
        """As `value`, of a row that was not there before."""
        if not self._touches(field):
            return left_out(field)
        return self.value(field, lambda: F.lit(None).cast(spark_type(field.type)))

    def _touches(self, field: Field) -> bool:
        return any(inner.id in self.texts for inner in walk((field,)))

    def _typed(self, field: Field, text: str) -> Column:
        found = given(self.frame, text, f"{self.what} {field.name!r}")
        is_text = field.type == Primitive("string") or not is_scalar(field.type)
        if not found.is_text or is_text:
            return fit(found.column, found.type, field, rounds=True)
        if field.type == Primitive("timestamp") and _NAIVE.fullmatch(text):
            raise SchemaMismatch(
                f"column {field.name!r}: {text.strip()} has no time zone",
                hint="say which zone is meant: add Z or an offset to the text, or CAST it",
                column=field.name,
            )
        if field.type == Primitive("uuid"):
            return fit(found.column, found.type, field)
        # Never NULL for what is no value, whatever the session makes of such casts.
        refused = refusal(
            SchemaMismatch,
            F.lit(f"column {field.name!r}: {text.strip()[:100]} is no {field.type}"),
            hint=f"write a value of {field.type}",
            column=field.name,
        )
        return F.coalesce(found.column.try_cast(spark_type(field.type)), refused)


def _member(struct: Before, name: str) -> Column:
    return struct().getField(name)
