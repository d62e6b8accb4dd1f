"""Rows of a buffered writer, checked when they are given: single dicts fast, all others in bulk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sys import getsizeof
from typing import Any

import pyarrow as pa

from lakebed.api.parts import Parts
from lakebed.api.writing import fitting
from lakebed.engines.arrow.exact import years_of
from lakebed.engines.arrow.partition import split
from lakebed.engines.arrow.types import to_arrow
from lakebed.engines.arrow.values import Refused, converter
from lakebed.model.history import TableState
from lakebed.model.types import Field, Primitive, children, is_scalar

Values = tuple[Any, ...]  # of one row, in the order of the columns, as Arrow takes them
_FEW_ROWS = 64  # from here on the fixed cost of a batch is less than that of single rows
_PIECE_BYTES = 500  # of each column of a batch, beside its values
_BINARY = (Primitive("string"), Primitive("binary"))


@dataclass(frozen=True, slots=True)
class Taken:
    """The rows of one call, copied and checked: loose ones, or batches."""

    intake: "Intake"
    loose: Sequence[Values]
    batches: Sequence[pa.RecordBatch]
    rows: int
    size_bytes: int


class Intake:
    """What a table takes, as it was when looked at."""

    def __init__(self, parts: Parts, state: TableState) -> None:
        self._parts = parts
        self.state = state
        self._columns = [
            (f.name, converter(f.type), f.write_default, f.required, *years_of(f.type))
            for f in state.schema.fields
        ]
        self._is_simple = (
            all(map(_is_sure, state.schema.fields))
            and not state.constraints
            and not self._may_not_split()
        )

    def take_few(self, rows: object) -> Taken | None:
        """A dict or a short list of them, if it is surely right; None: look at it more closely."""
        if isinstance(rows, Mapping):
            rows = [rows]
        if not self._is_simple or not isinstance(rows, list) or len(rows) > _FEW_ROWS:
            return None
        try:
            loose = [self._values(row) for row in rows]
        except Refused:
            return None
        return Taken(self, loose, (), len(loose), sum(map(_size, loose)))

    def take(self, rows: object) -> Taken:
        """Whatever `append` takes, or one dict; what does not fit is refused as there."""
        given = [rows] if isinstance(rows, Mapping) else rows
        batches = [_copied(batch) for batch in fitting(self._parts, self.state, given)]
        if self._may_not_split():
            for batch in batches:
                split(batch, self.state.spec, self.state.schema)
        count = sum(batch.num_rows for batch in batches)
        size = sum(batch.nbytes + _PIECE_BYTES * batch.num_columns for batch in batches)
        return Taken(self, (), batches, count, size)

    def to_batch(self, loose: Sequence[Values]) -> pa.RecordBatch:
        shape = to_arrow(self.state.schema)
        columns = zip(*loose, strict=True)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, shape.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=shape)

    def _values(self, row: object) -> Values:
        """Refused says nothing here: the closer look finds the right words, or nothing wrong."""
        if not isinstance(row, Mapping):
            raise _unsure()
        found, values = 0, []
        for name, convert, default, required, first, last in self._columns:
            if name in row:
                found += 1
                value = row[name]
                if value is not None:
                    value = convert(value)
                    if first is not None and not first <= value <= last:
                        raise _unsure()
            else:
                value = default
            if value is None and required:
                raise _unsure()
            values.append(value)
        if found != len(row):
            raise _unsure()
        return tuple(values)

    def _may_not_split(self) -> bool:
        """The least numbers cannot be cut to a multiple: such rows have no partition."""
        schema = self.state.schema
        return any(
            f.transform.name == "truncate" and schema.field(f.source_id).type not in _BINARY
            for f in self.state.spec.fields
        )


def _is_sure(field: Field) -> bool:
    """Does the conversion of single values find all that a batch would be refused for?"""
    return is_scalar(field.type) or all(
        not f.required and years_of(f.type) == (None, None) and _is_sure(f)
        for f in children(field.type)
    )


def _size(value: object) -> int:
    """Of rows and nested values too, each with what it holds."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return getsizeof(value) + sum(map(_size, value))
    return getsizeof(value)


def _unsure() -> Refused:
    return Refused("needs a closer look", "")


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Arrow may share memory with what the caller goes on to change, or with a larger table."""
    return pa.concat_batches([batch, batch.slice(0, 0)])
