"""Group commit: who waits together commits together, and each member has its own fate."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.api.creating import NewTable, stage_table
from lakebed.meta import outbox
from lakebed.meta.dialect import Connection
from lakebed.meta.store import Store
from lakebed.model.names import parse_table_name

SCHEMA = "id long not null"
Job = Callable[[], object]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[lakebed.Lake]:
    sqlite = request.param == "sqlite"
    uri = tmp_path / "lake" if sqlite else request.getfixturevalue("postgres_url")
    with lakebed.open(uri, create=True, warehouse=None if sqlite else tmp_path) as lake:
        lake.set_setting("publish.formats", "delta")
        lake.create_table("a.t", SCHEMA)
        lake.create_table("a.u", SCHEMA)
        yield lake


def rows(*ids: int) -> list[dict[str, object]]:
    return [{"id": i} for i in ids]


def test_members_share_a_transaction_and_one_conflict_fails_one_member(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.table("a.t")
    late = lake.transaction()
    late.table("a.t").overwrite(rows(99))
    table.overwrite(rows(0))
    commits = count_durable_commits(monkeypatch)

    jobs: list[Job] = [lambda i=i: table.append(rows(i)) for i in range(1, 6)]  # type: ignore[misc]
    outcomes = together(lake, [*jobs[:3], late.commit, *jobs[3:]])

    assert commits == [1]
    assert isinstance(outcomes.pop(3), lakebed.CommitConflict)
    assert sorted(c.version for c in outcomes) == [2, 3, 4, 5, 6]
    assert len({c.time_ms for c in outcomes}) == 5
    assert ids(lake) == [0, 1, 2, 3, 4, 5]
    assert lake.check().clean


def test_a_refused_member_leaves_no_row_behind(lake: lakebed.Lake) -> None:
    """Two members create the same table: the second is refused after it has written rows."""
    made = [lake.transaction() for _ in range(2)]
    for tx in made:
        tx.table("a.t").append(rows(1))
    creating: list[Job] = [lambda: lake.create_table("b.new", SCHEMA) for _ in range(2)]

    outcomes = together(lake, [*(tx.commit for tx in made), *creating])

    assert [type(o) for o in outcomes[:2]] == [dict, dict]
    assert sorted(type(o).__name__ for o in outcomes[2:]) == ["Table", "TableExists"]
    assert lake.tables() == ["a.t", "a.u", "b.new"]
    assert ids(lake) == [1, 1]
    assert lake.check().clean


def test_a_commit_alone_that_the_database_fails_half_way_leaves_no_row_behind(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no savepoint of its own: the whole transaction goes."""
    table = lake.table("a.t")
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "insert_outbox", lambda tx, *_, **__: tx.run("INSERT INTO nowhere"))
        with pytest.raises(lakebed.LakebedError) as caught:
            table.append(rows(1))

    assert caught.value.code == "DATABASE_ERROR"
    assert ids(lake) == []
    assert table.append(rows(2)).version == 1
    assert lake.check().clean


def test_what_a_conflicting_member_had_written_is_undone(lake: lakebed.Lake) -> None:
    """It makes a namespace and a table before its other table turns out to be in conflict."""
    late = lake.transaction()
    staged, _ = stage_table(lake._parts, parse_table_name("b.new"), SCHEMA, NewTable())
    late.stage_new("b.new", staged).append(rows(1))
    late.table("a.t").overwrite(rows(99))
    lake.table("a.t").overwrite(rows(0))

    outcomes = together(lake, [late.commit, lambda: lake.table("a.t").append(rows(1))])

    assert isinstance(outcomes[0], lakebed.CommitConflict)
    assert outcomes[1].version == 2
    assert (lake.tables(), lake.namespaces()) == (["a.t", "a.u"], ["a"])
    assert lake.create_table("b.new", SCHEMA).version == 0
    assert lake.check().clean


