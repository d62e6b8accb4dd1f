"""DuckDB's errors as ours: by the words they begin with, since a stream gives the text alone."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from lakebed.model.errors import (
    ConversionFailed,
    DataCorrupt,
    DivisionByZero,
    Forbidden,
    LakebedError,
    QueryError,
    QueryInterrupted,
    QueryOutOfMemory,
    SqlColumnUnknown,
    SqlError,
    SqlNameUnknown,
    SqlParameters,
    SqlTypeMismatch,
    SqlUnsupported,
    StorageError,
    StorageFull,
    ValueOutOfRange,
)

_Kind = tuple[type[LakebedError], str]
_KINDS: dict[str, _Kind] = {
    "Parser Error": (SqlError, "correct the text at the place shown"),
    "Binder Error": (SqlTypeMismatch, "cast the operands to types that fit"),
    "Catalog Error": (SqlNameUnknown, "check the name"),
    "Conversion Error": (ConversionFailed, "TRY_CAST gives NULL for values that do not fit"),
    "Out of Range Error": (ValueOutOfRange, "cast to a wider type before"),
    "Out of Memory Error": (
        QueryOutOfMemory,
        "raise query.memory-limit, or check the room in query.spill-folder",
    ),
    "INTERRUPT Error": (QueryInterrupted, "run it again"),
    "Permission Error": (Forbidden, "queries read the lake's tables and nothing else"),
    "Not implemented Error": (SqlUnsupported, "write it in another way"),
    "IO Error": (StorageError, "check the disk or mount that holds the warehouse"),
}
_PATTERNS: tuple[tuple[str, type[LakebedError], str], ...] = (
    (r"Division by zero", DivisionByZero, "divide by nullif(x, 0) to get NULL"),
    (r"Values were not provided|parameter|Parameter", SqlParameters, "give a value for each"),
    (r"No magic bytes|too small to be a Parquet|Corrupt|corrupt", DataCorrupt, "`lakebed check`"),
    (r"No space left", StorageFull, "make room on the disk that query.spill-folder is on"),
    (r"disabled (?:by|through) configuration", Forbidden, _KINDS["Permission Error"][1]),
    (r"configuration has been locked", Forbidden, "settings of a query are those of the lake"),
)
_COLUMN = re.compile(r'column "([^"]+)" (?:not found|that exists)|"([^"]+)" does not have a column')
_CANDIDATES = re.compile(r"Candidate bindings: (.+)|Did you mean (\"[^\"]+\")")
_PLACE = re.compile(r"\n\nLINE (\d+): (.*)\n( *)\^", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Text:
    """The SQL that ran, and how many lines of ours stand before the caller's."""

    sql: str
    lines_before: int = 0


@contextmanager
def translated(text: Text) -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise to_error(str(error), text) from error
    except (pa.ArrowException, OSError, RuntimeError) as error:
        if not re.match(r"[A-Za-z ]+ Error: ", str(error)):
            raise
        raise to_error(str(error), text) from error


def to_error(message: str, text: Text) -> LakebedError:
    head, _, body = message.partition(": ")
    said = _PLACE.sub("", body).strip().split("\n\nLINE ")[0]
    kind, hint = _kind(head, body)
    context: dict[str, object] = {}
    place = _place(message, text)
    if place is not None:
        context = {"line": place[0], "character": place[1]}
    column = _COLUMN.search(body)
    if column is not None and head == "Binder Error":
        kind, hint = SqlColumnUnknown, "check the column's name"
        context["column"] = column[1] or column[2]
    candidates = _CANDIDATES.search(said)
    if candidates is not None:
        hint = f"did you mean {candidates[1] or candidates[2]}?"
        said = said[: candidates.start()].strip()
    where = f"line {place[0]}, column {place[1]}: " if place else ""
    return kind(f"{where}{said}", hint=hint, **context)


def _kind(head: str, body: str) -> _Kind:
    for pattern, kind, hint in _PATTERNS:
        if re.search(pattern, body):
            return kind, hint
    return _KINDS.get(head, (QueryError, "correct the query"))


def _place(message: str, text: Text) -> tuple[int, int] | None:
    """Line and column in the caller's text; DuckDB shows a part of a long line."""
    found = _PLACE.search(message)
    if found is None:
        return None
    number = int(found[1])
    lead = len(f"LINE {found[1]}: ")
    column = len(found[3]) - lead
    shown = found[2]
    lines = text.sql.split("\n")
    if shown.startswith("...") and number <= len(lines):
        at = lines[number - 1].find(shown[3:].removesuffix("..."))
        column = column - 3 + at if at >= 0 else 0
    return number - text.lines_before, max(column, 0) + 1
