"""Procedures whose answers no test of SQL text can see."""

from pathlib import Path

import pytest

import lakebed
from lakebed.model.errors import SqlError, TableNotFound


def test_call_build_index_makes_what_later_commits_would(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("s.t", "id long", partition_by=["id"], formats="delta")
        table.append([{"id": n} for n in range(520)])
        assert lake._parts.upkeep.wait(60)
        planner = lake._parts.planner
        planner._index.drop(table.id)  # as in a lake of an earlier program

        assert lake.sql("CALL build_index('s.t')").to_pylist() == [{"files": 500}]
        assert lake.sql("CALL system.build_index(table => 's.t')").to_pylist() == [{"files": 500}]

        plan = table.scan(where="id = 7").plan()
        assert (len(plan.files), plan.pruned) == (1, 519)
        with pytest.raises(TableNotFound):
            lake.sql("CALL build_index('s.other')")
        with pytest.raises(SqlError, match="needs table"):
            lake.sql("CALL build_index()")
