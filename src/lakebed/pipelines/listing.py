"""Which files a pattern means, one after the other: in local folders by Python, else by Spark."""

import glob
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from lakebed.model.runs import FileMark
from lakebed.pipelines.context import Context
from lakebed.pipelines.inputs import Files

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_WILDCARD = re.compile(r"[*?\[]")
_HIDDEN = (".", "_")  # as Spark has it: what begins so is no data


def list_files(context: Context, step: str, given: Files) -> Iterator[FileMark]:
    """In no order; a file may come twice where a pattern matches it and its folder."""
    if _SCHEME.match(given.pattern) and not given.pattern.startswith("file://"):
        return _by_spark(context, step, given)
    return _local(str(Path(given.pattern.removeprefix("file://"))), context.folder, step, given)


def _local(pattern: str, folder: Path, step: str, given: Files) -> Iterator[FileMark]:
    first = _WILDCARD.search(pattern)
    named = len(pattern) if first is None else pattern.rfind("/", 0, first.start()) + 1
    matched = glob.iglob(pattern, root_dir=folder, recursive=True)  # noqa: PTH207 - absolute ones too
    for name in matched:
        if any(part.startswith(_HIDDEN) for part in name[named:].split("/")):
            continue  # what the pattern names, up to its first wildcard, is meant
        path = str(folder / name)
        try:
            found = os.stat(path)  # noqa: PTH116 - there may be very many
        except FileNotFoundError:
            continue  # it has gone meanwhile
        if stat.S_ISDIR(found.st_mode):
            yield from _inside(path, step, given)
        elif stat.S_ISREG(found.st_mode):
            yield _mark(path, found, step, given)


def _inside(folder: str, step: str, given: Files) -> Iterator[FileMark]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_HIDDEN):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _inside(entry.path, step, given)
            elif entry.is_file():
                try:
                    yield _mark(entry.path, entry.stat(), step, given)
                except FileNotFoundError:
                    continue


def _mark(path: str, found: os.stat_result, step: str, given: Files) -> FileMark:
    return FileMark(step, given.key, path, found.st_size, found.st_mtime_ns // 1_000_000)


def _by_spark(context: Context, step: str, given: Files) -> Iterator[FileMark]:
    listed = context.session.read.format("binaryFile").option("recursiveFileLookup", "true")
    rows = listed.load(given.pattern).select("path", "length", "modificationTime")
    for row in rows.toLocalIterator():
        modified_ms = int(row["modificationTime"].timestamp() * 1000)
        yield FileMark(step, given.key, row["path"], row["length"], modified_ms)
