"""The SQL engine of a lake, within the limits its settings give."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakebed.api.parts import Parts
from lakebed.api.settings import Settings
from lakebed.engines import open_session
from lakebed.engines.duckdb.pool import Pool
from lakebed.storage.base import Storage

if TYPE_CHECKING:
    from lakebed.engines.duckdb.session import Session


def open_engine(parts: Parts, roots: Sequence[str] = ()) -> "Session":
    """`roots` are of tables that are bound later than the first statement."""
    return engine_of(parts.storage, parts.settings, roots)


def shared_engine(parts: Parts, roots: Sequence[str]) -> "Session":
    """For one query that reads what is bound to it alone; `roots` are of all its tables."""
    return engine_of(parts.storage, parts.settings, roots, parts.engines)


def engine_of(
    storage: Storage, settings: Settings, roots: Sequence[str] = (), pool: Pool | None = None
) -> "Session":
    """As `open_engine`, for the parts of a lake that is being opened."""
    return open_session(
        storage,
        memory_bytes=int(settings.value("query.memory-limit")) or None,
        spill_folder=str(settings.value("query.spill-folder")) or None,
        threads=int(settings.value("query.threads")) or None,
        roots=roots,
        pool=pool,
    )
