"""Engines read plans and write data files. The SQL engine is imported when it is first needed."""

from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.model.errors import MissingExtra
from lakebed.storage.base import Storage

if TYPE_CHECKING:
    import polars as pl

    from lakebed.engines.duckdb.session import Session


def open_session(storage: Storage, *, memory_bytes: int, spill_folder: str | None) -> "Session":
    from lakebed.engines.duckdb.session import Limits, Session

    return Session(storage, Limits(memory_bytes, spill_folder))


def frame_of(rows: pa.Table) -> "pl.DataFrame":
    try:
        import polars as pl
    except ImportError as error:
        raise MissingExtra(
            "Polars is not installed", hint="pip install 'lakebed[polars]'"
        ) from error
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame
