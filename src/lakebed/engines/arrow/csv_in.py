"""CSV files as batches: every field read straight as the table's type, or as Arrow guesses it.

An empty field is null; for text, a quoted empty field is an empty text. Bytes are base64, nested
values JSON. Rows are counted from 1 after the header.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from lakebed.engines.arrow.batches import Batches
from lakebed.engines.arrow.conform import match_names
from lakebed.engines.arrow.exact import first_refused
from lakebed.engines.arrow.origin import Origin
from lakebed.engines.arrow.rows import short
from lakebed.engines.arrow.types import arrow_type, to_arrow
from lakebed.engines.arrow.values import Refused, converter
from lakebed.model.errors import SchemaMismatch
from lakebed.model.schema import Schema
from lakebed.model.types import INTEGERS, DecimalType, Field, Primitive, Type, is_scalar

if TYPE_CHECKING:
    import _csv

_BLOCK_BYTES = 4 * 2**20
_TIMES = ("date", "timestamp", "timestamp_ntz", "timestamp_ns", "timestamptz_ns")
_CAST = ("boolean", "float", "double", *_TIMES, *INTEGERS)
_WANTED = {
    "boolean": "true or false",
    "date": "a date like 2024-01-31",
    "timestamp": "a timestamp with its zone, like 2024-01-31T13:00:00Z",
    "timestamp_ntz": "a timestamp without a zone, like 2024-01-31T13:00:00",
    "timestamp_ns": "a timestamp without a zone, like 2024-01-31T13:00:00",
    "timestamptz_ns": "a timestamp with its zone, like 2024-01-31T13:00:00Z",
}


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How a file is written; `columns` are the names of its fields, whatever its header says."""

    delimiter: str = ","
    quote: str = '"'
    escape: str | None = None  # None: a quote inside quotes is written twice
    has_header: bool = True
    nulls: tuple[str, ...] = ("",)
    skip: int = 0  # lines before the header
    columns: tuple[str, ...] | None = None

    def rows(self, text: Iterable[str]) -> "_csv.Reader":
        return csv.reader(
            text,
            delimiter=self.delimiter,
            quotechar=self.quote,
            escapechar=self.escape,
            doublequote=self.escape is None,
        )


PLAIN = CsvForm()


def read_csv(origin: Origin, schema: Schema | None, form: CsvForm = PLAIN) -> Batches:
    stream = origin.open()
    head = stream.read(_BLOCK_BYTES)
    names = _header(head, origin, form)
    types = {} if schema is None else dict.fromkeys(names, pa.string())
    source = pa.PythonFile(_Chained(head, stream), mode="r")
    reader = _Reader(source, names, types, origin, form)
    if schema is None:
        return Batches(_only_text(reader.schema, origin), reader)
    places = match_names(names, schema.fields, "")
    return Batches(to_arrow(schema), _typed(reader, schema, places, origin, form))


def _header(head: bytes, origin: Origin, form: CsvForm) -> list[str]:
    """The names of the columns; the first line must have as many fields as there are names."""
    text = head.decode("utf-8-sig", "replace")
    lines = io.StringIO(text, newline="")
    for _ in range(form.skip):
        lines.readline()
    try:
        names = next(form.rows(lines), [])
    except csv.Error as error:
        raise origin.error(f"its header cannot be read: {error}") from error
    if not names:
        if form.columns is not None and not form.has_header:
            return list(form.columns)
        raise origin.error("it is empty, not even a header line")
    if form.columns is not None:
        if len(names) != len(form.columns):
            said = f"{len(names)} fields for {len(form.columns)} columns"
            raise origin.error(f"{said}: {', '.join(form.columns)}")
        names = list(form.columns)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise origin.error(f"column {twice[0]!r} is there twice")
    return names


def _only_text(schema: pa.Schema, origin: Origin) -> pa.Schema:
    for field in schema:
        if pa.types.is_binary(field.type):
            raise origin.error(f"column {field.name!r} is not UTF-8 text")
    return schema


