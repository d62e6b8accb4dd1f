"""A warehouse below a prefix of a bucket: no renames, no folders, and no listing to find a file."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from operator import attrgetter

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from lakebed.model.errors import InvalidName, ObjectMissing
from lakebed.storage.base import (
    Bundle,
    Output,
    Stat,
    is_safe_name,
    safe_path,
    safe_prefix,
)
from lakebed.storage.cache.blocks import BlockCache
from lakebed.storage.failures import Action
from lakebed.storage.loose_bundle import LooseBundle
from lakebed.storage.objects.cached import cached_ranges, is_given_once
from lakebed.storage.objects.connect import connect
from lakebed.storage.objects.draft import ObjectDraft
from lakebed.storage.objects.failures import Failures, is_answered, translated
from lakebed.storage.objects.ranges import ObjectAt, StoreRanges
from lakebed.storage.objects.reader import RangeReader
from lakebed.storage.objects.repeat import attempts
from lakebed.storage.output import WholeOutput, taken
from lakebed.storage.place import Place

# Longer than a store's usual bad moment, shorter than a person's patience.
RETRY_S = 60.0
_PAGE = 1000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class ObjectStorage:
    def __init__(
        self,
        place: Place,
        options: Mapping[str, str] | None = None,
        *,
        retry_s: float = RETRY_S,
        cache: BlockCache | None = None,
    ) -> None:
        self._place = place
        self._below = f"{place.prefix}/" if place.prefix else ""
        self._retry_s = retry_s
        self._cache = cache
        self._client, self._once = connect(place, options or {}, retry_s=retry_s)

    @property
    def root_uri(self) -> str:
        return self._place.uri

    def location(self, path: str) -> str:
        return f"{self._place.uri}/{safe_path(path)}" if path else self._place.uri

    def get(self, path: str) -> bytes:
        key = self._key(path)
        with self._failures("read", path):
            return bytes(obstore.get(self._client, key).bytes())

    def open_input(self, path: str, *, size_bytes: int | None = None) -> pa.NativeFile:
        at = ObjectAt(self._client, self._key(path), path, self._place)
        if self._cache is not None and size_bytes and is_given_once(path):
            return pa.PythonFile(RangeReader(cached_ranges(at, self._cache, size_bytes)), "r")
        return pa.PythonFile(RangeReader(StoreRanges(at)), "r")

    def open_output(self, path: str) -> Output:
        key = self._key(path)
        if self._size_of(path) is not None:
            raise taken(path)
        draft = ObjectDraft(
            self._client,
            key,
            put=lambda data: self.put_if_absent(path, data),
            size_of=lambda: self._size_of(path),
            failures=lambda action: self._failures(action, path),
        )
        return WholeOutput(path, draft)

    def put_if_absent(
        self,
        path: str,
        data: bytes,
        *,
        modified_ms: int | None = None,  # noqa: ARG002 - stores use their own clock
    ) -> bool:
        key = self._key(path)
        lost = False  # an answer: the object that stands there may be ours
        for last in attempts(self._retry_s):
            try:
                obstore.put(self._once, key, data, mode="create")
                return True
            except (AlreadyExistsError, PreconditionError):
                # Some stores say so too while two puts are under way, and then keep neither.
                if lost and (found := self._found(path)) is not None:
                    return found == data
                if not lost and self.stat(path) is not None:
                    return False
                if last:
                    raise translated(_busy(), "write", path, self._place) from None
            except (BaseError, OSError) as error:
                if last or is_answered(error):
                    raise translated(error, "write", path, self._place) from None
                lost = True
        raise AssertionError("the last attempt returns or raises")

    def replace(self, path: str, data: bytes) -> None:
        key = self._key(path)
        with self._failures("write", path):
            obstore.put(self._client, key, data, use_multipart=False)

    def bundle(self, named: Callable[[str], None]) -> AbstractContextManager[Bundle]:
        return nullcontext(LooseBundle(self, named))

    def list(self, prefix: str) -> Iterator[Stat]:
        return self._listed(safe_prefix(prefix))

    def stat(self, path: str) -> Stat | None:
        key = self._key(path)
        with self._failures("read", path):
            try:
                found = obstore.head(self._client, key)
            except FileNotFoundError:
                return None
        return Stat(path, found["size"], _milliseconds(found["last_modified"]))

    def delete(self, path: str) -> None:
        key = self._key(path)
        with self._failures("delete", path):
            try:
                obstore.delete(self._client, key)
            except FileNotFoundError:
                return

    def delete_folder(self, path: str) -> None:
        found = [self._key(each.path) for each in self._listed(safe_path(path))]
        with self._failures("delete", path):
            for start in range(0, len(found), _PAGE):
                obstore.delete(self._client, found[start : start + _PAGE])

    def _listed(self, folder: str) -> Iterator[Stat]:
        below = (self._below + folder).rstrip("/")
        with self._failures("read", folder):
            found = [
                Stat(path, each["size"], _milliseconds(each["last_modified"]))
                for page in obstore.list(self._client, below or None, chunk_size=_PAGE)
                for each in page
                if all(map(is_safe_name, (path := each["path"][len(self._below) :]).split("/")))
            ]
        # Some stores go folder by folder, which is another order.
        yield from sorted(found, key=attrgetter("path"))

    def _found(self, path: str) -> bytes | None:
        try:
            return self.get(path)
        except ObjectMissing:
            return None

    def _size_of(self, path: str) -> int | None:
        found = self.stat(path)
        return None if found is None else found.size_bytes

    def _key(self, path: str) -> str:
        if _CONTROL.search(safe_path(path)):
            raise InvalidName(
                f"{path!r} cannot be the name of an object: it has control characters",
                hint="Percent-encode them.",
                path=path,
            )
        return self._below + path

    def _failures(self, action: Action, path: str) -> Failures:
        return Failures(action, path, self._place)


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def _busy() -> BaseError:
    return AlreadyExistsError("others write the same object all the time")
