"""JSON files as batches: lines of objects, an array of objects, or objects one after the other."""

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.json as pjson

from lakebed.engines.arrow.batches import Batches
from lakebed.engines.arrow.origin import Origin
from lakebed.engines.arrow.rows import ROWS_PER_BATCH, convert_rows, short
from lakebed.engines.arrow.types import to_arrow
from lakebed.engines.arrow.values import Refused
from lakebed.model.errors import LakebedError, SchemaMismatch
from lakebed.model.schema import Schema

_BLOCK_BYTES = 4 * 2**20
_SPACE = " \t\r\n"
Numbered = tuple[int, Any]  # the line a value begins on, and the value


def read_json_lines(origin: Origin, schema: Schema | None) -> Batches:
    if schema is not None:
        return Batches(to_arrow(schema), _typed(_lines(origin), schema, origin))
    return _guessed(origin.open(), origin)


def read_json(origin: Origin, schema: Schema | None) -> Batches:
    values = _values(origin)
    if schema is not None:
        return Batches(to_arrow(schema), _typed(values, schema, origin))
    return _guessed(pa.PythonFile(_AsLines(values), mode="r"), origin)


def _guessed(stream: pa.NativeFile, origin: Origin) -> Batches:
    """Types as the values show them. JSON has no times: text stays text, whatever it looks like.

    Arrow would make naive timestamps of some texts, even of those that name a zone.
    """
    read = pjson.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES)
    with origin.failures():
        head = stream.read(_BLOCK_BYTES)
        whole = head[: head.rfind(b"\n") + 1] or head
        shown = pjson.read_json(pa.BufferReader(whole), read_options=read).schema
        texts = [f.with_type(_as_text(f.type)) for f in shown if _as_text(f.type) != f.type]
        parse = pjson.ParseOptions(explicit_schema=pa.schema(texts) if texts else None)
        chained = pa.PythonFile(_Chained(head, stream), mode="r")
        reader = pjson.open_json(chained, read_options=read, parse_options=parse)
    return Batches(reader.schema, reader)


def _as_text(kind: pa.DataType) -> pa.DataType:
    """The type with text in place of every timestamp."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_as_text(f.type)) for f in kind])
    return kind


def _typed(values: Iterator[Numbered], schema: Schema, origin: Origin) -> Iterator[pa.RecordBatch]:
    while chunk := list(islice(values, ROWS_PER_BATCH)):
        lines = [line for line, _ in chunk]

        def complain(
            index: int, path: str, refused: Refused, value: object, lines: list[int] = lines
        ) -> LakebedError:
            column = f", column {path!r}" if path else ""
            return SchemaMismatch(
                f"{origin.name}: line {lines[index]}{column}: {short(value)} {refused.reason}",
                hint=refused.hint,
                column=path,
                line=lines[index],
                value=short(value),
                file=origin.name,
            )

        yield convert_rows([row for _, row in chunk], schema, complain=complain, text=True)


def _lines(origin: Origin) -> Iterator[Numbered]:
    with origin.open() as stream:
        number, rest = 0, b""
        while block := stream.read(_BLOCK_BYTES):
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                number += 1
                if line.strip():
                    yield number, _loads(line, number, origin)
        if rest.strip():
            yield number + 1, _loads(rest, number + 1, origin)


def _loads(line: bytes, number: int, origin: Origin) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"), parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise origin.error(f"line {number} is no JSON: {error}") from error


def _values(origin: Origin) -> Iterator[Numbered]:
    """The elements of a top-level array, or the top-level values themselves."""
    with origin.open() as stream:
        text = _Text(stream, origin)
        if text.peek() != "[":
            while text.peek():
                yield text.line, text.value()
            return
        text.skip("[")
        while text.peek() != "]":
            yield text.line, text.value()
            if text.peek() != "]":
                text.skip(",")
        text.skip("]")
        if text.peek():
            raise origin.error(f"line {text.line}: there is more after the array")


class _Text:
    """A stream of JSON text of which only as much is held as the next value needs."""

    def __init__(self, stream: pa.NativeFile, origin: Origin) -> None:
        self._stream = io.TextIOWrapper(stream, "utf-8-sig", newline="")
        self._origin = origin
        self._decoder = json.JSONDecoder(parse_float=Decimal)
        self._text, self._at = "", 0
        self._ended = False
        self.line = 1

    def peek(self) -> str:
        """The next character that is no white space; "" at the end."""
        while True:
            while self._at < len(self._text):
                char = self._text[self._at]
                if char not in _SPACE:
                    return char
                self._move(self._at + 1)
            if self._ended:
                return ""
            self._more(_BLOCK_BYTES)

    def skip(self, char: str) -> None:
        found = self.peek()
        if found != char:
            what = repr(found) if found else "the end"
            raise self._origin.error(f"line {self.line}: {what} where {char!r} is needed")
        self._move(self._at + 1)

    def value(self) -> Any:
        self.peek()
        size = _BLOCK_BYTES
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if self._ended:
                    reason = f"line {self.line}: no whole JSON value begins here: {error}"
                    raise self._origin.error(reason) from error
            else:
                # A number may go on in the next block.
                if end < len(self._text) or self._ended:
                    self._move(end)
                    return value
            self._more(size)
            size *= 2

    def _move(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self, size: int) -> None:
        try:
            block = self._stream.read(size)
        except UnicodeDecodeError as error:
            raise self._origin.error(f"it is not UTF-8: {error}") from error
        self._ended = not block
        self._text, self._at = self._text[self._at :] + block, 0


class _AsLines(io.RawIOBase):
    """Values written out one per line, for Arrow's own reader of lines."""

    def __init__(self, values: Iterator[Numbered]) -> None:
        self._values = values
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._waiting) < size:
            following = list(islice(self._values, 100))
            if not following:
                break
            lines = (json.dumps(value, default=float) for _, value in following)
            self._waiting += "".join(line + "\n" for line in lines).encode()
        size = len(self._waiting) if size < 0 else size
        part, self._waiting = self._waiting[:size], self._waiting[size:]
        return part


class _Chained(io.RawIOBase):
    """What was read ahead, then the rest of the stream."""

    def __init__(self, head: bytes, rest: pa.NativeFile) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return bytes(self._rest.read(size if size >= 0 else None))
        size = len(self._head) if size < 0 else size
        part, self._head = self._head[:size], self._head[size:]
        return part
