"""PostgreSQL goes away: at COMMIT, between calls, in the middle of one, and for a while."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

import lakebed
from lakebed.meta.dialect import Connection
from lakebed.meta.store import Store, Tx
from lakebed.model.errors import DatabaseUnavailable
from tests.faults.driver import SCHEMA, rows
from tests.faults.health import assert_healthy, lake_ids
from tests.faults.proxy import Proxy

SHORT = {"database.timeout-s": 3}


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    proxy = Proxy(postgres_url)
    yield proxy
    proxy.close()


@pytest.fixture
def lake(proxy: Proxy, tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.open(proxy.url, create=True, warehouse=tmp_path, settings=SHORT) as lake:
        lake.create_table("a.t", SCHEMA)
        lake.create_table("a.u", SCHEMA)
        yield lake


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_connection_lost_at_commit_is_unknown_and_the_key_settles_it(
    lake: lakebed.Lake, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    table = lake.table("a.t")
    cut_at_commit(monkeypatch, proxy, cut)

    with pytest.raises(lakebed.CommitUnknown) as caught:
        table.append(rows(1), idempotency_key="k")

    assert (caught.value.code, caught.value.retryable) == ("COMMIT_UNKNOWN", True)
    assert "idempotency_key" in caught.value.hint
    settle(lambda: lake_ids(lake)["a.t"] == ([1] if cut == "after" else []))
    again = table.append(rows(1), idempotency_key="k")
    assert (again.replayed, again.version, again.published) == (cut == "after", 1, True)
    assert_healthy(lake, {"a.t": [1], "a.u": []})


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_transaction_lost_at_commit_is_whole_or_absent(
    lake: lakebed.Lake, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    tx = lake.transaction()
    tx.table("a.t").append(rows(1))
    tx.table("a.u").append(rows(1))
    cut_at_commit(monkeypatch, proxy, cut)

    with pytest.raises(lakebed.CommitUnknown):
        tx.commit()

    expected = [1] if cut == "after" else []
    settle(lambda: lake_ids(lake) == {"a.t": expected, "a.u": expected})
    assert_healthy(lake, {"a.t": expected, "a.u": expected})


def test_connections_dropped_between_calls_are_replaced(lake: lakebed.Lake, proxy: Proxy) -> None:
    table = lake.table("a.t")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda i: table.append(rows(i)), range(6)))
    proxy.drop_all()

    assert table.append(rows(6)).published

    assert_healthy(lake, {"a.t": list(range(7)), "a.u": []})


def test_terminated_in_the_middle_of_a_commit_nothing_is_visible(
    lake: lakebed.Lake, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Tx.run

    def run(self: Tx, sql: str, *more: object) -> int:
        count = real(self, sql, *more)  # type: ignore[arg-type]
        if sql.startswith("INSERT INTO commits"):
            monkeypatch.undo()
            terminate_backends(postgres_url)
        return count

    monkeypatch.setattr(Tx, "run", run)
    table = lake.table("a.t")

    with pytest.raises(DatabaseUnavailable) as caught:
        table.append(rows(1))

    assert (caught.value.code, caught.value.retryable) == ("DATABASE_UNAVAILABLE", True)
    assert caught.value.hint
    assert lake.check().notes == [], "the commit did not happen: its files are deleted"
    assert table.append(rows(2)).published
    assert_healthy(lake, {"a.t": [2], "a.u": []})


def test_lost_after_the_commit_the_write_returns_and_says_so(
    lake: lakebed.Lake, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit stands; only its publication needs the database again."""
    committer, address = lake._parts.committer, proxy._target
    real = type(committer).commit

    def commit(self: object, proposal: object) -> object:
        outcome = real(self, proposal)  # type: ignore[arg-type]
        proxy._target = ("127.0.0.1", 1)
        proxy.drop_all()
        return outcome

    monkeypatch.setattr(type(committer), "commit", commit)
    with pytest.warns(lakebed.PublishWarning, match="DATABASE_UNAVAILABLE"):
        made = lake.table("a.t").append(rows(1))
    monkeypatch.undo()
    proxy._target = address

    assert (made.version, made.published) == (1, False)
    assert made.reason is not None
    assert made.reason.startswith("DATABASE_UNAVAILABLE")
    assert_healthy(lake, {"a.t": [1], "a.u": []})


def test_away_for_a_while_every_call_says_so_and_then_works(
    lake: lakebed.Lake, proxy: Proxy, tmp_path: Path
) -> None:
    address, proxy._target = proxy._target, ("127.0.0.1", 1)
    proxy.drop_all()
    table = lake.table

    calls: list[Callable[[], object]] = [
        lambda: table("a.t").append(rows(1)),
        lake.tables,
        lake.publish,
        lambda: lakebed.open(proxy.url, create=True, warehouse=tmp_path, settings=SHORT),
        lambda: lakebed.open(proxy.url, settings=SHORT),
    ]
    for call in calls:
        with pytest.raises(DatabaseUnavailable) as caught:
            call()
        assert "check that the server runs" in caught.value.hint

    proxy._target = address
    assert table("a.t").append(rows(1)).published
    assert_healthy(lake, {"a.t": [1], "a.u": []})


def cut_at_commit(monkeypatch: pytest.MonkeyPatch, proxy: Proxy, cut: str) -> None:
    real = Store._commit

    def commit(self: Store, connection: Connection, *, write: bool) -> None:
        if write:
            monkeypatch.undo()
            proxy.cut = cut
        real(self, connection, write=write)

    monkeypatch.setattr(Store, "_commit", commit)


def terminate_backends(url: str) -> None:
    """End the connections of this lake: those whose search path is its schema's."""
    schema = parse_qs(urlsplit(url).query)["schema"][0]
    with psycopg.connect(url.partition("?")[0], autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l"
            " JOIN pg_class c ON c.oid = l.relation"
            " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
            (schema,),
        )


def settle(condition: Callable[[], bool]) -> None:
    """The server may notice a lost connection a moment later."""
    for _ in range(50):
        if condition():
            return
        time.sleep(0.02)
    assert condition()
