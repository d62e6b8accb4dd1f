"""Engines read plans and write data files. The SQL engine is imported when it is first needed."""

from typing import TYPE_CHECKING

from lakebed.storage.base import Storage

if TYPE_CHECKING:
    from lakebed.engines.duckdb.session import Session


def open_session(storage: Storage, *, memory_bytes: int, spill_folder: str | None) -> "Session":
    from lakebed.engines.duckdb.session import Limits, Session

    return Session(storage, Limits(memory_bytes, spill_folder))
