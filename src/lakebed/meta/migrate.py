"""Brings a database to this program's schema: numbered files, each applied once, in order."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from lakebed.meta.store import Store, Tx
from lakebed.model.errors import DatabaseCorrupt, DatabaseNewer

_log = logging.getLogger("lakebed.meta")
_KEEP = (
    "CREATE TABLE migrations"
    " (number BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_ms BIGINT NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    text: str


@cache
def known_migrations() -> tuple[Migration, ...]:
    folder = resources.files("lakebed.meta.migrations")
    names = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    return tuple(
        Migration(int(name[:4]), name[5:-4], (folder / name).read_text("utf-8")) for name in names
    )


def schema_number(store: Store) -> int:
    """The newest migration applied; 0 for an empty database."""
    with store.read() as tx:
        if not _has_table(tx, store.dialect.name, "migrations"):
            if _has_table(tx, store.dialect.name, "lake"):
                raise DatabaseCorrupt(
                    "the database has tables named like lakebed's but no record of migrations",
                    hint="open another database or schema",
                )
            return 0
        row = tx.one("SELECT MAX(number) FROM migrations")
    return int(row[0] or 0) if row else 0


def refuse_newer(found: int, migrations: Sequence[Migration]) -> None:
    if found > migrations[-1].number:
        raise DatabaseNewer(
            f"the database has schema {found}, this lakebed knows up to {migrations[-1].number}",
            hint="upgrade lakebed: pip install -U lakebed",
        )


def apply_migrations(store: Store, migrations: Sequence[Migration]) -> int:
    """Apply what is missing, each in a transaction of its own; the number now in force.

    An empty database gets all in one: nobody may take a new lake for one of an older program.
    """
    found = schema_number(store)
    refuse_newer(found, migrations)
    missing = [m for m in migrations if m.number > found]
    for together in [missing] if found == 0 else [[m] for m in missing]:
        _apply(store, together)
    return migrations[-1].number


def _apply(store: Store, migrations: Sequence[Migration]) -> None:
    with store.write() as tx:
        if store.dialect.name == "postgres":
            # Two programs may create the same lake at once; the second waits and finds it done.
            tx.all("SELECT pg_advisory_xact_lock(7113301)")
        if not _has_table(tx, store.dialect.name, "migrations"):
            tx.run(_KEEP)
        for migration in migrations:
            if not tx.one("SELECT number FROM migrations WHERE number = ?", (migration.number,)):
                _apply_one(tx, store, migration)


def _apply_one(tx: Tx, store: Store, migration: Migration) -> None:
    for statement in _statements(migration.text):
        tx.run(_worded(statement, store))
    tx.run(
        "INSERT INTO migrations (number, name, applied_ms) VALUES (?, ?, ?)",
        (migration.number, migration.name, tx.now_ms()),
    )
    _log.info("applying migration %04d %s", migration.number, migration.name)


def _statements(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";") if part.strip()]


def _worded(statement: str, store: Store) -> str:
    for word, replacement in store.dialect.words.items():
        statement = statement.replace("{" + word + "}", replacement)
    return statement


def _has_table(tx: Tx, dialect: str, name: str) -> bool:
    if dialect == "sqlite":
        found = tx.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
    else:
        found = tx.one(
            "SELECT 1 FROM information_schema.tables"
            " WHERE table_schema = current_schema() AND table_name = ?",
            (name,),
        )
    return found is not None
