"""Which files of a table can hold a row that a source's key values match."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakebed.core.domains import domain_of
from lakebed.engines.arrow.transform import stored
from lakebed.engines.arrow.types import arrow_type
from lakebed.model.expressions import And, Column, Compare, Constant, In, Predicate
from lakebed.model.files import LiveFile
from lakebed.model.quoting import quoted
from lakebed.model.schema import Schema
from lakebed.model.types import DecimalType, Field, FixedType, Primitive, Scalar, Stored
from lakebed.rowops.clause import Aliases
from lakebed.rowops.source import Source
from lakebed.rowops.target import Target
from lakebed.rowops.workbench import Expression, Workbench

_MOST_LISTED = 50  # values that a conflict is judged by one by one
MOST_VALUES = 100_000
_FLOATS = (Primitive("float"), Primitive("double"))


@dataclass(frozen=True, slots=True)
class Key:
    """`target column = source column`, which every match fulfils."""

    field: Field
    column: str  # of the source


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Of one key in the source, sorted; only the first and the last when there are too many."""

    column: Column
    values: Sequence[Stored]
    are_all: bool

    @property
    def predicate(self) -> Predicate:
        """Bound; TRUE for every row of the table that the source can match."""
        if not self.values:
            return Constant(False)
        if self.are_all and len(self.values) <= _MOST_LISTED:
            return In(self.column, tuple(self.values))
        first, last = self.values[0], self.values[-1]
        return And((Compare(self.column, ">=", first), Compare(self.column, "<=", last)))

    @property
    def listed(self) -> Predicate:
        """The same with every value that is known, however many: to be looked up, and not kept."""
        every = self.are_all and len(self.values) > _MOST_LISTED
        return In(self.column, tuple(self.values)) if every else self.predicate

    def may_be_in(self, target: Target, live: LiveFile) -> bool:
        if not target.may_hold(self.predicate, live):
            return False
        known = domain_of(self.column, live.file, target.spec_of(live), target.schema)
        if not self.are_all or known.low is None or known.high is None:
            return True
        at = bisect_left(self.values, known.low)
        return at < len(self.values) and self.values[at] <= known.high  # type: ignore[operator]  # of one column, so of one type


ValuesOf = Callable[[Key, Scalar], tuple[list[Stored], bool] | None]


def keys_of(on: Expression, schema: Schema, source: Source, aliases: Aliases) -> list[Key]:
    found = []
    for left, right in on.equal:
        for ours, theirs in ((left, right), (right, left)):
            field = _of_target(ours, schema, aliases)
            column = _of_source(theirs, source, aliases)
            if field is not None and column is not None:
                found.append(Key(field, column))
                break
    return found


def _of_target(path: tuple[str, ...], schema: Schema, aliases: Aliases) -> Field | None:
    if len(path) < 2 or path[0].casefold() != aliases.target.casefold():
        return None
    return schema.find(path[1:])


def _of_source(path: tuple[str, ...], source: Source, aliases: Aliases) -> str | None:
    if len(path) != 2 or path[0].casefold() != aliases.source.casefold():
        return None
    return source.find(path[1])


def key_values(keys: Sequence[Key], schema: Schema, values_of: ValuesOf) -> list[KeyValues]:
    """`values_of` gives those of a key in the source; see KeyValues."""
    found = []
    for key, kind in scalar_keys(keys):
        values = values_of(key, kind)
        if values is not None:
            path = tuple(f.name for f in schema.path_of(key.field.id))
            found.append(KeyValues(Column(path, key.field.id, kind), *values))
    return found


def scalar_keys(keys: Iterable[Key]) -> Iterator[tuple[Key, Scalar]]:
    """Keys whose values tell files apart, with their types."""
    for key in keys:
        kind = key.field.type
        if isinstance(kind, Primitive | DecimalType | FixedType) and kind not in _FLOATS:
            yield key, kind


def source_values(
    bench: Workbench, source: Source, key: Key, kind: Scalar
) -> tuple[list[Stored], bool] | None:
    """None: they do not compare as the table's do."""
    column = quoted(key.column)
    count = bench.row(f"SELECT count(DISTINCT {column}) AS many FROM {source.relation}")
    assert count is not None
    are_all = count["many"] <= MOST_VALUES
    if are_all:
        sql = f"SELECT DISTINCT {column} AS v FROM {source.relation} WHERE {column} IS NOT NULL"
    else:
        ends = (f"SELECT {end}({column}) AS v FROM {source.relation}" for end in ("min", "max"))
        sql = " UNION ALL ".join(ends)
    values: list[Stored] = []
    for batch in bench.batches(sql):
        array = batch.column(0)
        if not _compare_alike(array.type, arrow_type(kind)):
            return None
        values += stored(array.cast(arrow_type(kind)), kind).to_pylist()
    return sorted(values), are_all


def _compare_alike(theirs: pa.DataType, ours: pa.DataType) -> bool:
    """Do two types hold values that are equal only if they are the same?"""
    if pa.types.is_integer(theirs) and pa.types.is_integer(ours):
        return bool(theirs.bit_width <= ours.bit_width and pa.types.is_signed_integer(theirs))
    return bool(theirs == ours)
