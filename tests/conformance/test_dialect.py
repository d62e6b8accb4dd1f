"""One suite for every database: SQLite in a file, SQLite in memory, PostgreSQL."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import lakebed
from lakebed.meta.dialect import Dialect
from lakebed.meta.migrate import apply_migrations, known_migrations, schema_number
from lakebed.meta.postgres import PostgresDialect
from lakebed.meta.sqlite import SqliteDialect
from lakebed.meta.store import Store, Tx
from lakebed.model.errors import DatabaseError, DatabaseLocked, InvalidInput

TIMEOUT_S = 0.7


@dataclass(frozen=True)
class Database:
    kind: str
    make: Callable[[], Dialect]
    store: Store


@pytest.fixture(params=["file", "memory", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    def make() -> Dialect:
        if request.param == "postgres":
            url = request.getfixturevalue("postgres_url")
            return PostgresDialect(url, timeout_s=TIMEOUT_S, pool_size=4)
        path = tmp_path / "test.db" if request.param == "file" else None
        return SqliteDialect(path, timeout_s=TIMEOUT_S, pool_size=4)

    (tmp_path / "test.db").touch()
    store = Store(make(), timeout_s=TIMEOUT_S)
    with store.write() as tx:
        tx.run("CREATE TABLE note (id BIGINT PRIMARY KEY, body TEXT, number BIGINT)")
    yield Database(request.param, make, store)
    store.close()


def put(tx: Tx, id_: int, body: str | None = None, number: int | None = None) -> int:
    return tx.run("INSERT INTO note (id, body, number) VALUES (?, ?, ?)", (id_, body, number))


def ids(store: Store) -> list[int]:
    with store.read() as tx:
        return [row[0] for row in tx.all("SELECT id FROM note ORDER BY id")]


def test_what_a_block_wrote_is_there_whole_or_not_at_all(database: Database) -> None:
    store = database.store

    def fail() -> None:
        with store.write() as tx:
            put(tx, 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert ids(store) == []

    with store.write() as tx:
        assert put(tx, 1) == 1
        assert put(tx, 2) == 1
        assert tx.run("UPDATE note SET number = 5") == 2
    assert ids(store) == [1, 2]


def test_a_savepoint_undoes_its_block_and_the_transaction_goes_on(database: Database) -> None:
    def fail(tx: Tx) -> None:
        with tx.savepoint():
            put(tx, 2)
            raise ZeroDivisionError

    with database.store.write() as tx:
        put(tx, 1)
        with pytest.raises(ZeroDivisionError):
            fail(tx)
        with tx.savepoint():
            put(tx, 3)

    assert ids(database.store) == [1, 3]


def test_a_refused_statement_in_a_savepoint_does_not_spoil_the_transaction(
    database: Database,
) -> None:
    def twice(tx: Tx) -> None:
        with tx.savepoint():
            put(tx, 1)

    with database.store.write() as tx:
        put(tx, 1)
        with pytest.raises(Exception, match=r"(?i)unique"):
            twice(tx)
        put(tx, 2)

    assert ids(database.store) == [1, 2]


def test_errors_of_the_driver_become_ours(database: Database) -> None:
    def wrong() -> None:
        with database.store.write() as tx:
            tx.run("SELECT nonsense FROM nowhere")

    def twice() -> None:
        with database.store.write() as tx:
            put(tx, 1)
            put(tx, 1)

    for call in (wrong, twice):
        with pytest.raises(DatabaseError) as caught:
            call()
        assert caught.value.__cause__ is not None
    assert ids(database.store) == []
    with database.store.write() as tx:
        put(tx, 1)


def test_a_read_is_one_view_though_others_write(database: Database) -> None:
    if database.kind == "memory":
        pytest.skip("one connection: readers and writers take turns")
    with database.store.read() as tx:
        before = tx.all("SELECT id FROM note")
        with database.store.write() as other:
            put(other, 1)
        assert tx.all("SELECT id FROM note") == before
    assert ids(database.store) == [1]


def test_the_clock_is_the_databases_and_in_milliseconds(database: Database) -> None:
    with database.store.write() as tx:
        times = [tx.now_ms() for _ in range(50)]
        time.sleep(0.01)
        times.append(tx.now_ms())

    assert times == sorted(times)
    assert times[-1] >= times[0] + 9, "the clock goes on inside a transaction"
    assert abs(times[0] - time.time() * 1000) < 60_000


def test_writers_that_lock_the_same_row_take_turns(database: Database) -> None:
    with database.store.write() as tx:
        put(tx, 1, number=0)

    def add(_: int) -> None:
        with database.store.write() as tx:
            row = tx.locked("SELECT number FROM note WHERE id = ?", (1,))
            assert row is not None
            time.sleep(0.002)
            tx.run("UPDATE note SET number = ? WHERE id = 1", (row[0] + 1,))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(40)))

    with database.store.read() as tx:
        assert tx.one("SELECT number FROM note") == (40,)


def test_a_lock_that_is_not_given_back_is_waited_for_only_so_long(database: Database) -> None:
    if database.kind == "memory":
        pytest.skip("no other process can hold it")
    other = Store(database.make(), timeout_s=TIMEOUT_S)
    with database.store.write() as tx:
        put(tx, 1)
    lock = "SELECT 1 FROM note WHERE id = 1"

    def wait() -> None:
        with other.write() as second:
            second.locked(lock)

    with database.store.write() as first:
        first.locked(lock)
        started = time.monotonic()
        with pytest.raises(DatabaseLocked) as caught:
            wait()
        assert TIMEOUT_S * 0.8 < time.monotonic() - started < 10 * TIMEOUT_S
    assert (caught.value.retryable, bool(caught.value.hint)) == (True, True)
    wait()
    other.close()


def test_an_exclusive_name_is_held_by_one_thread_at_a_time(database: Database) -> None:
    inside, most, mutex = 0, 0, threading.Lock()

    def enter(name: str) -> None:
        nonlocal inside, most
        with database.store.exclusive(name):
            with mutex:
                inside += 1
                most = max(most, inside)
            time.sleep(0.003)
            with mutex:
                inside -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(enter, ["publish-1"] * 12))
        assert most == 1
        barrier = threading.Barrier(2, timeout=5)

        def meet(name: str) -> None:
            with database.store.exclusive(name):
                barrier.wait()

        list(pool.map(meet, ["publish-1", "publish-2"]))


def test_an_exclusive_name_is_given_back_after_a_failure(database: Database) -> None:
    def fail() -> None:
        with database.store.exclusive("publish-1"):
            raise ZeroDivisionError

    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            fail()
    with database.store.exclusive("publish-1"):
        pass


HOLD = """
import sys
from pathlib import Path
from lakebed.meta.postgres import PostgresDialect
from lakebed.meta.sqlite import SqliteDialect
kind, place = sys.argv[1:]
dialect = (
    PostgresDialect(place, timeout_s=5, pool_size=1)
    if kind == "postgres"
    else SqliteDialect(Path(place), timeout_s=5, pool_size=1)
)
with dialect.exclusive("publish-1"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_an_exclusive_name_is_held_across_processes_and_given_back_by_death(
    database: Database, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if database.kind == "memory":
        pytest.skip("a lake in memory has one process")
    postgres = database.kind == "postgres"
    place = request.getfixturevalue("postgres_url") if postgres else str(tmp_path / "test.db")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, database.kind, place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        with pytest.raises(DatabaseLocked), database.store.exclusive("publish-1"):
            pass

        holder.kill()
    with database.store.exclusive("publish-1"):
        pass


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ünïcödé",
        "雪🦆",
        "a'b",
        'a"b',
        "'; DROP TABLE note; --",
        "%s %d ? :x $1",
        "a\\b\n\t",
        "x" * 10**6,
    ],
    ids=range(9),
)
def test_text_is_data(database: Database, text: str) -> None:
    with database.store.write() as tx:
        put(tx, 1, text)
        tx.run_many("INSERT INTO note (id, body) VALUES (?, ?)", [(2, text), (3, text)])

    with database.store.read() as tx:
        assert tx.all("SELECT body FROM note WHERE body = ?", (text,)) == [(text,)] * 3


