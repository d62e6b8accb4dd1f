"""What all tests share: markers given by place, and a PostgreSQL schema of one's own."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # as below

from tests.examples import EXPLORING
from tests.stores import value_of

REPO = Path(__file__).resolve().parent.parent
POSTGRES = "LAKEBED_TEST_POSTGRES"
SUITES = ("interop", "faults", "spark")
CONNECT = "tests/spark/test_connect"  # files that share a server
LONGEST = (
    "tests/spark/test_cluster.py",
    "tests/spark/test_pipelines_cli.py",
    CONNECT,
    "tests/spark/test_streams_killed.py",
    "tests/spark/test_streams.py",
    "tests/spark/test_same_as_embedded.py",
    "tests/spark/test_read.py",
    "tests/spark/test_write.py",
    "tests/spark/test_write_faults.py",
    "tests/spark/test_pipelines_late.py",
    "tests/spark/test_stock_readers.py",
)

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
    """Files of interop and Spark prepare tables, readers and servers once; others go anywhere.

    The longest come first, so that no worker is left with one while the other has nothing to do.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith(CONNECT):
            return CONNECT
        return file if file.startswith(("tests/interop/", "tests/spark/")) else nodeid

    def _assign_work_unit(self, node: object) -> None:
        longest = next((scope for scope in LONGEST if scope in self.workqueue), None)
        if longest is not None:
            self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> WhatIsSharedStaysTogether:
    return WhatIsSharedStaysTogether(config, log)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is read from object stores is not kept in the folder of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LAKEBED_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The server to test with; it is an error, never a skip, when there is none."""
    server = value_of(POSTGRES)
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
