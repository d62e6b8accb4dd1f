"""Migrations: each applied once and whole, in order; what is newer or foreign is refused."""

import pytest

from lakebed.meta.migrate import Migration, apply_migrations, known_migrations, schema_number
from lakebed.meta.sqlite import SqliteDialect
from lakebed.meta.store import Store
from lakebed.model.errors import DatabaseCorrupt, DatabaseError, DatabaseNewer

ONE = Migration(1, "one", "-- a comment; with a semicolon\nCREATE TABLE lake (n {id}, b {blob});\n")
TWO = Migration(2, "two", "CREATE TABLE more (k {key});\nINSERT INTO lake (b) VALUES (NULL)")


@pytest.fixture
def store() -> Store:
    return Store(SqliteDialect(None, timeout_s=1, pool_size=1), timeout_s=1)


def test_each_is_applied_once_and_in_order(store: Store) -> None:
    assert schema_number(store) == 0
    assert apply_migrations(store, (ONE,)) == 1
    assert apply_migrations(store, (ONE, TWO)) == 2
    assert apply_migrations(store, (ONE, TWO)) == 2

    assert schema_number(store) == 2
    with store.read() as tx:
        assert tx.all("SELECT number, name FROM migrations ORDER BY number") == [
            (1, "one"),
            (2, "two"),
        ]
        assert tx.all("SELECT n FROM lake") == [(1,)]


def test_one_that_fails_leaves_no_trace(store: Store) -> None:
    apply_migrations(store, (ONE,))
    bad = Migration(2, "bad", "CREATE TABLE more (n BIGINT); SELECT nonsense")

    with pytest.raises(DatabaseError):
        apply_migrations(store, (ONE, bad))

    assert schema_number(store) == 1
    assert apply_migrations(store, (ONE, TWO)) == 2


def test_a_newer_database_is_refused_untouched(store: Store) -> None:
    apply_migrations(store, (ONE, TWO))

    with pytest.raises(DatabaseNewer) as caught:
        apply_migrations(store, (ONE,))

    assert "upgrade" in caught.value.hint


def test_tables_of_somebody_else_are_not_taken_for_a_lake(store: Store) -> None:
    with store.write() as tx:
        tx.run("CREATE TABLE lake (fish TEXT)")

    with pytest.raises(DatabaseCorrupt):
        schema_number(store)


def test_the_numbers_of_the_files_count_up() -> None:
    assert [m.number for m in known_migrations()] == list(range(1, len(known_migrations()) + 1))
