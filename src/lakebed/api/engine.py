"""The SQL engine of a lake, within the limits its settings give."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakebed.api.parts import Parts
from lakebed.engines import open_session

if TYPE_CHECKING:
    from lakebed.engines.duckdb.session import Session


def open_engine(parts: Parts, roots: Sequence[str] = ()) -> "Session":
    """`roots` are of tables that are bound later than the first statement."""
    settings = parts.settings
    return open_session(
        parts.storage,
        memory_bytes=int(settings.value("query.memory-limit")) or None,
        spill_folder=str(settings.value("query.spill-folder")) or None,
        threads=int(settings.value("query.threads")) or None,
        roots=roots,
    )
