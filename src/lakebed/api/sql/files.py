"""Which files COPY may touch: those inside the folders that the caller allowed, links followed."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from lakebed.api.sql.context import Context, Values
from lakebed.model.errors import (
    Forbidden,
    InvalidInput,
    StorageError,
    StorageFull,
    UnreadableInput,
)
from lakebed.sql.query import Parameter
from lakebed.storage.local import LocalStorage

_PATTERN = re.compile(r"[*?\[]")
_DATABASE = "lakebed.db"  # and files beside it that begin so
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def files_to_read(context: Context, given: str | Parameter, values: Values) -> list[str]:
    """The file of that path, or those of a pattern such as `in/*.csv`; each one is allowed."""
    path = _path(given, values)
    if path.exists():
        return [str(_allowed(context, path))]
    folder = _allowed(context, path.parent)  # whoever reads a path that is not there would search
    found = list[Path]()
    if _PATTERN.search(path.name) and folder.is_dir():
        found = sorted(p for p in folder.glob(path.name) if p.is_file() and p.name[0] != ".")
    if not found:
        raise UnreadableInput(
            f"{path}: there is no such file",
            hint="check the path; its last part may be a pattern such as *.csv",
            file=str(path),
        )
    return [str(_allowed(context, each)) for each in found]


def file_to_write(context: Context, given: str | Parameter, values: Values) -> Path:
    path = _allowed(context, _path(given, values))
    storage = context.parts.storage
    inside = isinstance(storage, LocalStorage) and path.is_relative_to(
        Path(storage.location("")).resolve()
    )
    if inside or path.name.startswith(_DATABASE):
        raise Forbidden(f"{path} belongs to a lake", hint="choose another file", path=str(path))
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}", hint="make it first")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder", hint="name a file inside it")
    return path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file to write that takes the place of `path` at the end; of a failure nothing is left."""
    part = path.with_name(f".{uuid4().hex}.part")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        kind = StorageFull if error.errno in _FULL else StorageError
        raise kind(
            f"{path} cannot be written: {error.strerror or error}",
            hint="check the folder, its permissions and the room on the disk",
            path=str(path),
        ) from error
    finally:
        part.unlink(missing_ok=True)


def _path(given: str | Parameter, values: Values) -> Path:
    text = values[given.name] if isinstance(given, Parameter) else given
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidInput(f"{text!r} is no path", hint="write COPY … 'folder/file.csv'")
    return Path(text)


def _allowed(context: Context, given: Path) -> Path:
    try:
        path = given.resolve()
        folders = [folder.resolve() for folder in context.allow_files]
    except (OSError, RuntimeError) as error:  # links that lead in a circle
        raise InvalidInput(f"{given} is no path: {error}", hint="check its links") from error
    if not any(path.is_relative_to(folder) for folder in folders):
        shown = ", ".join(str(f) for f in folders)
        raise Forbidden(
            f"COPY may not touch {path}",
            hint=f"it may touch files in: {shown}" if shown else "pass allow_files=[folder]",
            path=str(path),
        )
    return path
