"""A warehouse in the memory of this process, with the semantics of the others."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Lock
from uuid import uuid4
from weakref import WeakValueDictionary

import pyarrow as pa

from lakebed.model.errors import ObjectMissing
from lakebed.storage.base import Bundle, Output, Stat, safe_path, safe_prefix
from lakebed.storage.loose_bundle import LooseBundle
from lakebed.storage.output import WholeOutput, taken


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    modified_ms: int


class MemoryStorage:
    def __init__(self, name: str) -> None:
        self._root_uri = f"memory://{name}"
        self._objects: dict[str, _Object] = {}
        self._lock = Lock()

    @property
    def root_uri(self) -> str:
        return self._root_uri

    def location(self, path: str) -> str:
        return f"{self._root_uri}/{safe_path(path)}" if path else self._root_uri

    def get(self, path: str) -> bytes:
        found = self._objects.get(safe_path(path))
        if found is None:
            raise ObjectMissing(
                f"cannot read {path!r}: no such object in {self._root_uri}",
                hint="It was removed or never written; memory is not shared between processes.",
                path=path,
            )
        return found.data

    def open_input(
        self,
        path: str,
        *,
        size_bytes: int | None = None,  # noqa: ARG002 - memory needs no cache
    ) -> pa.NativeFile:
        return pa.BufferReader(self.get(path))

    def open_output(self, path: str) -> Output:
        if safe_path(path) in self._objects:
            raise taken(path)
        return WholeOutput(path, _MemoryDraft(self, path))

    def put_if_absent(
        self,
        path: str,
        data: bytes,
        *,
        modified_ms: int | None = None,
    ) -> bool:
        new = _Object(bytes(data), _now_ms() if modified_ms is None else modified_ms)
        with self._lock:
            return self._objects.setdefault(safe_path(path), new) is new

    def replace(self, path: str, data: bytes) -> None:
        with self._lock:
            self._objects[safe_path(path)] = _Object(bytes(data), _now_ms())

    def bundle(self, named: Callable[[str], None]) -> AbstractContextManager[Bundle]:
        return nullcontext(LooseBundle(self, named))

    def list(self, prefix: str) -> Iterator[Stat]:
        folder = safe_prefix(prefix)
        start = f"{folder}/" if folder else ""
        with self._lock:
            found = sorted(path for path in self._objects if path.startswith(start))
        stats = map(self.stat, found)
        return (each for each in stats if each is not None)

    def stat(self, path: str) -> Stat | None:
        found = self._objects.get(safe_path(path))
        return None if found is None else Stat(path, len(found.data), found.modified_ms)

    def delete(self, path: str) -> None:
        with self._lock:
            self._objects.pop(safe_path(path), None)

    def delete_folder(self, path: str) -> None:
        start = safe_path(path) + "/"
        with self._lock:
            for each in [p for p in self._objects if p.startswith(start)]:
                del self._objects[each]


class _MemoryDraft:
    def __init__(self, storage: MemoryStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._data = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> int:
        view = memoryview(data)
        self._data += view
        return view.nbytes

    def finish(self) -> bool:
        return self._storage.put_if_absent(self._path, bytes(self._data))

    def discard(self) -> None:
        self._data.clear()


def open_memory(name: str) -> MemoryStorage:
    """The storage of this name, the same one while anybody holds it; "" makes a new one."""
    with _OPEN_LOCK:
        storage = _OPEN.get(name) if name else None
        if storage is None:
            name = name or uuid4().hex
            storage = _OPEN[name] = MemoryStorage(name)
        return storage


_OPEN_LOCK = Lock()
_OPEN: WeakValueDictionary[str, MemoryStorage] = WeakValueDictionary()


def _now_ms() -> int:
    # The part of the file system's clock, which gives files their times elsewhere.
    return time.time_ns() // 1_000_000
