"""Idempotency keys and application transactions: the same request twice is one commit."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lakebed
from lakebed.core.commit import Committer
from lakebed.model.changes import Proposal
from lakebed.model.errors import IdempotencyMismatch

SCHEMA = "id long not null, part string"
Request = Callable[[lakebed.Lake], object]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str | None]:
    if request.param == "sqlite":
        return str(tmp_path / "lake"), None
    return request.getfixturevalue("postgres_url"), str(tmp_path / "warehouse")


@pytest.fixture
def lake(place: tuple[str, str | None]) -> Iterator[lakebed.Lake]:
    with lakebed.open(place[0], create=True, warehouse=place[1]) as lake:
        lake.set_setting("publish.formats", "delta")
        lake.create_table("a.t", SCHEMA, partition_by=["part"])
        lake.create_table("a.u", SCHEMA)
        yield lake


def rows(*ids: int) -> list[dict[str, object]]:
    return [{"id": i, "part": "x"} for i in ids]


def both(lake: lakebed.Lake, **options: object) -> dict[str, lakebed.Commit]:
    with lake.transaction(**options) as tx:  # type: ignore[arg-type]
        tx.table("a.t").append(rows(1))
        tx.table("a.u").append(rows(1))
    return tx.commits


def test_the_same_key_twice_is_one_commit_and_the_same_answer(lake: lakebed.Lake) -> None:
    table = lake.table("a.t")

    first = table.append(rows(1), idempotency_key="k", message="m")
    lake.table("a.t").append(rows(2))
    second = table.append(rows(1), idempotency_key="k", message="m")

    assert (first.replayed, second.replayed) == (False, True)
    assert (second.version, second.time_ms) == (first.version, first.time_ms)
    assert second.transaction_id == first.transaction_id
    assert ids(lake) == [1, 2]
    assert lake.check().notes == []


def test_a_transaction_with_a_known_key_changes_nothing(lake: lakebed.Lake) -> None:
    first, second = both(lake, idempotency_key="k"), both(lake, idempotency_key="k")

    assert {n: c.version for n, c in first.items()} == {n: c.version for n, c in second.items()}
    assert all(c.replayed for c in second.values())
    assert (ids(lake), ids(lake, "a.u")) == ([1], [1])
    assert lake.check().notes == []


def test_a_table_is_created_once_by_a_key(lake: lakebed.Lake) -> None:
    first = lake.create_table("b.new", rows(1), idempotency_key="k")
    second = lake.create_table("b.new", rows(1), idempotency_key="k")

    assert (second.uuid, second.version) == (first.uuid, 0)

    lake.drop_table("b.new", purge=True)
    with pytest.raises(lakebed.TableNotFound) as caught:
        lake.create_table("b.new", rows(1), idempotency_key="k")
    assert "idempotency key" in caught.value.hint


OTHER: dict[str, Request] = {
    "another operation": lambda lake: lake.table("a.t").overwrite(rows(1), idempotency_key="k"),
    "another table": lambda lake: lake.table("a.u").append(rows(1), idempotency_key="k"),
    "a transaction": lambda lake: both(lake, idempotency_key="k"),
    "a new table": lambda lake: lake.create_table("b.new", SCHEMA, idempotency_key="k"),
}


@pytest.mark.parametrize("other", OTHER)
def test_another_request_with_the_same_key_is_refused(lake: lakebed.Lake, other: str) -> None:
    lake.table("a.t").append(rows(1), idempotency_key="k")

    with pytest.raises(IdempotencyMismatch) as caught:
        OTHER[other](lake)

    assert caught.value.code == "IDEMPOTENCY_MISMATCH"
    assert caught.value.context["key"] == "k"
    assert (ids(lake), ids(lake, "a.u"), lake.tables()) == ([1], [], ["a.t", "a.u"])


def test_other_conditions_of_an_overwrite_are_another_request(lake: lakebed.Lake) -> None:
    table = lake.table("a.t")
    table.overwrite(rows(1), where="part = 'x'", idempotency_key="k")

    with pytest.raises(IdempotencyMismatch):
        table.overwrite(rows(1), idempotency_key="k")


def test_a_refusal_is_replayed(lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two requests race for one name; the loser hears the same again when the name is free."""
    real, seen = Committer.commit, list[Proposal]()

    def late(self: Committer, proposal: Proposal) -> object:
        if proposal.idempotency_key and not seen:
            seen.append(proposal)
            lake.create_table("b.new", SCHEMA)
        return real(self, proposal)

    monkeypatch.setattr(Committer, "commit", late)
    with pytest.raises(lakebed.TableExists) as first:
        lake.create_table("b.new", SCHEMA, idempotency_key="k")
    lake.drop_table("b.new", purge=True)

    with pytest.raises(lakebed.TableExists) as second:
        lake.create_table("b.new", SCHEMA, idempotency_key="k")

    assert second.value.message == first.value.message
    assert second.value.hint == first.value.hint
    assert not lake.has_table("b.new")


