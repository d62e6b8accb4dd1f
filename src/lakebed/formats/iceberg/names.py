"""Names of the files of one publication, all derived: written again, they are the same."""

import re
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID, uuid5

from lakebed.formats.vector_files import FOLDER

VERSION_HINT = "metadata/version-hint.text"
_STEM = re.compile(r"(\d{5,18})-[0-9a-f-]{36}")
# Manifests of one publication are numbered below this, so that ids of two never meet.
_MANIFESTS_PER_PUBLICATION = 1 << 20


@dataclass(frozen=True, slots=True)
class Names:
    """`number` counts the publications of the table."""

    table_uuid: str
    number: int

    @property
    def stem(self) -> str:
        """What the version hint holds."""
        return f"{self.number:05d}-{self._derived('metadata')}"

    @property
    def metadata(self) -> str:
        return f"metadata/{self.stem}.metadata.json"

    def manifest(self, index: int) -> str:
        return f"metadata/{self._derived('manifests')}-m{index}.avro"

    def manifest_id(self, index: int) -> int:
        return self.number * _MANIFESTS_PER_PUBLICATION + index

    def manifest_list(self, snapshot_id: int) -> str:
        return f"metadata/snap-{snapshot_id}-{self._derived('list')}.avro"

    def sync(self, path: str) -> bytes:
        """The marker between the blocks of an Avro file; any 16 bytes that data will not hold."""
        return self._derived(f"sync {path}").bytes

    def _derived(self, purpose: str) -> UUID:
        return _derived(self.table_uuid, f"iceberg {self.number} {purpose}")


@lru_cache(maxsize=1024)
def _derived(table_uuid: str, purpose: str) -> UUID:
    return uuid5(_namespace(table_uuid), purpose)


@lru_cache(maxsize=1024)
def _namespace(table_uuid: str) -> UUID:
    return UUID(table_uuid)


def puffin_path(table_uuid: str, snapshot_id: int) -> str:
    """Where the deletion vectors that a snapshot made lie together."""
    return f"{FOLDER}/{_derived(table_uuid, f'iceberg deletes {snapshot_id}')}.puffin"


def number_in_hint(table_uuid: str, hint: bytes) -> int | None:
    """Which publication a version hint names; None when it is none of ours."""
    text = hint.decode(errors="replace").strip()
    found = _STEM.fullmatch(text)
    if found is None:
        return None
    number = int(found.group(1))
    return number if Names(table_uuid, number).stem == text else None
