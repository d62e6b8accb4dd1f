"""Names of columns in Spark and in SQL, and the shape of a table made from a frame."""

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakebed.engines.spark.types import from_spark
from lakebed.model.errors import StepFailed

# To the microsecond: texts of Spark's own choice leave out what is below a millisecond.
_EXACT = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def col(name: str) -> Column:
    """A column by its name, whatever is in it."""
    return F.col(backticked(name))


def backticked(name: str) -> str:
    """A name as Spark's SQL takes it."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def has_map(kind: st.DataType) -> bool:
    return "map<" in kind.simpleString()


def comparable(kind: st.DataType, value: Column) -> Column:
    """The value, or what is equal when it is: maps have no equality, their texts have."""
    return F.to_json(value, _EXACT) if has_map(kind) else value


def comparable_text(kind: st.DataType, value: str) -> str:
    """The same in Spark's SQL."""
    if not has_map(kind):
        return value
    options = ", ".join(f"'{name}', \"{said}\"" for name, said in _EXACT.items())
    return f"to_json({value}, map({options}))"


def distinct(frame: DataFrame) -> DataFrame:
    """Each row once, those with maps too."""
    maps = [f for f in frame.schema.fields if has_map(f.dataType)]
    if not maps:
        return frame.distinct()
    names = {f.name: f"__lakebed_text_{n}" for n, f in enumerate(maps)}
    texts = {names[f.name]: comparable(f.dataType, col(f.name)) for f in maps}
    told = [names.get(name, name) for name in frame.columns]
    return frame.withColumns(texts).dropDuplicates(told).select(*map(col, frame.columns))


def check_frame(made: object, table: str) -> DataFrame:
    """What a step returned, or one sentence about why it is no result."""
    if not isinstance(made, DataFrame):
        what = "nothing" if made is None else f"a {type(made).__name__}"
        raise StepFailed(
            f"the function returned {what}, not a DataFrame",
            hint="end it with: return …" if made is None else "return a DataFrame",
        )
    seen: dict[str, str] = {}
    for name in made.columns:
        if name.casefold() in seen:
            raise StepFailed(
                f"the result has two columns {name!r}",
                hint="name each column once: after a join, drop or rename one of them",
            )
        seen[name.casefold()] = name
    if not seen:
        raise StepFailed("the result has no column", hint=f"select what {table} should hold")
    untyped = [f.name for f in made.schema.fields if isinstance(f.dataType, st.NullType)]
    if untyped:
        raise StepFailed(
            f"column {untyped[0]!r} has no type: it is NULL in every row",
            hint=f"cast it: lit(None).cast('string').alias('{untyped[0]}')",
        )
    return made


def find_columns(frame: DataFrame, names: Iterable[str], why: str) -> tuple[str, ...]:
    """The columns as the frame writes them."""
    known = {name.casefold(): name for name in frame.columns}
    found = []
    for name in names:
        if name.casefold() not in known:
            raise StepFailed(
                f"the result has no column {name!r}, which is {why}",
                hint=f"its columns are: {', '.join(frame.columns)}",
            )
        found.append(known[name.casefold()])
    return tuple(found)


def table_schema(frame: DataFrame, required: Iterable[str]) -> pa.Schema:
    """Every column may be NULL but those of a key: what Spark says of that changes with data."""
    fields = [
        st.StructField(f.name, _open(f.dataType), f.name not in set(required))
        for f in frame.schema.fields
    ]
    return from_spark(st.StructType(fields))


def _open(kind: st.DataType) -> st.DataType:
    match kind:
        case st.StructType():
            return st.StructType([st.StructField(f.name, _open(f.dataType)) for f in kind.fields])
        case st.ArrayType():
            return st.ArrayType(_open(kind.elementType))
        case st.MapType():
            return st.MapType(_open(kind.keyType), _open(kind.valueType))
        case _:
            return kind
