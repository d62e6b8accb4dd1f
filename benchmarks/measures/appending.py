"""One row appended and committed, by each system: what the measures of appends share."""

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from benchmarks.measure import Call, Case, Fact

POSTGRES = os.environ.get("LAKEBED_TEST_POSTGRES", "")
COLUMNS = "id long not null, at timestamp, name string, value double, ok boolean"
_WHEN = datetime(2026, 1, 1, tzinfo=UTC)
_WARM_UP = 10  # appends before those that count


@dataclass(frozen=True, slots=True)
class Target:
    """An open table: `append` commits the row of a number, `settle` waits for what comes later."""

    append: Callable[[int], object]
    count: Callable[[], int]
    settle: Callable[[], object] = lambda: None
    discard: Callable[[], object] = lambda: None  # what is not in the folder


class Appender(Protocol):
    """One of the systems; its table is new each time."""

    environment: str

    def begin(self, folder: Path) -> Target:
        """Make an empty table below a folder and open it."""


Drive = Callable[[Target, Case], dict[str, Fact]]  # what is timed


class Appends:
    """A measure's call on one system: warm up, then drive."""

    def __init__(self, name: str, appender: Appender, drive: Drive) -> None:
        self.environment = appender.environment
        self.owner = name
        self._appender = appender
        self._drive = drive

    def make(self, folder: Path, case: Case, data: Path) -> None:
        """Nothing: not every catalog is in the folder, so that none could be copied."""

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        target = self._appender.begin(folder)
        for n in range(_WARM_UP):
            target.append(n)
        target.settle()
        found: dict[str, Fact] = {}

        def run() -> None:
            found.update(self._drive(target, case))

        def facts(_: object) -> dict[str, Fact]:
            rows = target.count() - _WARM_UP
            target.discard()
            return {**found, "rows": rows}

        return Call(run, facts)


def row(n: int) -> dict[str, object]:
    return {"id": n, "at": _WHEN, "name": f"event {n}", "value": n / 2, "ok": True}


class Lakebed:
    """Everything by default: synced, and both formats published in the commit."""

    environment = "lakebed"

    def __init__(self, mode: str = "commit", *, postgres: bool = False) -> None:
        self._mode = mode
        self._postgres = postgres

    def begin(self, folder: Path) -> Target:
        import lakebed

        uri = folder / "lake"
        settings = {"publish.mode": self._mode}
        schema = _new_schema()
        if self._postgres:
            mark = "&" if "?" in POSTGRES else "?"
            place = f"{POSTGRES}{mark}schema={schema}"
            lake = lakebed.open(place, create=True, warehouse=uri, settings=settings)
        else:
            lake = lakebed.open(uri, create=True, settings=settings)
        table = lake.create_table("bench.events", COLUMNS)
        return Target(
            lambda n: table.append([row(n)]),
            lambda: table.scan(columns=["id"]).to_arrow().num_rows,
            lake.publish if self._mode == "background" else lambda: None,
            (lambda: _drop(schema)) if self._postgres else lambda: None,
        )


def _new_schema() -> str:
    return f"bench_{uuid.uuid4().hex}"


def _drop(schema: str) -> None:
    import psycopg

    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("at", pa.timestamp("us", "UTC")),
        ("name", pa.string()),
        ("value", pa.float64()),
        ("ok", pa.bool_()),
    ]
)


def _arrow(n: int) -> pa.Table:
    return pa.Table.from_pylist([row(n)], schema=_SCHEMA)


class Deltalake:
    """By path: a `DeltaTable` that is kept gets slower sooner. It syncs nothing."""

    environment = "peers"

    def begin(self, folder: Path) -> Target:
        from deltalake import DeltaTable, write_deltalake

        place = str(folder / "events")
        return Target(
            lambda n: write_deltalake(place, _arrow(n), mode="append"),
            lambda: DeltaTable(place).to_pyarrow_table(columns=["id"]).num_rows,
        )


class PyIceberg:
    """With a catalog in SQLite, which is all that it syncs."""

    environment = "peers"

    def begin(self, folder: Path) -> Target:
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog(
            "bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
        )
        catalog.create_namespace("bench")
        table = catalog.create_table("bench.events", _SCHEMA)
        return Target(
            lambda n: table.append(_arrow(n)),
            lambda: catalog.load_table("bench.events").scan(selected_fields=("id",)).count(),
        )


class DuckLake:
    """Rows are inlined into the catalog by default: here they are not, so that each commit writes
    a Parquet file. It syncs the catalog alone."""

    environment = "ducklake"

    def __init__(self, catalog: str) -> None:
        self._catalog = catalog

    def begin(self, folder: Path) -> Target:
        import duckdb

        extensions = import_module("duckdb_extensions")
        connection = duckdb.connect()
        for name in ("ducklake", "sqlite_scanner", "postgres_scanner"):
            extensions.import_extension(name)
            connection.execute(f"LOAD {name}")
        places = {
            "duckdb": f"{folder}/catalog.duckdb",
            "sqlite": f"sqlite:{folder}/catalog.sqlite",
            "postgres": f"postgres:{POSTGRES}",
        }
        options = [f"DATA_PATH '{folder}/data'", "DATA_INLINING_ROW_LIMIT 0"]
        schema = _new_schema()
        if self._catalog == "postgres":
            options.append(f"METADATA_SCHEMA '{schema}'")
        connection.execute(
            f"ATTACH 'ducklake:{places[self._catalog]}' AS lake ({', '.join(options)})"
        )
        connection.execute(
            'CREATE TABLE lake.events (id BIGINT NOT NULL, "at" TIMESTAMPTZ, name VARCHAR,'
            " value DOUBLE, ok BOOLEAN)"
        )
        insert = "INSERT INTO lake.events VALUES (?, ?, ?, ?, ?)"

        def count() -> int:
            found = connection.execute("SELECT count(DISTINCT id) FROM lake.events").fetchone()
            files = sum(1 for _ in (folder / "data").rglob("*.parquet"))
            assert found is not None, "a count has a row"
            assert files >= found[0], f"{files} Parquet files for {found[0]} commits"
            return int(found[0])

        def discard() -> None:
            if self._catalog == "postgres":
                connection.execute("DETACH lake")
                connection.execute(f"ATTACH '{POSTGRES}' AS server (TYPE postgres)")
                connection.execute(f"DROP SCHEMA server.{schema} CASCADE")

        return Target(
            lambda n: connection.execute(insert, list(row(n).values())), count, discard=discard
        )


PEERS: dict[str, Appender] = {
    "deltalake": Deltalake(),
    "pyiceberg": PyIceberg(),
    "ducklake on duckdb": DuckLake("duckdb"),
    "ducklake on sqlite": DuckLake("sqlite"),
}
PEERS_ON_POSTGRES: dict[str, Appender] = {"ducklake on postgres": DuckLake("postgres")}


def drive_all(target: Target, first: int, rows: int) -> None:
    for n in range(first, first + rows):
        target.append(n)
    target.settle()


def systems(names: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    """Those of a case: `others` only where a PostgreSQL server is named."""
    return [*names, *(others if POSTGRES else ())]