@pytest.mark.parametrize("applied", [True, False])
def test_an_unknown_commit_makes_every_member_unknown(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch, applied: bool
) -> None:
    lose_commit(monkeypatch, applied=applied)
    table = lake.table("a.t")

    outcomes = together(
        lake,
        [lambda i=i: table.append(rows(i), idempotency_key=f"k{i}") for i in range(3)],  # type: ignore[misc]
    )
    monkeypatch.undo()

    assert [type(o) for o in outcomes] == [lakebed.CommitUnknown] * 3
    assert all(o.retryable and "idempotency_key" in o.hint for o in outcomes)
    assert ids(lake) == ([0, 1, 2] if applied else [])
    again = [table.append(rows(i), idempotency_key=f"k{i}") for i in range(3)]
    assert [c.replayed for c in again] == [applied] * 3
    assert ids(lake) == [0, 1, 2]
    assert lake.check().clean


def test_an_interrupted_leader_leaves_the_others_unknown_and_the_lake_usable(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Store._commit

    def interrupted(self: Store, connection: Connection, *, write: bool) -> None:
        if write:
            monkeypatch.setattr(Store, "_commit", real)
            raise KeyboardInterrupt
        real(self, connection, write=write)

    monkeypatch.setattr(Store, "_commit", interrupted)
    table = lake.table("a.t")

    outcomes = together(lake, [lambda i=i: table.append(rows(i)) for i in range(3)])  # type: ignore[misc]

    kinds = sorted(type(o).__name__ for o in outcomes)
    assert kinds == ["CommitUnknown", "CommitUnknown", "KeyboardInterrupt"]
    assert table.append(rows(9)).published
    assert ids(lake) == [9]


def test_commit_time_is_the_databases_grows_and_is_one_for_all_tables(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialect = lake._parts.committer.store.dialect
    start = lake.table("a.t").append(rows(0)).time_ms
    assert abs(start - time.time() * 1000) < 60_000

    monkeypatch.setattr(type(dialect), "now_ms", "1000")  # a clock that was set back
    first = lake.table("a.t").append(rows(1))
    with lake.transaction() as tx:
        tx.table("a.t").append(rows(2))
        tx.table("a.u").append(rows(2))
    monkeypatch.setattr(type(dialect), "now_ms", str(start + 10**9))
    later = lake.table("a.t").append(rows(3))

    assert first.time_ms == start + 1
    assert {c.time_ms for c in tx.commits.values()} == {start + 2}
    assert later.time_ms == start + 10**9


def test_eight_threads_on_one_handle_lose_nothing(lake: lakebed.Lake) -> None:
    table = lake.table("a.t")

    def work(thread: int) -> None:
        for n in range(5):
            table.append(rows(thread * 100 + n))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    assert ids(lake) == sorted(t * 100 + n for t in range(8) for n in range(5))
    history = table.history()
    assert [c.version for c in history] == list(range(40, -1, -1))
    assert all(c.published for c in history)
    assert lake.check().clean


def together(lake: lakebed.Lake, jobs: list[Job]) -> list[Any]:
    """Hold the committer's turn until every job waits for it, so that they form one batch."""
    committer = lake._parts.committer
    with ThreadPoolExecutor(len(jobs)) as pool:
        with committer._turn:
            futures: list[Future[object]] = []
            for job in jobs:
                futures.append(pool.submit(job))
                until(lambda: len(committer._queue) == len(futures))
        return [f.exception() or f.result() for f in futures]


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came about")


def count_durable_commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Write transactions other than the records of publication, which are not durable."""
    real, count, mutex = Store.write, [0], threading.Lock()

    @contextmanager
    def write(self: Store, *, durable: bool = True) -> Iterator[object]:
        with mutex:
            count[0] += durable
        with real(self, durable=durable) as tx:
            yield tx

    monkeypatch.setattr(Store, "write", write)
    return count


def lose_commit(monkeypatch: pytest.MonkeyPatch, *, applied: bool) -> None:
    real = Store._commit

    def lost(self: Store, connection: Connection, *, write: bool) -> None:
        if not write:
            real(self, connection, write=write)
            return
        if applied:
            connection.execute("COMMIT")
        raise lakebed.CommitUnknown("lost", hint="repeat it with the same idempotency_key")

    monkeypatch.setattr(Store, "_commit", lost)


def ids(lake: lakebed.Lake) -> list[int]:
    return sorted(lake.table("a.t").to_arrow()["id"].to_pylist())
