"""A database locked, damaged, newer, older, gone or full: a typed error, then work goes on."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

import lakebed
from lakebed.meta import migrate
from lakebed.meta.migrate import Migration, known_migrations
from lakebed.model.errors import (
    DatabaseCorrupt,
    DatabaseLocked,
    DatabaseNewer,
    DatabaseUnavailable,
    LakebedError,
    StorageFull,
    UpgradeRequired,
)
from tests.faults.conftest import REPO, Place
from tests.faults.driver import SCHEMA, rows
from tests.faults.health import assert_healthy, lake_ids
from tests.faults.opening import PROCESSES, TIMES

NEWEST = known_migrations()[-1].number
NEXT = Migration(
    NEWEST + 1, "next", "ALTER TABLE lake ADD COLUMN note TEXT; CREATE TABLE later (n {blob})"
)


@pytest.fixture
def made(sqlite_place: Place) -> Place:
    with sqlite_place.open(create=True) as lake:
        lake.create_table("a.t", SCHEMA).append(rows(0))
    return sqlite_place


def database(place: Place) -> Path:
    return Path(place.uri, "lakebed.db")


def test_a_database_locked_by_another_program_is_said_in_time(made: Place) -> None:
    with made.open(database__timeout_s=0.5) as lake, closing(connect(made)) as other:
        other.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()

        with pytest.raises(DatabaseLocked) as caught:
            lake.table("a.t").append(rows(1))

        assert time.monotonic() - started < 5
        assert (caught.value.code, caught.value.retryable) == ("DATABASE_LOCKED", True)
        assert caught.value.hint
        assert lake_ids(lake) == {"a.t": [0]}, "readers do not wait for writers"
        other.execute("ROLLBACK")
        assert lake.table("a.t").append(rows(2)).published
        assert lake.check().notes == []
        assert_healthy(lake, {"a.t": [0, 2]})


@pytest.mark.parametrize("lock", ["lakebed.db.lock", "lakebed.db.publish-1.lock"])
def test_a_holder_of_a_lock_that_was_stopped_is_waited_for_only_so_long(
    made: Place, lock: str
) -> None:
    with made.open(database__timeout_s=0.5) as lake, stopped_holder(Path(made.uri, lock)):
        if lock == "lakebed.db.lock":
            with pytest.raises(DatabaseLocked) as caught:
                lake.table("a.t").append(rows(1))
            assert "database.timeout-s" in caught.value.hint
        else:
            with pytest.warns(lakebed.PublishWarning, match="DATABASE_LOCKED"):
                assert not lake.table("a.t").append(rows(1)).published
        before = lake_ids(lake)["a.t"]
        assert before == ([0] if lock == "lakebed.db.lock" else [0, 1])

    with made.open() as lake:
        assert lake.table("a.t").append(rows(2)).published
        assert_healthy(lake, {"a.t": [*before, 2]})


DAMAGE = {
    "no database": lambda path: path.write_text("these are not the bytes you are looking for" * 99),
    "header": lambda path: overwrite(path, 0, b"\xff" * 100),
    "all but the header": lambda path: overwrite(path, 100, os.urandom(200_000)),
    "cut short": lambda path: os.truncate(path, 5000),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_database_is_refused_and_its_backup_works(made: Place, damage: str) -> None:
    kept = shutil.copy(database(made), database(made).with_name("kept"))
    DAMAGE[damage](database(made))  # type: ignore[no-untyped-call]

    with pytest.raises(DatabaseCorrupt) as caught:
        use(made)

    assert "backup" in caught.value.hint
    shutil.move(kept, database(made))
    for left_over in ("lakebed.db-wal", "lakebed.db-shm"):
        Path(made.uri, left_over).unlink(missing_ok=True)
    with made.open() as lake:
        assert_healthy(lake, {"a.t": [0]})


def test_a_database_damaged_while_open_is_an_error_of_ours(made: Place) -> None:
    with made.open() as lake:
        lake.table("a.t").append(rows(1))
        with closing(connect(made)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        overwrite(database(made), 4096, os.urandom(database(made).stat().st_size - 4096))

        with pytest.raises(DatabaseCorrupt):
            use(made)
        with pytest.raises(DatabaseCorrupt):
            append_many(lake)


def append_many(lake: lakebed.Lake) -> None:
    """Pages that are in memory may serve for a while."""
    for _ in range(20):
        lake.table("a.t").append(rows(2))


def use(place: Place) -> None:
    with place.open() as lake:
        lake_ids(lake)
        lake.table("a.t").append(rows(1))


def test_an_empty_file_is_no_lake_and_a_folder_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "lakebed.db").touch()
    with pytest.raises(lakebed.NotFound):
        lakebed.open(tmp_path)

    (tmp_path / "lakebed.db").unlink()
    (tmp_path / "lakebed.db").mkdir()
    for create in (True, False):
        with pytest.raises(LakebedError) as caught:
            lakebed.open(tmp_path, create=create)
        assert caught.value.hint


def test_a_database_removed_while_open_is_noticed_and_never_made_anew(made: Place) -> None:
    with made.open() as lake:
        table = lake.table("a.t")
        aside = database(made).rename(Path(made.uri, "aside"))

        for call in (lambda: table.append(rows(1)), lambda: table.version):
            with pytest.raises(DatabaseUnavailable) as caught:
                call()
            assert "lakebed.db" in caught.value.message
        assert not database(made).exists()

        aside.rename(database(made))
        assert table.append(rows(2)).published
        assert_healthy(lake, {"a.t": [0, 2]})


def test_a_database_replaced_by_its_backup_while_open_is_the_one_written_to(made: Place) -> None:
    kept = shutil.copy(database(made), database(made).with_name("kept"))
    with made.open() as lake:
        table = lake.table("a.t")
        lake.set_setting("publish.mode", "background")
        Path(kept).replace(database(made))
        for left_over in ("lakebed.db-wal", "lakebed.db-shm"):
            Path(made.uri, left_over).unlink(missing_ok=True)

        assert table.append(rows(1)).version == 2

    with made.open() as lake:
        assert_healthy(lake, {"a.t": [0, 1]})


def test_a_newer_database_is_refused(place: Place) -> None:
    place.open(create=True).close()
    execute(place, "INSERT INTO migrations (number, name, applied_ms) VALUES (999, 'future', 0)")

    for attempt in (
        place.open,
        lambda: place.open(create=True),
        lambda: lakebed.upgrade(place.uri),
    ):
        with pytest.raises(DatabaseNewer) as caught:
            attempt()
        assert (caught.value.code, "upgrade lakebed" in caught.value.hint) == (
            "DATABASE_NEWER",
            True,
        )


def test_an_older_sqlite_database_is_upgraded_on_open_and_a_copy_is_kept(
    made: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_next(monkeypatch)

    with made.open() as lake:
        assert_healthy(lake, {"a.t": [0]})
        assert lake.table("a.t").append(rows(1)).published

    lakebed.open(tmp_path / "fresh", create=True).close()
    assert schema_of(database(made)) == schema_of(tmp_path / "fresh" / "lakebed.db")
    copy = Path(made.uri, f"lakebed.db.before-{NEWEST + 1:04d}")
    monkeypatch.undo()
    copy.replace(database(made))
    with made.open() as lake:
        assert lake_ids(lake) == {"a.t": [0]}, "the copy is the lake as it was"


def test_the_copy_of_a_race_of_upgrades_is_the_old_database(
    made: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_next(monkeypatch)
    with ThreadPoolExecutor(6) as pool:
        for lake in pool.map(lambda _: made.open(), range(6)):
            lake.close()

    with closing(sqlite3.connect(Path(made.uri, f"lakebed.db.before-{NEWEST + 1:04d}"))) as copy:
        assert copy.execute("SELECT MAX(number) FROM migrations").fetchone() == (NEWEST,)


def test_a_migration_that_fails_leaves_the_old_database(
    made: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = schema_of(database(made))
    bad = Migration(
        NEWEST + 1, "bad", "CREATE TABLE later (n BIGINT); CREATE TABLE lake (n BIGINT)"
    )
    monkeypatch.setattr(migrate, "known_migrations", lambda: (*known_migrations(), bad))

    with pytest.raises(LakebedError):
        made.open()

    assert schema_of(database(made)) == before
    monkeypatch.undo()
    with made.open() as lake:
        assert_healthy(lake, {"a.t": [0]})


def test_an_older_postgresql_database_waits_for_upgrade(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_place.open(create=True) as lake:
        lake.create_table("a.t", SCHEMA).append(rows(0))
    with_next(monkeypatch)

    for create in (True, False):
        with pytest.raises(UpgradeRequired) as caught:
            postgres_place.open(create=create)
        assert "lakebed upgrade" in caught.value.hint

    assert lakebed.upgrade(postgres_place.uri) == (NEWEST, NEWEST + 1)
    assert lakebed.upgrade(postgres_place.uri) == (NEWEST + 1, NEWEST + 1)
    with postgres_place.open() as lake:
        assert_healthy(lake, {"a.t": [0]})


@pytest.mark.filterwarnings("ignore::lakebed.api.transaction.PublishWarning")
def test_a_full_disk_stops_writes_and_nothing_else(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "3m"), lakebed.open(disk / "lake", create=True) as lake:
        table = lake.create_table("a.t", SCHEMA)
        table.append(rows(0))
        filler = disk / "filler"
        fill(filler)

        kept, failed = append_until_full(table)

        assert isinstance(failed, StorageFull)
        assert failed.hint
        assert lake_ids(lake) == {"a.t": kept}

        filler.unlink()
        table.append(rows(100))
        assert_healthy(lake, {"a.t": [*kept, 100]})


@pytest.mark.filterwarnings("ignore::lakebed.api.transaction.PublishWarning")
@pytest.mark.parametrize("full", ["warehouse", "database"])
def test_a_full_disk_of_one_part_is_a_typed_error_or_a_late_publication(
    tmp_path: Path, full: str
) -> None:
    """Database and warehouse on disks of their own, so that each fails alone."""
    disk = tmp_path / "disk"
    with small_disk(disk, "2m"):
        folder = disk if full == "database" else tmp_path / "lake"
        warehouse = disk / "warehouse" if full == "warehouse" else tmp_path / "warehouse"
        with lakebed.open(folder, create=True, warehouse=warehouse) as lake:
            table = lake.create_table("a.t", SCHEMA)
            table.append(rows(0))
            fill(disk / "filler")

            kept, failed = append_until_full(table)

            assert isinstance(failed, StorageFull)
            assert lake_ids(lake) == {"a.t": kept}

            (disk / "filler").unlink()
            table.append(rows(999))
            assert_healthy(lake, {"a.t": [*kept, 999]})


def test_a_disk_that_can_only_be_read_is_said(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "3m"):
        with lakebed.open(disk / "lake", create=True) as lake:
            lake.create_table("a.t", SCHEMA).append(rows(0))
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)

        for place in (disk / "lake", disk / "other"):
            with pytest.raises(LakebedError) as caught:
                lakebed.open(place, create=True)
            assert caught.value.code == "STORAGE_READ_ONLY"
            assert caught.value.hint

        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        with lakebed.open(disk / "lake") as lake:
            assert lake.table("a.t").append(rows(2)).published
            assert_healthy(lake, {"a.t": [0, 2]})


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("", "INVALID_URI"),
        ("a\0b", "INVALID_URI"),
        ("s3://bucket/lake", "INVALID_URI"),
        ("file://elsewhere/lake", "INVALID_URI"),
        ("{tmp}/missing", "LAKE_NOT_FOUND"),
        ("{tmp}/file/below", "LAKE_NOT_FOUND"),
        ("postgresql://127.0.0.1:1/x", "DATABASE_UNAVAILABLE"),
        ("postgresql://user:secret@127.0.0.1:1/x", "DATABASE_UNAVAILABLE"),
        ("postgresql://127.0.0.1:1/x?schema=a-b", "INVALID_URI"),
        ("postgresql://127.0.0.1:notaport/x", "DATABASE_UNAVAILABLE"),
    ],
)
def test_a_place_that_is_none_is_refused_with_a_hint(tmp_path: Path, uri: str, code: str) -> None:
    (tmp_path / "file").touch()

    for create in (False, True):
        if create and code == "LAKE_NOT_FOUND":
            continue
        with pytest.raises(LakebedError) as caught:
            lakebed.open(uri.format(tmp=tmp_path), create=create, warehouse=tmp_path)
        assert caught.value.code == code
        assert caught.value.hint
        assert "secret" not in str(caught.value) + caught.value.hint


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LakebedError) as caught:
        lakebed.open(tmp_path / "file" / "below", create=True)

    assert (caught.value.code, bool(caught.value.hint)) == ("INVALID_URI", True)


def test_many_processes_create_and_use_one_lake_at_once(place: Place, tmp_path: Path) -> None:
    sqlite = place.kind == "sqlite"
    uris = [str(tmp_path / f"lake{n}") for n in range(8)] if sqlite else [place.uri]
    warehouse = "" if sqlite else str(place.warehouse)
    command = [sys.executable, "-m", "tests.faults.opening", warehouse, *uris]

    done = subprocess.run(
        command, cwd=REPO, stderr=subprocess.PIPE, text=True, check=False, timeout=120
    )

    assert done.returncode == 0, done.stderr
    for uri in uris:
        with lakebed.open(uri) as lake:
            assert_healthy(lake, {"a.t": list(range(PROCESSES * TIMES))})


def append_until_full(table: lakebed.Table) -> tuple[list[int], LakebedError | None]:
    """The ids that were acknowledged, and what ended it."""
    kept = [0]
    for n in range(1, 200):
        try:
            table.append(rows(n))
        except LakebedError as error:
            return kept, error
        kept.append(n)
    return kept, None


@contextmanager
def stopped_holder(lock: Path) -> Iterator[None]:
    """A process that took a lock and was stopped, as by Ctrl-Z."""
    code = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, 2); print(1, flush=True)"
    holder = subprocess.Popen(
        [sys.executable, "-c", code + "; sys.stdin.read()", lock],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        yield
    finally:
        holder.kill()
        holder.communicate()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return


def with_next(monkeypatch: pytest.MonkeyPatch) -> None:
    known = known_migrations()
    monkeypatch.setattr(migrate, "known_migrations", lambda: (*known, NEXT))


def connect(place: Place) -> sqlite3.Connection:
    return sqlite3.connect(database(place), isolation_level=None)


def execute(place: Place, sql: str) -> None:
    if place.kind == "sqlite":
        with closing(connect(place)) as connection:
            connection.execute(sql)
        return
    url, _, schema = place.uri.partition("?schema=")
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"SET search_path TO {schema}".encode())
        server.execute(sql.encode())


def schema_of(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return sorted(found.fetchall())


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
