"""What all tests share: markers given by place, and a PostgreSQL schema of one's own."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # as below

from tests.examples import EXPLORING

REPO = Path(__file__).resolve().parent.parent
POSTGRES = "LAKEBED_TEST_POSTGRES"
SUITES = ("interop", "faults", "spark")

# The same examples in every run, so that a change is judged by what it changes. New ones are looked
# for with `make explore`, and what they find becomes a test of its own.
settings.register_profile("repeatable", derandomize=True, deadline=None)  # machines are noisy
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile("explore" if EXPLORING else "repeatable")


@pytest.hookimpl(tryfirst=True)  # before -m selects by the markers given here
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for suite in SUITES:
            if REPO / "tests" / suite in item.path.parents:
                item.add_marker(suite)
        if "postgres_url" in getattr(item, "fixturenames", ()):
            item.add_marker("postgres")


class WhatIsSharedStaysTogether(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Tests on Spark share a session and ports, so one worker runs them all; others go anywhere.

    Files of interop prepare their tables and readers once, which takes up to a minute.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/spark/"):
            return "spark"
        return nodeid.partition("::")[0] if nodeid.startswith("tests/interop/") else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> WhatIsSharedStaysTogether:
    return WhatIsSharedStaysTogether(config, log)


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The server to test with; it is an error, never a skip, when there is none."""
    server = os.environ.get(POSTGRES) or _named_in(".env") or _named_in(".test-env/env")
    if not server:
        pytest.fail(f"no PostgreSQL: run `scripts/test-env start` or set {POSTGRES}", pytrace=False)
    return server


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of a fresh, empty schema, dropped after the test."""
    import psycopg
    from psycopg import sql

    schema = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    yield f"{postgres_server}{'&' if '?' in postgres_server else '?'}schema={schema}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def _named_in(file: str) -> str | None:
    path = REPO / file
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, value = line.partition("=")
        if name.strip() == POSTGRES:
            return value.strip()
    return None
