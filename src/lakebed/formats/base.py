"""The seam between the outbox and a format: a publisher writes the files of one version."""

import hashlib
from typing import Protocol

from lakebed.core.ledger import Ledger, VersionView
from lakebed.core.outbox import Published
from lakebed.model.history import PublicationRecord
from lakebed.storage.base import Bundle, Storage


class Publisher(Protocol):
    """Writing the same version again gives the same names and bytes."""

    format: str

    def publish(self, ledger: Ledger, view: VersionView, kind: str) -> Published:
        """Write the files of one outbox row: commit, start (the whole state) or checkpoint."""
        ...


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def measure(storage: Storage, path: str) -> tuple[int, str]:
    """Size and digest of a stored file that may be large."""
    hashed = hashlib.sha256()
    with storage.open_input(path) as file:
        while piece := file.read(1 << 20):
            hashed.update(piece)
        return file.tell(), hashed.hexdigest()


def record(
    kind: str, *, format_: str, number: int, view: VersionView, path: str, data: bytes
) -> PublicationRecord:
    commit = view.commit
    return PublicationRecord(
        format_, kind, number, commit.version, path, len(data), digest(data), commit.line
    )


def put_once(storage: Bundle, root: str, path: str, data: bytes, *, time_ms: int) -> bytes | None:
    """Put a file that only we may write; the other content when something else stands there.

    None when it was written now or stood there already with the same bytes.
    """
    whole = f"{root}/{path}"
    if storage.put_if_absent(whole, data, modified_ms=time_ms):
        return None
    found = storage.get(whole)
    return None if found == data else found