def test_a_conflict_is_no_answer(lake: lakebed.Lake) -> None:
    """It may pass the next time, so the key stays free."""
    tx = lake.transaction(idempotency_key="k")
    tx.table("a.t").overwrite(rows(2))
    lake.table("a.t").overwrite(rows(1))
    with pytest.raises(lakebed.CommitConflict):
        tx.commit()

    again = lake.transaction(idempotency_key="k")
    again.table("a.t").overwrite(rows(2))
    again.commit()

    assert ids(lake) == [2]


def test_one_key_from_many_processes_is_one_commit(
    lake: lakebed.Lake, place: tuple[str, str | None]
) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        jobs = [(*place, "a.t", number) for number in range(12)]
        versions = pool.starmap(append_in_process, jobs, chunksize=1)

    assert set(versions) == {1}
    assert ids(lake) == [7]
    assert lake.check().findings == []


def test_one_key_for_two_requests_at_once_makes_one_of_them(lake: lakebed.Lake) -> None:
    """The requests touch different tables, so no head keeps them apart."""
    for round_ in range(10):
        key = f"k{round_}"
        before = len(ids(lake)) + len(ids(lake, "a.u"))

        def append(name: str, key: str = key) -> object:
            try:
                return lake.table(name).append(rows(1), idempotency_key=key)
            except IdempotencyMismatch as error:
                return error

        with ThreadPoolExecutor(2) as pool:
            outcomes = [type(o).__name__ for o in pool.map(append, ("a.t", "a.u"))]

        assert sorted(outcomes) == ["Commit", "IdempotencyMismatch"]
        assert len(ids(lake)) + len(ids(lake, "a.u")) == before + 1


def test_one_key_creates_one_table_at_once(
    lake: lakebed.Lake, place: tuple[str, str | None]
) -> None:
    """Two handles stand for two processes: they share no committer."""
    with lakebed.open(place[0], warehouse=place[1]) as other:
        handles = [lake, other] * 2
        with ThreadPoolExecutor(4) as pool:
            made = pool.map(
                lambda h: h.create_table("b.n", SCHEMA, idempotency_key="k").uuid, handles
            )
            assert len(set(made)) == 1


@pytest.mark.parametrize("number", [5, 4, 0])
def test_a_repeated_or_older_application_transaction_adds_nothing(
    lake: lakebed.Lake, number: int
) -> None:
    table = lake.table("a.t")
    first = table.append(rows(1), txn=("app", 5))

    again = table.append(rows(2), txn=("app", number))

    assert (again.replayed, again.version) == (True, first.version)
    assert ids(lake) == [1]
    assert not table.append(rows(3), txn=("app", 6)).replayed
    assert not table.append(rows(4), txn=("other", 1)).replayed
    assert ids(lake) == [1, 3, 4]
    assert lake.check().notes == []


def test_an_application_transaction_raced_by_handles_is_one_commit(
    lake: lakebed.Lake, place: tuple[str, str | None]
) -> None:
    with lakebed.open(place[0], warehouse=place[1]) as other:
        handles = [lake, other] * 4
        with ThreadPoolExecutor(8) as pool:
            writes = pool.map(lambda h: h.table("a.t").overwrite(rows(1), txn=("app", 1)), handles)
            assert sorted(c.replayed for c in writes) == [False] + [True] * 7

    assert ids(lake) == [1]
    assert lake.table("a.t").version == 1


def test_a_transaction_repeated_after_others_is_no_conflict(lake: lakebed.Lake) -> None:
    both(lake, txn=("app", 1))
    stale = lake.transaction(txn=("app", 1))
    stale.table("a.t").overwrite(rows(9))
    stale.table("a.u").overwrite(rows(9))
    lake.table("a.t").overwrite(rows(5))

    commits = stale.commit()

    assert all(c.replayed for c in commits.values())
    assert (ids(lake), ids(lake, "a.u")) == ([5], [1])


def test_an_application_transaction_known_to_some_tables_is_refused(lake: lakebed.Lake) -> None:
    lake.table("a.t").append(rows(1), txn=("app", 1))

    with pytest.raises(lakebed.InvalidInput):
        both(lake, txn=("app", 1))

    assert (ids(lake), ids(lake, "a.u")) == ([1], [])


def test_a_key_is_kept_with_an_application_transaction_that_was_repeated(
    lake: lakebed.Lake,
) -> None:
    table = lake.table("a.t")
    first = table.append(rows(1), txn=("app", 1))

    for _ in range(2):
        again = table.append(rows(1), txn=("app", 1), idempotency_key="k")
        assert (again.replayed, again.version) == (True, first.version)


def append_in_process(uri: str, warehouse: str | None, name: str, number: int) -> int:
    with lakebed.open(uri, warehouse=warehouse) as lake:
        return lake.table(name).append(rows(7), idempotency_key="k", message=str(number)).version


def ids(lake: lakebed.Lake, name: str = "a.t") -> list[int]:
    return sorted(lake.table(name).to_arrow()["id"].to_pylist())
