"""Queries of a lake share engines, and no query sees more for it."""

from pathlib import Path

import pytest

from lakebed import Lake
from lakebed.api.parts import Parts
from lakebed.api.sql.bound import Bound
from lakebed.api.sql.engine import engine_for
from lakebed.model.names import TableName
from lakebed.sql.query import Reference, Span


@pytest.fixture
def parts(lake: Lake) -> Parts:
    lake._parts.engines.clear()  # of the statements that made the lake
    return lake._parts


def test_queries_one_after_the_other_use_one_engine(lake: Lake, parts: Parts) -> None:
    for _ in range(3):
        assert lake.sql("SELECT name FROM s.t WHERE id = 1").to_arrow().num_rows == 1
        (idle,) = parts.engines._idle

    lake.sql("SELECT sum(id) FROM s.t").to_arrow()

    assert parts.engines._idle == [idle]


def test_engine_of_a_query_that_failed_or_was_left_is_not_used_again(
    lake: Lake, parts: Parts
) -> None:
    with lake.sql("SELECT * FROM s.t, range(1000000)"):
        pass
    with pytest.raises(Exception, match="stop"):
        lake.sql("SELECT error('stop') FROM s.t").to_arrow()

    assert parts.engines._idle == []


def test_text_that_may_read_more_than_its_tables_gets_an_engine_of_its_own(
    lake: Lake, parts: Parts, tmp_path: Path
) -> None:
    lake.sql("SELECT id FROM s.t WHERE id = 1").to_arrow()
    reference = Reference("lakebed_1", TableName(("s",), "v"), Span(0, 0, 1, 1))
    views = [Bound(reference, f"FROM read_text('{tmp_path}/x')")]

    for sql, relations in ((f"FROM read_text('{tmp_path}/x')", []), ("FROM lakebed_1", views)):
        with engine_for(parts, sql, relations) as engine:
            assert engine._pool is None


def test_closed_lake_keeps_no_engine(lake: Lake, parts: Parts) -> None:
    lake.sql("SELECT id FROM s.t WHERE id = 1").to_arrow()

    lake.close()

    assert parts.engines._idle == []
