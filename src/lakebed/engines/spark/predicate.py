"""Bound predicates as columns of Spark, which mean the same: NaN the greatest number, NULL
unknown."""

from collections.abc import Callable
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from uuid import UUID

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from lakebed.engines.spark.types import spark_type
from lakebed.model.expressions import (
    Always,
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
)
from lakebed.model.types import Primitive, Scalar, Stored

_COMPARISONS: dict[Operator, Callable[[SparkColumn, SparkColumn], SparkColumn]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_DAY_MICROS = 86_400_000_000


def named(name: str) -> SparkColumn:
    """A top-level column, whatever characters its name has."""
    return F.col(f"`{name.replace('`', '``')}`")


def to_column(predicate: Predicate) -> SparkColumn:
    match predicate:
        case Constant(value):
            return F.lit(value).cast("boolean")
        case Not(operand):
            return ~to_column(operand)
        case And(operands):
            return reduce(and_, map(to_column, operands), F.lit(True))
        case Or(operands):
            return reduce(or_, map(to_column, operands), F.lit(False))
        case IsNull(column):
            return _lookup(column).isNull()
        case Always(column, value):
            return F.when(_lookup(column).isNotNull(), F.lit(value))
        case Compare(column, "=", value) if value == 0 and isinstance(value, float):
            return to_column(In(column, (value,)))
        case Compare(column, operator, value):
            return _COMPARISONS[operator](_values(column), _literal(column, value, operator))
        case In(column, values, has_null):
            # The Iceberg connector keeps 0.0 and -0.0 apart, and puts the latter first.
            both = dict.fromkeys(n for v in values for n in ((repr(v), v), *_negative_zero(v)))
            found = _values(column).isin([_literal(column, value) for _, value in both])
            return found | F.lit(None).cast("boolean") if has_null else found
        case Like(column, pattern):
            return _lookup(column).like(pattern)


def _lookup(column: Column) -> SparkColumn:
    top, *members = column.path
    return reduce(lambda whole, name: whole.getField(name), members, named(top))


def _values(column: Column) -> SparkColumn:
    """Floats widen, so that a double literal is never rounded."""
    found = _lookup(column)
    return found.cast("double") if column.type == Primitive("float") else found


def _negative_zero(value: Stored) -> list[tuple[str, float]]:
    return [("0.0", 0.0), ("-0.0", -0.0)] if isinstance(value, float) and value == 0 else []


def _literal(column: Column, value: Stored, operator: Operator = "=") -> SparkColumn:
    assert column.type is not None, "only bound predicates can be evaluated"
    if isinstance(value, float) and value == 0:
        value = -0.0 if operator in (">=", "<") else 0.0 if operator in ("<=", ">") else value
    if column.type == Primitive("float"):
        return F.lit(float(value)).cast("double")
    return literal(value, column.type)


def literal(value: Stored, kind: Scalar) -> SparkColumn:
    """A value in stored form; never through text that rounds, nor through a time zone."""
    match kind:
        case Primitive("uuid"):
            assert isinstance(value, bytes)
            return F.lit(str(UUID(bytes=value)))
        case Primitive("date"):
            return F.date_from_unix_date(F.lit(int(value)))
        case Primitive("timestamp"):
            return F.timestamp_micros(F.lit(int(value)).cast("long"))
        case Primitive("timestamp_ntz"):
            days, micros = divmod(int(value), _DAY_MICROS)
            seconds = f"{micros // 1_000_000}.{micros % 1_000_000:06d}BD"
            return F.expr(f"TIMESTAMP_NTZ'1970-01-01' + make_dt_interval({days}, 0, 0, {seconds})")
        case _:
            return F.lit(value).cast(spark_type(kind))
