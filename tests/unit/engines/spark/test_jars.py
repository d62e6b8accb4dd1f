"""Jars of the lock file: fetched from a repository, checked, kept, and not fetched again."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lakebed.engines.spark import jars
from lakebed.engines.spark.jars import cached_jars, fetch_jars
from lakebed.model.errors import (
    InvalidInput,
    JarCorrupt,
    JarsUnreachable,
    StorageError,
    UnsupportedFeature,
)

CONTENT = {"org/a/1/a-1.jar": b"a" * 1000, "org/b/2/b-2.jar": b"b" * 500_000}


class Repository(ThreadingHTTPServer):
    """Gives the jars; `failures` are status codes to answer with first."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.failures: list[int] = []
        self.asked: list[str] = []
        self.content = dict(CONTENT)
        self.cut = 0  # bytes to leave out at the end


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        repository = self.server
        assert isinstance(repository, Repository)
        path = self.path.removeprefix("/maven/")
        repository.asked.append(path)
        status = repository.failures.pop() if repository.failures else 200
        if status == 200 and path not in repository.content:
            status = 404
        self.send_response(status)
        self.end_headers()
        if status == 200:
            whole = repository.content[path]
            self.wfile.write(whole[: len(whole) - repository.cut])

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Repository]:
    lock = tmp_path / "jars.lock"
    lines = [
        f"{hashlib.sha256(data).hexdigest()} {len(data)} 4.1 connectors {path}\n"
        for path, data in CONTENT.items()
    ]
    lock.write_text("".join(lines))
    monkeypatch.setattr(jars, "_LOCK", lock)
    monkeypatch.setattr(jars, "_PAUSE_S", 0)
    monkeypatch.setattr(jars, "installed_spark", lambda: "4.1.4")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with Repository() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("LAKEBED_MAVEN_URL", f"http://127.0.0.1:{server.server_port}/maven/")
        yield server
        server.shutdown()
        thread.join()


def kept(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache/lakebed/jars").iterdir())


def test_jars_are_fetched_once(repository: Repository, tmp_path: Path) -> None:
    said: list[tuple[int, int]] = []
    assert cached_jars() is None

    paths = fetch_jars(progress=lambda there, total: said.append((there, total)))

    assert [path.read_bytes() for path in paths] == list(CONTENT.values())
    assert cached_jars() == paths
    assert said[-1] == (501_000, 501_000)
    repository.asked.clear()
    assert fetch_jars() == paths
    assert repository.asked == []
    assert kept(tmp_path) == ["a-1.jar", "b-2.jar"]


def test_a_damaged_jar_in_the_cache_is_fetched_again(repository: Repository) -> None:
    first, second = fetch_jars()
    repository.asked.clear()
    first.write_bytes(b"x" * 1000)

    assert fetch_jars() == [first, second]
    assert repository.asked == ["org/a/1/a-1.jar"]
    assert first.read_bytes() == b"a" * 1000


def test_a_jar_that_is_not_the_locked_one_is_not_kept(
    repository: Repository, tmp_path: Path
) -> None:
    repository.content["org/a/1/a-1.jar"] = b"A" * 1000

    with pytest.raises(JarCorrupt, match=r"org/a/1/a-1\.jar") as caught:
        fetch_jars()
    assert "LAKEBED_MAVEN_URL" in caught.value.hint
    assert "a-1.jar" not in kept(tmp_path)
    assert cached_jars() is None


def test_a_busy_repository_is_asked_again(repository: Repository) -> None:
    repository.failures = [503, 500]

    assert len(fetch_jars()) == 2


def test_a_repository_without_the_jar_is_told_with_its_address(repository: Repository) -> None:
    del repository.content["org/b/2/b-2.jar"]

    with pytest.raises(JarsUnreachable, match=r"/maven/org/b/2/b-2\.jar.*404") as caught:
        fetch_jars()
    assert caught.value.retryable
    assert repository.asked.count("org/b/2/b-2.jar") == 1


def test_an_answer_that_ends_too_early_is_no_jar(repository: Repository, tmp_path: Path) -> None:
    repository.cut = 10

    with pytest.raises(JarsUnreachable, match="ended after"):
        fetch_jars()
    assert not (tmp_path / "cache").exists()


def test_a_mirror_that_is_no_address_is_refused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in ("nonsense", "http://127.0.0.1:1"):
        monkeypatch.setenv("LAKEBED_MAVEN_URL", url)
        with pytest.raises(JarsUnreachable, match=url):
            fetch_jars()


def test_a_cache_that_cannot_be_written_is_told(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    with pytest.raises(StorageError, match="file"):
        fetch_jars()


def test_sets_and_versions_that_are_not_locked_are_refused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="'nope'") as unknown:
        fetch_jars(["nope"])
    assert "connectors" in unknown.value.hint
    monkeypatch.setattr(jars, "installed_spark", lambda: "4.2.0")
    with pytest.raises(UnsupportedFeature, match=r"locked for PySpark 4\.1; installed is 4\.2\.0"):
        cached_jars()


def test_the_lock_file_fits_the_pyspark_that_is_installed() -> None:
    locked = jars.locked_jars([jars.CONNECTORS])

    assert len(locked) == 8
    assert all(len(jar.digest) == 64 and jar.size_bytes > 10_000 for jar in locked)
