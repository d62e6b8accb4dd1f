"""The SQL engine of a lake, within the limits its settings give."""

from typing import TYPE_CHECKING

from lakebed.api.parts import Parts
from lakebed.engines import open_session

if TYPE_CHECKING:
    from lakebed.engines.duckdb.session import Session


def open_engine(parts: Parts) -> "Session":
    return open_session(parts.storage, memory_bytes=1 << 30, spill_folder=None)
