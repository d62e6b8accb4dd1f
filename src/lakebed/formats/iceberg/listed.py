"""What manifests list: data files, and the deletion vectors of data files."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from lakebed.model.files import DataFile, LiveFile
from lakebed.model.ids import SnapshotId
from lakebed.model.vectors import DeletionVector


class Listed(Protocol):
    """What a manifest is planned by: a LiveFile is one, and so is a LiveVector."""

    @property
    def id(self) -> int: ...
    @property
    def file(self) -> DataFile: ...
    @property
    def sequence_number(self) -> int: ...
    @property
    def snapshot_id(self) -> SnapshotId:
        """The one that added it."""


@dataclass(frozen=True, slots=True)
class LiveVector:
    """A deletion vector in force."""

    vector: DeletionVector
    file: DataFile

    @property
    def id(self) -> int:
        return self.vector.id

    @property
    def sequence_number(self) -> int:
        return self.vector.sequence_number

    @property
    def snapshot_id(self) -> SnapshotId:
        return self.vector.snapshot_id


def vectors_of(files: Iterable[LiveFile]) -> list[LiveVector]:
    return [LiveVector(f.vector, f.file) for f in files if f.vector is not None]


def rows_of(listed: Listed) -> int:
    """Rows in a file, or rows that a vector deletes."""
    if isinstance(listed, LiveVector):
        return listed.vector.cardinality
    return listed.file.record_count
