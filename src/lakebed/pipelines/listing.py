"""Which files a pattern means: in local folders by Python, elsewhere by Spark."""

import glob
import re
from collections.abc import Iterator
from pathlib import Path

from lakebed.model.runs import FileMark
from lakebed.pipelines.context import Context
from lakebed.pipelines.inputs import Files

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def list_files(context: Context, step: str, given: Files) -> list[FileMark]:
    """Sorted by path, so that runs see files in one order."""
    if _SCHEME.match(given.pattern) and not given.pattern.startswith("file://"):
        found = _by_spark(context, step, given)
    else:
        pattern = Path(given.pattern.removeprefix("file://"))
        found = _local(context.folder / pattern, step, given)
    return sorted(found, key=lambda mark: mark.path)


def _local(pattern: Path, step: str, given: Files) -> Iterator[FileMark]:
    for name in glob.iglob(str(pattern), recursive=True):  # noqa: PTH207 - takes absolute patterns
        path = Path(name)
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            if file.is_file() and not _is_hidden(file, path):
                stat = file.stat()
                modified_ms = stat.st_mtime_ns // 1_000_000
                yield FileMark(step, given.key, str(file), stat.st_size, modified_ms)


def _is_hidden(file: Path, root: Path) -> bool:
    """As Spark has it: what begins with a dot or an underscore is no data."""
    parts = file.relative_to(root).parts or (file.name,)
    return any(part.startswith((".", "_")) for part in parts)


def _by_spark(context: Context, step: str, given: Files) -> Iterator[FileMark]:
    listed = context.session.read.format("binaryFile").option("recursiveFileLookup", "true")
    rows = listed.load(given.pattern).select("path", "length", "modificationTime").collect()
    for row in rows:
        modified_ms = int(row["modificationTime"].timestamp() * 1000)
        yield FileMark(step, given.key, row["path"], row["length"], modified_ms)