def test_a_question_mark_or_percent_in_sql_means_the_same_everywhere(database: Database) -> None:
    with database.store.write() as tx:
        put(tx, 1, "abc")

    with database.store.read() as tx:
        assert tx.one("SELECT id FROM note WHERE body LIKE 'a%' AND id = ?", (1,)) == (1,)


@pytest.mark.parametrize("number", [0, -1, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_whole_numbers_are_exact(database: Database, number: int) -> None:
    with database.store.write() as tx:
        put(tx, 1, number=number)

    with database.store.read() as tx:
        assert tx.all("SELECT number FROM note") == [(number,)]


def test_blobs_and_nulls_come_back(database: Database) -> None:
    word = database.store.dialect.words["blob"]
    with database.store.write() as tx:
        tx.run("CREATE TABLE pile (id BIGINT, stuff " + word + ")")
        tx.run("INSERT INTO pile VALUES (?, ?)", (1, bytes(range(256)) * 100))
        tx.run("INSERT INTO pile VALUES (?, ?)", (2, None))

    with database.store.read() as tx:
        (first,), (second,) = tx.all("SELECT stuff FROM pile ORDER BY id")
    assert (bytes(first), second) == (bytes(range(256)) * 100, None)


def test_many_rows_at_once_are_all_there(database: Database) -> None:
    with database.store.write() as tx:
        tx.run_many("INSERT INTO note (id, number) VALUES (?, ?)", ((n, n) for n in range(5000)))
        tx.run_many("INSERT INTO note (id, number) VALUES (?, ?)", [])

    with database.store.read() as tx:
        assert tx.one("SELECT COUNT(*), SUM(number) FROM note") == (5000, 4999 * 2500)


def test_keys_sort_by_code_point_everywhere(database: Database) -> None:
    words = ["a", "B", "_", "é", "Z", "a/", "a0", "ab"]
    with database.store.write() as tx:
        tx.run("CREATE TABLE word (w " + database.store.dialect.words["key"] + ")")
        tx.run_many("INSERT INTO word VALUES (?)", [(w,) for w in words])

    with database.store.read() as tx:
        assert [w for (w,) in tx.all("SELECT w FROM word ORDER BY w")] == sorted(words)


def test_ids_are_never_given_twice(database: Database) -> None:
    word = database.store.dialect.words["id"]
    with database.store.write() as tx:
        tx.run("CREATE TABLE counted (n " + word + ", x BIGINT)")
        first = tx.one("INSERT INTO counted (x) VALUES (1) RETURNING n")
        tx.run("DELETE FROM counted")
        second = tx.one("INSERT INTO counted (x) VALUES (1) RETURNING n")

    assert first is not None
    assert second is not None
    assert second[0] > first[0]


def test_more_threads_than_connections_wait_for_one(database: Database) -> None:
    def write(n: int) -> None:
        with database.store.write() as tx:
            put(tx, n)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(write, range(60)))

    assert ids(database.store) == list(range(60))


def test_a_closed_store_begins_nothing(database: Database) -> None:
    database.store.close()

    with pytest.raises(DatabaseError) as caught:
        ids(database.store)

    assert "open it again" in caught.value.hint


def test_migrations_make_the_same_tables_and_columns_everywhere(
    database: Database, tmp_path: Path
) -> None:
    assert schema_number(database.store) == 0
    apply_migrations(database.store, known_migrations())
    apply_migrations(database.store, known_migrations())
    reference_path = tmp_path / "reference.db"
    reference_path.touch()
    reference = Store(SqliteDialect(reference_path, timeout_s=5, pool_size=1), timeout_s=5)
    apply_migrations(reference, known_migrations())

    assert schema_number(database.store) == known_migrations()[-1].number
    found = columns(database.store) - {("note", c) for c in ("id", "body", "number")}
    assert found == columns(reference)
    assert len({table for table, _ in found}) > 15
    reference.close()


def columns(store: Store) -> set[tuple[str, str]]:
    with store.read() as tx:
        if store.dialect.name == "postgres":
            sql = (
                "SELECT table_name, column_name FROM information_schema.columns"
                " WHERE table_schema = current_schema()"
            )
        else:
            sql = (
                "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
                " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'"
            )
        return {(row[0], row[1]) for row in tx.all(sql)}


@pytest.fixture(params=["file", "memory", pytest.param("postgres", marks=pytest.mark.postgres)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[lakebed.Lake]:
    uri = {"file": str(tmp_path / "lake"), "memory": ":memory:"}.get(request.param)
    uri = uri or request.getfixturevalue("postgres_url")
    warehouse = tmp_path / "warehouse" if request.param == "postgres" else None
    with lakebed.open(uri, create=True, warehouse=warehouse) as lake:
        yield lake


NAMES = ["Robert'); DROP TABLE tables;--", 'quo"ted', "pct%s?", "ünï 雪", "a b", "select"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_data(lake: lakebed.Lake, name: str) -> None:
    try:
        table = lake.create_table(f"ns.{name}", "id long not null")
    except lakebed.InvalidInput as error:
        assert error.hint  # noqa: PT017
        assert lake.tables() == []
        return
    table.append([{"id": 1}], message=name, author=name, idempotency_key=name, txn=(name, 1))

    assert lake.tables() == [f"ns.{name}"]
    newest = lake.table(f"ns.{name}").history()[0]
    assert (newest.message, newest.author) == (name, name)
    assert lake.table(f"ns.{name}").append([{"id": 1}], txn=(name, 1)).replayed
    assert lake.check().clean


@pytest.mark.parametrize("option", ["message", "author", "idempotency_key"])
def test_text_that_postgresql_cannot_keep_is_refused_everywhere(
    lake: lakebed.Lake, option: str
) -> None:
    table = lake.create_table("a.t", "id long not null")

    for text in ("nul\0", "\ud800"):
        with pytest.raises(InvalidInput):
            table.append([{"id": 1}], **{option: text})  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            table.append([{"id": 1}], summary={text: "v"})
        with pytest.raises(InvalidInput):
            table.append([{"id": 1}], summary={"k": text})
        with pytest.raises(InvalidInput):
            table.append([{"id": 1}], txn=(text, 1))
        with pytest.raises(InvalidInput):
            table.set_properties({"k": text})
        with pytest.raises(InvalidInput):
            lake.create_namespace("n", {"k": text})
        with pytest.raises(InvalidInput):
            lake.create_table("a.u", "id long", comment=text)

    assert table.version == 0
    assert lake.tables() == ["a.t"]
