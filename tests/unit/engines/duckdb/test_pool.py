"""Engines are used again, by one query at a time, and nothing of a query is left to the next."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.engines.duckdb.instance import Instance, Limits
from lakebed.engines.duckdb.pool import Pool
from lakebed.engines.duckdb.session import Session
from lakebed.model.errors import Forbidden, LakebedError
from lakebed.storage.local import LocalStorage
from tests.unit.engines.duckdb.plans import LIMITS, local


def session(folder: Path, pool: Pool, *roots: str, limits: Limits = LIMITS) -> Session:
    return Session(LocalStorage(folder), limits, roots=roots, pool=pool)


def used(engine: Session) -> Instance:
    """The instance of a session whose one query was read to its end."""
    with engine:
        engine.batches("SELECT 1").read_all()
        return engine._instance


def test_engine_serves_the_next_query_over_the_same_folders(tmp_path: Path) -> None:
    pool = Pool()

    first = used(session(tmp_path, pool, "a", "b"))

    assert used(session(tmp_path, pool, "a", "b")) is first
    assert used(session(tmp_path, pool, "b")) is first
    assert used(session(tmp_path, pool)) is first


def test_engine_is_made_when_no_idle_one_may_read_the_folders(tmp_path: Path) -> None:
    pool = Pool()
    first = used(session(tmp_path, pool, "a"))

    second = used(session(tmp_path, pool, "b"))

    assert second is not first
    assert used(session(tmp_path, pool, "a", "b")) is second  # it was made for both


def test_two_queries_at_once_have_engines_of_their_own(tmp_path: Path) -> None:
    pool = Pool()

    with session(tmp_path, pool) as one, session(tmp_path, pool) as other:
        assert one._instance is not other._instance


def test_other_limits_need_another_engine(tmp_path: Path) -> None:
    pool = Pool()
    first = used(session(tmp_path, pool))

    assert used(session(tmp_path, pool, limits=Limits(1 << 29, None))) is not first


@pytest.mark.parametrize("sql", ["SELECT * FROM nowhere", "SELECT error('stop')"])
def test_engine_of_a_failed_query_is_thrown_away(tmp_path: Path, sql: str) -> None:
    pool = Pool()
    with session(tmp_path, pool) as failing:
        failed = failing._instance
        with pytest.raises(LakebedError):
            failing.batches(sql).read_all()

    assert used(session(tmp_path, pool)) is not failed


def test_engine_whose_rows_were_not_all_read_is_thrown_away(tmp_path: Path) -> None:
    pool = Pool()
    with session(tmp_path, pool) as stopped:
        instance = stopped._instance
        next(stopped.batches("SELECT * FROM range(10000000)"))

    assert used(session(tmp_path, pool)) is not instance


def test_nothing_of_a_query_is_left_to_the_next(tmp_path: Path) -> None:
    pool = Pool()
    with session(tmp_path, pool) as before:
        first = before._instance
        before.bind_rows("bound", pa.table({"a": [1]}))
        before.run("CREATE TEMP TABLE made AS SELECT 1 AS a")
        before.run("CREATE TEMP VIEW seen AS SELECT 1 AS a")
        before.run("CREATE TEMP MACRO called() AS 1")
        before.run("SET VARIABLE told = 1")
        before.run("PREPARE ready AS SELECT 1")
        before.batches("SELECT * FROM bound, made, seen").read_all()

    with session(tmp_path, pool) as after:
        assert after._instance is first
        told = after.batches("SELECT getvariable('told') IS NULL AS gone").read_all()
        assert told.to_pylist() == [{"gone": True}]
        for sql in ("FROM bound", "FROM made", "FROM seen", "SELECT called()"):
            with pytest.raises(LakebedError):
                after.batches(sql)
        with pytest.raises(LakebedError):
            after.run("EXECUTE ready")


def test_shared_engine_is_locked_and_reads_folders_of_queries_alone(tmp_path: Path) -> None:
    table = local(tmp_path, "a int")
    table.add([{"a": 1}])
    other = tmp_path / "other.parquet"
    other.write_bytes((tmp_path / "t" / table.files[0].path).read_bytes())
    pool = Pool()
    first = used(Session(table.storage, LIMITS, roots=("t",), pool=pool))

    with Session(table.storage, LIMITS, roots=("t",), pool=pool) as again:
        assert again._instance is first
        again.bind_plan("t", table.plan())
        assert again.batches("SELECT a FROM t").read_all().to_pylist() == [{"a": 1}]
        for sql in (f"FROM read_parquet('{other}')", "FROM read_text('/etc/passwd')"):
            with pytest.raises(Forbidden):
                again.batches(sql).read_all()
        with pytest.raises(LakebedError):
            again.run("SET threads = 1")


def test_engine_that_spilled_does_not_come_back(tmp_path: Path) -> None:
    pool = Pool()
    limits = Limits(60 << 20, str(tmp_path), threads=1)
    sorting = "SELECT count(*) FROM (FROM range(8000000) ORDER BY hash(range) LIMIT 7999999)"
    with session(tmp_path, pool, limits=limits) as spilling:
        instance = spilling._instance
        spilling.batches(sorting).read_all()
        assert instance.has_spilled

    assert list(tmp_path.iterdir()) == []
    assert used(session(tmp_path, pool, limits=limits)) is not instance


def test_few_engines_stay_idle_and_none_in_a_closed_pool(tmp_path: Path) -> None:
    pool = Pool()
    made = [session(tmp_path, pool) for _ in range(6)]
    for each in made:
        each.batches("SELECT 1").read_all()
        each.close()
        each.close()  # once more does nothing

    assert 1 <= len(pool._idle) <= 4
    assert len({id(instance) for instance in pool._idle}) == len(pool._idle)
    pool.close()
    assert not pool._idle
    used(session(tmp_path, pool))
    assert not pool._idle


def test_process_that_forks_leaves_no_engine_to_its_child(tmp_path: Path) -> None:
    pool = Pool()
    used(session(tmp_path, pool))

    child = os.fork()
    if child == 0:
        os._exit(len(pool._idle))

    assert os.waitpid(child, 0)[1] == 0
    assert not pool._idle
