"""An object on its way: a small one is put whole if its name is free, a large one goes in parts.

Parts are hidden until all are there. Names of large files are unique, so their last step looks
whether the name is free instead of asking the store to.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError

from lakebed.storage.failures import Action
from lakebed.storage.objects.connect import Client
from lakebed.storage.objects.failures import Failures

if TYPE_CHECKING:
    from obstore import WritableFile

# Up to 10,000 parts make an object: 78 GiB.
PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 4


class ObjectDraft:
    """`put` is the put-if-absent of this path, `size_of` what stands at it (None: nothing)."""

    def __init__(
        self,
        client: Client,
        key: str,
        *,
        put: Callable[[bytes], bool],
        size_of: Callable[[], int | None],
        failures: Callable[[Action], Failures],
    ) -> None:
        self._client = client
        self._key = key
        self._put = put
        self._size_of = size_of
        self._failures = failures
        self._small = bytearray()
        self._large: WritableFile | None = None
        self._size_bytes = 0

    def write(self, data: bytes | bytearray | memoryview) -> int:
        view = memoryview(data).cast("B")
        self._size_bytes += view.nbytes
        if self._large is None and self._size_bytes <= PART_BYTES:
            self._small += view
            return view.nbytes
        with self._failures("write"):
            self._parts().write(bytes(view))
        return view.nbytes

    def finish(self) -> bool:
        if self._large is None:
            return self._put(bytes(self._small))
        if self._size_of() is not None:
            self.discard()
            return False
        with self._failures("write"):
            self._complete(self._large)
        return True

    def discard(self) -> None:
        self._small.clear()
        if self._large is None:
            return
        large, self._large = self._large, None
        # Failing to tidy up must not hide how the write itself ended; stores can be told to drop
        # unfinished uploads after some days.
        try:
            large.__exit__(InterruptedError, None, None)
        except (BaseError, OSError):
            return

    def _parts(self) -> "WritableFile":
        if self._large is None:
            self._large = obstore.open_writer(
                self._client, self._key, buffer_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE
            )
            self._large.write(bytes(self._small))
            self._small.clear()
        return self._large

    def _complete(self, large: "WritableFile") -> None:
        try:
            large.close()
        except (BaseError, OSError):
            # The answer may be what was lost: a repeat then finds the upload gone.
            if self._size_of() != self._size_bytes:
                raise
