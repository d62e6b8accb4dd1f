"""Delta's change feed: files that tell what a version did to rows, where its log would not."""

from typing import Protocol
from uuid import UUID, uuid5

from lakebed.core.ledger import Ledger, VersionView
from lakebed.formats.base import measure
from lakebed.formats.delta.actions import CdcAction
from lakebed.formats.delta.translate import Layout, layout_of, partition_values
from lakebed.model.files import DataFile
from lakebed.model.history import CHANGES, DELTA, PublicationRecord
from lakebed.storage.base import Storage

_FOLDER = "_change_data"
_MOST_FILES = 2**20  # of one version


class ChangeWriter(Protocol):
    """The part that knows how to read rows and write Parquet."""

    def write(self, ledger: Ledger, view: VersionView, folder: str) -> list[DataFile]:
        """What the version did to rows, as files in a folder below the table's root.

        They have the table's columns and `_change_type`, and are partitioned as Delta shows it.
        At least one is written.
        """
        ...


def is_told_by_files(view: VersionView) -> bool:
    """Did the commit only add whole files, or only remove them? Readers tell that by themselves.

    Files with deletion vectors are told: not every reader of changes knows them.
    """
    touched = (*view.added, *view.removed)
    one_way = not view.added or not view.removed
    return one_way and all(f.vector is None for f in touched)


def write_changes(
    storage: Storage, writer: ChangeWriter, ledger: Ledger, view: VersionView
) -> list[CdcAction]:
    """For a version that no log names yet: what an earlier try left behind is of no use."""
    folder = _folder(view)
    for left in list(storage.list(f"{view.head.location}/{folder}")):
        storage.delete(left.path)
    layout = layout_of(view.state)
    return [_action(layout, file) for file in writer.write(ledger, view, folder)]


def records_of(
    storage: Storage, view: VersionView, actions: list[CdcAction]
) -> list[PublicationRecord]:
    assert len(actions) <= _MOST_FILES
    return [_record(storage, view, number, cdc.path) for number, cdc in enumerate(actions)]


def _folder(view: VersionView) -> str:
    """One for each version, so that what belongs to it is found without looking at all others."""
    name = uuid5(UUID(view.head.uuid), f"delta changes {view.commit.version}")
    return f"{_FOLDER}/{name}"


def _action(layout: Layout, file: DataFile) -> CdcAction:
    return CdcAction(file.path, partition_values(layout, file), file.size_bytes)


def _record(storage: Storage, view: VersionView, number: int, path: str) -> PublicationRecord:
    version = view.commit.version
    size, digest = measure(storage, f"{view.head.location}/{path}")
    return PublicationRecord(
        DELTA, CHANGES, version * _MOST_FILES + number, version, path, size, digest
    )
