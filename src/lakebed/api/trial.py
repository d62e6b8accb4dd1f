"""Tries a place for a warehouse step by step, below a prefix of its own that is removed again."""

import shutil
import tempfile
import uuid
from collections.abc import Callable

import pyarrow as pa

from lakebed.api.open import init
from lakebed.api.open import open as open_lake
from lakebed.model.errors import StorageError
from lakebed.storage import open_storage
from lakebed.storage.open import root_uri_of
from lakebed.storage.probe import decides_races

_ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
_TABLE = "doctor.trial"


class Trial:
    """Steps are called in order, until one raises; `clean_up` in any case."""

    def __init__(self, warehouse: str) -> None:
        self._storage = open_storage(warehouse)
        self._folder = f"lakebed-doctor-{uuid.uuid4().hex}"
        self._warehouse = f"{root_uri_of(warehouse)}/{self._folder}"
        self._lake = tempfile.mkdtemp(prefix="lakebed-doctor-")

    def steps(self) -> dict[str, Callable[[], str]]:
        return {
            "race": self._race,
            "create": self._create,
            "insert": self._insert,
            "reopen and count": self._count,
        }

    def clean_up(self) -> str:
        shutil.rmtree(self._lake, ignore_errors=True)
        self._storage.delete_folder(self._folder)
        left = [found.path for found in self._storage.list(self._folder)]
        if left:
            raise StorageError(f"{len(left)} objects are still there", hint="remove them by hand")
        return "nothing is left"

    def _race(self) -> str:
        if not decides_races(open_storage(self._warehouse)):
            raise StorageError(
                "two writers could put the same object",
                hint="use a store with conditional put, or write from one host only",
            )
        return "of two that put the same object, one wins"

    def _create(self) -> str:
        with init(self._lake, warehouse=self._warehouse) as lake:
            lake.create_namespace("doctor")
            return lake.create_table(_TABLE, _ROWS.schema).location

    def _insert(self) -> str:
        with open_lake(self._lake) as lake:
            commit = lake.table(_TABLE).append(_ROWS)
        if not commit.published:
            raise StorageError("the commit could not be published", hint="see `lakebed status`")
        return f"{_ROWS.num_rows} rows, published in both formats"

    def _count(self) -> str:
        # The store is on trial, not what this machine remembers of it.
        with open_lake(self._lake, settings={"cache.size": 0}) as lake:
            found = lake.table(_TABLE).scan().to_arrow()
            problems = lake.check().findings
        if found.sort_by("id") != _ROWS or problems:
            raise StorageError("other rows came back", hint="do not use this store")
        return f"{found.num_rows} rows, check finds nothing"