class _Reader:
    """Arrow's own reader, except that a row of the wrong length is named by its place."""

    def __init__(
        self,
        stream: pa.NativeFile,
        names: list[str],
        types: dict[str, pa.DataType],
        origin: Origin,
        form: CsvForm,
    ) -> None:
        self._origin, self._form = origin, form
        self._refused: pcsv.InvalidRow | None = None
        with self._naming_rows():
            self._reader = pcsv.open_csv(
                stream,
                # Only one thread at a time knows which row it is at.
                read_options=pcsv.ReadOptions(
                    use_threads=False,
                    block_size=_BLOCK_BYTES,
                    skip_rows=form.skip + (form.has_header and form.columns is not None),
                    column_names=None if form.columns is None else names,
                ),
                parse_options=pcsv.ParseOptions(
                    delimiter=form.delimiter,
                    quote_char=form.quote,
                    double_quote=form.escape is None,
                    escape_char=form.escape or False,
                    newlines_in_values=True,
                    ignore_empty_lines=len(names) > 1,
                    invalid_row_handler=self._refuse,
                ),
                convert_options=pcsv.ConvertOptions(
                    column_types=types,
                    null_values=list(form.nulls),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        self.schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            with self._naming_rows():
                batch = next(self._reader, None)
            if batch is None:
                return
            yield batch

    def _refuse(self, row: pcsv.InvalidRow) -> str:
        # An exception raised in here would be lost.
        self._refused = row
        return "error"

    @contextmanager
    def _naming_rows(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowInvalid as error:
            row = self._refused
            if row is None:
                raise
            before = self._form.skip + self._form.has_header
            where = _place(self._origin, row.number - 1 - before, self._form)
            count = f"{row.actual_columns} fields, the header has {row.expected_columns}"
            raise self._origin.error(f"{where}: {count}") from error


def _typed(
    reader: _Reader, schema: Schema, places: list[int | None], origin: Origin, form: CsvForm
) -> Iterator[pa.RecordBatch]:
    first_row = 0
    fields = [
        (f, place) for f, place in zip(schema.fields, places, strict=True) if place is not None
    ]
    for batch in reader:
        arrays = []
        for field, place in fields:
            try:
                arrays.append(_parsed(batch.column(place), field.type))
            except _Unparsed as error:
                row, value = first_row + error.index, batch.column(place)[error.index].as_py()
                where = f"{origin.name}: {_place(origin, row, form)}"
                raise _mismatch(error, field, short(value), row, where) from None
        yield pa.RecordBatch.from_arrays(arrays, names=[f.name for f, _ in fields])
        first_row += batch.num_rows


class _Unparsed(Exception):
    def __init__(self, index: int, wanted: str) -> None:
        super().__init__(wanted)
        self.index = index


def _parsed(array: pa.Array, kind: Type) -> pa.Array:
    if kind == Primitive("string"):
        return array
    array = pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)
    if is_scalar(kind) and (isinstance(kind, DecimalType) or str(kind) in _CAST):
        return _cast(array, kind)
    return _one_by_one(array, kind)


def _cast(array: pa.Array, kind: Type) -> pa.Array:
    target = arrow_type(kind)
    wanted = _WANTED.get(str(kind), f"a number of type {kind}")
    if str(kind) in INTEGERS:
        hexadecimal = pc.index(pc.match_substring_regex(array, "^-?0[xX]"), True).as_py()
        if hexadecimal >= 0:
            raise _Unparsed(hexadecimal, wanted)

    def cast(part: pa.Array) -> pa.Array:
        if isinstance(kind, DecimalType):
            # Inside decimal128 Arrow overflows without a word.
            part = part.cast(pa.decimal256(76, kind.scale))
        elif kind == Primitive("float"):
            part = _no_overflow(part.cast(pa.float64()))
        return part.cast(target)

    try:
        return cast(array)
    except pa.ArrowInvalid:
        raise _Unparsed(first_refused(array, cast), wanted) from None


def _no_overflow(wide: pa.Array) -> pa.Array:
    if pc.any(pc.not_equal(pc.is_inf(wide), pc.is_inf(wide.cast(pa.float32())))).as_py():
        raise pa.ArrowInvalid("too large for 32 bits")
    return wide


def _one_by_one(array: pa.Array, kind: Type) -> pa.Array:
    convert, found = converter(kind, text=True), []
    read = str if is_scalar(kind) else partial(json.loads, parse_float=Decimal)
    for index, text in enumerate(array.to_pylist()):
        try:
            found.append(None if text is None else convert(read(text)))
        except Refused as refused:
            raise _Unparsed(index, refused.reason.removeprefix("is not ")) from None
        except (ValueError, RecursionError):
            raise _Unparsed(index, f"JSON of type {kind}") from None
    return pa.array(found, arrow_type(kind))


def _mismatch(error: _Unparsed, field: Field, value: str, row: int, where: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"{where}, column {field.name!r}: {value} is not {error}",
        hint=f"correct the field, or give the column another type than {field.type}",
        column=field.name,
        row=row,
        value=value,
        file=where.partition(": row ")[0],
    )


def _place(origin: Origin, row: int, form: CsvForm) -> str:
    """Row and, where the file can be read again, the line it begins on."""
    line = _line_of(origin, row, form) if origin.can_reopen else None
    return f"row {row + 1}" if line is None else f"row {row + 1}, line {line}"


def _line_of(origin: Origin, row: int, form: CsvForm) -> int | None:
    with origin.open() as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", "replace", newline="")
        for _ in range(form.skip):
            text.readline()
        reader = form.rows(text)
        blank_counts = len(form.columns or ()) == 1
        if form.has_header:
            blank_counts = len(next(reader, [])) == 1
        begin, seen = reader.line_num + 1, -1
        for record in reader:
            seen += bool(record) or blank_counts
            if seen == row:
                return begin + form.skip
            begin = reader.line_num + 1
    return None


class _Chained(io.RawIOBase):
    """Bytes that were read already, and then the rest of their stream."""

    def __init__(self, head: bytes, rest: pa.NativeFile) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if len(self._head):
            part, self._head = self._head[:size], self._head[size:]
            return bytes(part)
        return bytes(self._rest.read(size))
