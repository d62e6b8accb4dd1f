"""COPY between tables and files; which folders may be used is decided where it runs."""

from lakebed.model.quoting import quoted
from lakebed.sql.dml import read_target
from lakebed.sql.fragments import Fragments
from lakebed.sql.query import Parameter, Reference, Select
from lakebed.sql.reader import Reader
from lakebed.sql.statements import CopyFrom, CopyTo, Target, Value
from lakebed.sql.values import read_value

_FORMATS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
}
Options = tuple[tuple[str, Value], ...]


def read_copy(reader: Reader) -> CopyFrom | CopyTo:
    reader.expect("COPY")
    if reader.take("INTO"):
        return _copy_from(reader, read_target(reader, aliased=False))
    if reader.sees("("):
        start, end = reader.skip_until("TO", "FROM")
        return _copy_to(reader, Fragments(reader).select(start + 1, end - 1))
    target = read_target(reader, aliased=False)
    columns = None
    if reader.sees("("):
        columns = tuple(reader.listed(lambda: reader.path("a column")))
    if reader.sees("TO"):
        return _copy_to(reader, _rows_of(reader, target, columns))
    return _copy_from(reader, target, columns)


def _rows_of(reader: Reader, target: Target, columns: tuple[tuple[str, ...], ...] | None) -> Select:
    name = Fragments(reader).placeholder()
    shown = ", ".join(".".join(map(quoted, path)) for path in columns or ()) or "*"
    reference = Reference(name, target.name, target.span, target.alias, branch=target.branch)
    sql = " ".join(("SELECT", shown, "FROM", quoted(name)))
    text = reader.source.text[target.span.start : target.span.end]
    return Select(sql, target.span, (reference,), (), text)


def _copy_from(
    reader: Reader, target: Target, columns: tuple[tuple[str, ...], ...] | None = None
) -> CopyFrom:
    reader.expect("FROM")
    path = _path(reader)
    written, options = _options(reader)
    return CopyFrom(target, reader.span, path, written or format_of(path), columns, options)


def _copy_to(reader: Reader, source: Select) -> CopyTo:
    reader.expect("TO")
    path = _path(reader)
    written, options = _options(reader)
    return CopyTo(source, reader.span, path, written or format_of(path), options)


def _path(reader: Reader) -> str | Parameter:
    return reader.parameter() or reader.text("the path of a file in single quotes")


def format_of(path: str | Parameter) -> str | None:
    """By the end of the name; None when that says nothing."""
    name = path.lower() if isinstance(path, str) else ""
    for ending in (".gz", ".zst"):
        name = name.removesuffix(ending)
    return next((known for ending, known in _FORMATS.items() if name.endswith(ending)), None)


def _options(reader: Reader) -> tuple[str | None, Options]:
    """`(FORMAT csv, HEADER true)`, `WITH (…)`, or `FILEFORMAT = PARQUET FORMAT_OPTIONS (…)`."""
    written: str | None = None
    found: list[tuple[str, Value]] = []
    if reader.take("FILEFORMAT"):
        reader.take("=")
        written = _word(reader).lower()
        if reader.take("FORMAT_OPTIONS"):
            found = reader.listed(lambda: _option(reader))
    elif reader.take("WITH") or reader.sees("("):
        found = reader.listed(lambda: _option(reader))
    reader.expect_end()
    options = []
    for name, value in found:
        if name == "format":
            written = str(value).lower()
        else:
            options.append((name, value))
    return written, tuple(options)


def _option(reader: Reader) -> tuple[str, Value]:
    name = _word(reader).lower()
    reader.take("=")
    if reader.peek().upper in (",", ")"):
        return name, True
    if reader.peek().kind == "word" and reader.peek().upper not in ("TRUE", "FALSE", "NULL"):
        return name, _word(reader)
    return name, read_value(reader)


def _word(reader: Reader) -> str:
    return reader.text() if reader.peek().kind == "string" else reader.name("an option")
