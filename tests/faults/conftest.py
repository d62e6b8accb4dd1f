"""Lakes on both databases, and a process to kill."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import lakebed

DRIVER = Path(__file__).with_name("driver.py")
REPO = DRIVER.parents[2]


@dataclass(frozen=True)
class Place:
    """Where a lake is, or is going to be."""

    kind: str
    uri: str
    warehouse: Path

    def open(self, *, create: bool = False, **settings: object) -> lakebed.Lake:
        return lakebed.open(
            self.uri,
            create=create,
            warehouse=None if self.kind == "sqlite" else self.warehouse,
            settings={name.replace("__", ".").replace("_", "-"): v for name, v in settings.items()},
        )


@dataclass(frozen=True)
class Ended:
    code: int
    acknowledged: str


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return Place("sqlite", str(tmp_path / "lake"), tmp_path / "lake" / "warehouse")
    return Place("postgres", request.getfixturevalue("postgres_url"), tmp_path / "warehouse")


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return Place("sqlite", str(tmp_path / "lake"), tmp_path / "lake" / "warehouse")


@pytest.fixture
def postgres_place(postgres_url: str, tmp_path: Path) -> Place:
    return Place("postgres", postgres_url, tmp_path / "warehouse")


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Ended]]:
    """`driver(place, job, crash_at)` runs a job in a process of its own; see driver.py."""
    ready = tmp_path_factory.mktemp("driver") / "ready"
    with subprocess.Popen(
        [sys.executable, DRIVER, ready],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPO,
        env={k: v for k, v in os.environ.items() if k != "LAKEBED_CRASH_AT"},
    ) as process:

        def run(place: Place, job: str, crash_at: str = "") -> Ended:
            warehouse = "" if place.kind == "sqlite" else str(place.warehouse)
            request = {"job": job, "uri": place.uri, "warehouse": warehouse, "crash_at": crash_at}
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return Ended(**json.loads(process.stdout.readline()))

        yield run
        assert process.stdin is not None
        process.stdin.close()
