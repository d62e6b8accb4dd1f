"""A table's folder is its own: a small file in it says whose, and nobody else may purge it."""

from lakebed.model.errors import ObjectMissing, StorageError
from lakebed.storage.base import Storage

MARKER = ".lakebed-table"


def claim(storage: Storage, root: str, table_uuid: str) -> bool:
    """Take an empty folder for a table; False when anything stands there already."""
    if next(storage.list(root), None) is not None:
        return False
    return storage.put_if_absent(f"{root}/{MARKER}", table_uuid.encode())


def refuse_foreign(storage: Storage, root: str, table_uuid: str) -> None:
    """StorageError unless the folder is this table's, or empty."""
    try:
        owner = storage.get(f"{root}/{MARKER}").decode(errors="replace")
    except ObjectMissing:
        owner = ""
        if next(storage.list(root), None) is None:
            return
    if owner != table_uuid:
        raise StorageError(
            f"the folder {root!r} is not known to be this table's: its {MARKER} says {owner!r}",
            hint="look at what is in it and remove it by hand",
            path=root,
        )


def empty_folder(storage: Storage, root: str) -> None:
    """Delete what a table's folder holds but the marker: while anything stands, it says whose."""
    marker = f"{root}/{MARKER}"
    for path in [found.path for found in storage.list(root) if found.path != marker]:
        storage.delete(path)
