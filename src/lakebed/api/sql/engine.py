"""The engine for one query: a shared one when the query can read nothing but its own relations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakebed.api.engine import open_engine, shared_engine
from lakebed.api.parts import Parts
from lakebed.api.sql.bound import Bound
from lakebed.core.plan import Plan
from lakebed.sql.plain import is_plain

if TYPE_CHECKING:
    from lakebed.engines.duckdb.session import Session


def engine_for(parts: Parts, sql: str, relations: Sequence[Bound]) -> "Session":
    """A shared engine may read tables of earlier queries; any doubt gives one of its own."""
    roots = {r.rows.root: None for r in relations if isinstance(r.rows, Plan)}
    texts = [sql, *(r.rows for r in relations if isinstance(r.rows, str))]
    names = {r.reference.placeholder.casefold() for r in relations}
    engine = shared_engine(parts, list(roots))
    try:
        if all(is_plain(engine.parsed(text), names) for text in texts):
            return engine
    except BaseException:
        engine.close()
        raise
    engine.close()
    return open_engine(parts)
