"""DuckDB's errors as ours: by the words they begin with, since a stream gives the text alone."""

import difflib
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
    ObjectMissing,
    QueryError,
    QueryInterrupted,
    QueryOutOfMemory,
    SqlColumnUnknown,
    SqlError,
    SqlNameAmbiguous,
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
    "Binder Error": (SqlError, "correct the query"),
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
_MISSING = "`lakebed check` names every file a table has lost; an older version may be whole"
_PATTERNS: tuple[tuple[str, type[LakebedError], str], ...] = (
    (r"^Ambiguous reference", SqlNameAmbiguous, "say of which relation it is: relation.column"),
    (
        r"^No function matches|^Could not choose|^Cannot (compare|combine|mix|cast)|explicit cast",
        SqlTypeMismatch,
        "cast the operands to types that fit",
    ),
    (r"Division by zero", DivisionByZero, "divide by nullif(x, 0) to get NULL"),
    (
        r"cannot take (square root|logarithm)|undefined|out of range for numeric function",
        ValueOutOfRange,
        "leave such values out, or say with CASE what they give",
    ),
    (r"Values were not provided|Parameter argument", SqlParameters, "give a value for each"),
    (
        r"cannot contain aggregates",
        SqlError,
        "here is one row at a time: write a subquery, as in (SELECT sum(x) FROM t)",
    ),
    (r"No magic bytes|too small to be a Parquet|[Cc]orrupt", DataCorrupt, "run `lakebed check`"),
    (r"No files found that match|Cannot open file .*No such file", ObjectMissing, _MISSING),
    (r"No space left", StorageFull, "make room on the disk that query.spill-folder is on"),
    (r"disabled (?:by|through) configuration", Forbidden, _KINDS["Permission Error"][1]),
    (r"configuration has been locked", Forbidden, "settings of a query are those of the lake"),
)
_COLUMN = re.compile(
    r'column "([^"]+)" (?:(?:was )?not found|that exists)'
    r'|have a column named "([^"]+)"|key "([^"]+)" in'
)
_CANDIDATES = re.compile(r"(?:Candidate (?:bindings|Entries): :? ?|Did you mean )([^\n?]+)\??")
_PLACE = re.compile(r"\n\nLINE (\d+): ([^\n]*)\n( *)\^*")
_OURS = ("_file", "_pos")  # columns of relations in which rows are found
# What DuckDB adds that does not hold here, or is too much.
_NOISE = re.compile(r"\n\tCandidate functions:.*|\. Use TRY\(\.\.\.\).*", re.DOTALL)


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
    kind, hint = _kind(head, body)
    context: dict[str, object] = {}
    place = _place(message, text)
    if place is not None:
        context = {"line": place[0], "character": place[1]}
    column = _COLUMN.search(body) if head == "Binder Error" else None
    if column is not None:
        context["column"] = column[1] or column[2] or column[3]
        kind, hint = SqlColumnUnknown, _did_you_mean(str(context["column"]), body)
    elif kind is SqlNameUnknown:
        hint = _other_name(body)
    where = f"line {place[0]}, column {place[1]}: " if place else ""
    said = _NOISE.sub("", _CANDIDATES.sub("", _PLACE.sub("", body))).strip()
    return kind(f"{where}{said}", hint=hint, **context)


def _did_you_mean(name: str, body: str) -> str:
    found = _CANDIDATES.search(body)
    names = [n for n in re.findall(r'"([^"]+)"', found[1]) if n not in _OURS] if found else []
    close = difflib.get_close_matches(name.casefold(), [n.casefold() for n in names], n=1)
    if close:
        return f"did you mean {next(n for n in names if n.casefold() == close[0])}?"
    return f"such names are: {', '.join(names)}" if names else "check the column's name"


def _other_name(body: str) -> str:
    found = _CANDIDATES.search(body)
    name = found[1].strip('"') if found else ""
    # Tables are known by other names outside, and those of DuckDB itself are no help.
    is_ours = name and not body.startswith("Table ") and not name.startswith(("pg_", "duckdb_"))
    return f"did you mean {name}?" if is_ours else "check the name"


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
