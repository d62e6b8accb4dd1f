"""From what a user types to a storage: a folder, memory or an object store; does no I/O."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from lakebed.model.errors import InvalidInput, InvalidUri, MissingExtra
from lakebed.storage.base import Storage
from lakebed.storage.cache.blocks import BlockCache
from lakebed.storage.local import LocalStorage
from lakebed.storage.memory import open_memory
from lakebed.storage.place import SCHEMES, parse_place

# One letter before the colon is a drive of Windows, not a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_MEMORY_NAME = re.compile(r"[A-Za-z0-9_-]*")


def open_storage(
    uri_or_path: str,
    options: Mapping[str, str] | None = None,
    *,
    cache: BlockCache | None = None,
) -> Storage:
    """The storage at a local path, `file:///folder`, `memory://name`, or in an object store.

    Raises InvalidUri for any other scheme. A missing folder is made by the first write. Options
    and cache are for object stores alone; what options do not say comes from the environment.
    """
    scheme = _SCHEME.match(uri_or_path)
    if is_object_store(uri_or_path):
        return _open_objects(uri_or_path, options or {}, cache)
    if options:
        raise InvalidInput(
            "storage options are for object stores",
            hint="leave them out, or use a warehouse like s3://bucket/prefix",
        )
    if scheme is None:
        return LocalStorage(_bare_path(uri_or_path))
    match scheme[1].lower():
        case "file":
            return LocalStorage(_file_path(uri_or_path))
        case "memory":
            return open_memory(_memory_name(uri_or_path))
        case other:
            raise InvalidUri(
                f"data cannot be stored there: the scheme {other!r} is not supported",
                hint=f"Use a local folder, file:///folder, memory:// or an object store "
                f"({', '.join(f'{name}://' for name in SCHEMES)}). "
                "A folder whose name has a colon is written ./a:b",
                scheme=other,  # not the URI: it may hold a password
            )


def is_object_store(uri: str) -> bool:
    scheme = _SCHEME.match(uri)
    return scheme is not None and scheme[1].lower() in SCHEMES


def root_uri_of(uri_or_path: str) -> str:
    """What `open_storage` would give as root_uri; needs no keys, and no library for objects."""
    if is_object_store(uri_or_path):
        return parse_place(uri_or_path).uri
    return open_storage(uri_or_path).root_uri


def _open_objects(uri: str, options: Mapping[str, str], cache: BlockCache | None) -> Storage:
    place = parse_place(uri)
    try:
        from lakebed.storage.objects.storage import ObjectStorage
    except ImportError as error:
        raise MissingExtra(
            "the object store library is not installed", hint="pip install 'lakebed[objects]'"
        ) from error
    return ObjectStorage(place, options, cache=cache)


def _bare_path(path: str) -> Path:
    if not path or "\0" in path or path.startswith(":"):
        raise _malformed(path, "Give a folder, file:///folder or memory://")
    return Path(path)


def _file_path(uri: str) -> Path:
    parts = _split(uri)
    if parts.netloc.lower() not in ("", "localhost"):
        raise _malformed(uri, "A file URI has three slashes: file:///folder")
    if not parts.path.startswith("/"):
        raise _malformed(uri, "A file URI is absolute: file:///folder")
    if "?" in uri or "#" in uri:
        raise _malformed(uri, "Write ? as %3F and # as %23")
    if _BAD_ESCAPE.search(parts.path):
        raise _malformed(uri, "Write % as %25")
    path = os.fsdecode(unquote_to_bytes(parts.path))
    return Path(path.lstrip("/") if os.name == "nt" else path)


def _memory_name(uri: str) -> str:
    name = uri[len("memory:") :].removeprefix("//")
    if not _MEMORY_NAME.fullmatch(name):
        raise _malformed(uri, "A memory URI is memory:// or memory://name (letters, digits, _ -)")
    return name


def _split(uri: str) -> SplitResult:
    if any(ord(char) < ord(" ") for char in uri):
        # The parser would silently drop some of them.
        raise _malformed(uri, "Percent-encode control characters")
    try:
        return urlsplit(uri)
    except ValueError as error:
        raise _malformed(uri, "Use file:///folder") from error


def _malformed(uri: str, hint: str) -> InvalidUri:
    return InvalidUri(f"{uri!r} is not a place for a warehouse", hint=hint, uri=uri)
