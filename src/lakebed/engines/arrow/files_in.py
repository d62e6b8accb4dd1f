"""Files named by paths and globs as one stream of batches; what cannot be read is named."""

import re
from collections.abc import Callable, Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.engines.arrow.batches import Batches
from lakebed.engines.arrow.conform import BATCH_ROWS
from lakebed.engines.arrow.csv_in import PLAIN, CsvForm, read_csv
from lakebed.engines.arrow.json_in import read_json, read_json_lines
from lakebed.engines.arrow.origin import Origin
from lakebed.model.errors import InvalidInput, UnreadableInput
from lakebed.model.schema import Schema

_SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_CODECS = {".gz": "gzip", ".zst": "zstd"}
_ALIASES = {"ndjson": "jsonl", "feather": "arrow", "ipc": "arrow"}
_FILE_MAGIC = b"ARROW1"
_GLOB = re.compile(r"[*?\[]")
Name = str | PathLike[str]


def read_files(
    paths: Name | Iterable[Name],
    *,
    format: str | None = None,
    schema: Schema | None = None,
    stdin: BinaryIO | None = None,
    csv: CsvForm = PLAIN,
) -> Batches:
    """All files in the order given, matches of a glob sorted by name; "-" is standard input.

    The format comes from the suffix (.gz and .zst are undone for CSV and JSON) unless it is given.
    With a schema, CSV and JSON are read as its types; without, types are guessed file by file.
    """
    names = [paths] if isinstance(paths, str | PathLike) else list(paths)
    origins = [_with_codec(found) for found in _found(names, stdin)]
    if not origins:
        raise UnreadableInput("no files were given", hint="name at least one file, or - for stdin")
    # Checked for all before the first is read.
    formats = [_format(origin, format) for origin in origins]
    first = _opened(origins[0], formats[0], schema, csv)

    def everything() -> Iterator[pa.RecordBatch]:
        yield from first
        for origin, kind in zip(origins[1:], formats[1:], strict=True):
            yield from _opened(origin, kind, schema, csv)

    return Batches(first.schema, everything())


def _found(names: list[Name], stdin: BinaryIO | None) -> Iterator[Origin]:
    seen: set[Path] = set()
    for name in names:
        text = fspath(name)
        if text == "-":
            if stdin is None:
                raise UnreadableInput("there is no standard input to read", hint="name a file")
            yield Origin("standard input", None, stdin)
            continue
        is_pattern = bool(_GLOB.search(text)) and not Path(text).exists()
        for path in _matches(text) if is_pattern else [_one(text)]:
            # A file that a glob finds again is not read twice.
            if not (is_pattern and path in seen):
                yield Origin(str(path), path)
            seen.add(path)


def _one(text: str) -> Path:
    path = Path(text)
    if path.is_dir():
        raise UnreadableInput(
            f"{text} is a folder", hint=f"name its files, for example '{text}/*.csv'", file=text
        )
    if not path.exists():
        hint = "check the path; files on object stores must be copied here first"
        raise UnreadableInput(f"{text}: there is no such file", hint=hint, file=text)
    return path


def _matches(pattern: str) -> list[Path]:
    path = Path(pattern)
    base = Path(path.anchor) if path.anchor else Path()
    rest = str(path.relative_to(path.anchor)) if path.anchor else pattern
    hidden_too = path.name.startswith(".")
    found = sorted(
        p for p in base.glob(rest) if p.is_file() and (hidden_too or not p.name.startswith("."))
    )
    if not found:
        raise UnreadableInput(
            f"no file matches {pattern!r}", hint="check the pattern and the folder", file=pattern
        )
    return found


def _with_codec(origin: Origin) -> Origin:
    suffix = origin.path.suffix.lower() if origin.path else ""
    return Origin(origin.name, origin.path, origin.stdin, _CODECS.get(suffix))


def _format(origin: Origin, given: str | None) -> str:
    if given is not None:
        found = _ALIASES.get(given.lower(), given.lower())
        if found not in _READERS:
            raise InvalidInput(f"format {given!r} is not known", hint=f"use {', '.join(_READERS)}")
        return found
    name = Path(origin.path.stem if origin.codec and origin.path else origin.path or "")
    if name.suffix.lower() not in _SUFFIXES:
        raise UnreadableInput(
            f"{origin.name}: the format cannot be told from the name",
            hint=f"give the format: {', '.join(_READERS)}",
            file=origin.name,
        )
    return _SUFFIXES[name.suffix.lower()]


def _opened(origin: Origin, format: str, schema: Schema | None, csv: CsvForm) -> Batches:
    with origin.failures():
        is_csv = format == "csv"
        found = read_csv(origin, schema, csv) if is_csv else _READERS[format](origin, schema)
    return Batches(found.schema, origin.guarded(found.__iter__))


def _read_parquet(origin: Origin, schema: Schema | None) -> Batches:
    # The annotation of a uuid matters only for a guess, and Arrow cannot build every nesting of it.
    annotated = schema is None
    file = pq.ParquetFile(origin.open_seekable(), arrow_extensions_enabled=annotated)
    return Batches(file.schema_arrow, file.iter_batches(BATCH_ROWS))


def _read_arrow(origin: Origin, _schema: Schema | None) -> Batches:
    source = origin.open_seekable()
    is_file = source.read(len(_FILE_MAGIC)) == _FILE_MAGIC
    source.seek(0)
    if not is_file:
        reader = pa.ipc.open_stream(source)
        return Batches(reader.schema, reader)
    file = pa.ipc.open_file(source)
    return Batches(file.schema, (file.get_batch(i) for i in range(file.num_record_batches)))


_READERS: dict[str, Callable[[Origin, Schema | None], Batches]] = {
    "csv": read_csv,
    "json": read_json,
    "jsonl": read_json_lines,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
}
