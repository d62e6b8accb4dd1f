"""The connectors' jars: named by a lock file, fetched once from a Maven repository into a cache."""

import hashlib
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lakebed.engines.spark.cache import put_whole
from lakebed.model.errors import (
    InvalidInput,
    JarCorrupt,
    JarsUnreachable,
    UnsupportedFeature,
)
from lakebed.storage.cache.place import user_cache

CONNECTORS, DRIVERS = "connectors", "jdbc"
MIRROR = "LAKEBED_MAVEN_URL"
_CENTRAL = "https://repo1.maven.org/maven2"
_LOCK = Path(__file__).parent / "jars.lock"
_TIMEOUT_S = 60
_ATTEMPTS = 3
_PAUSE_S = 0.5
_AT_ONCE = 4
_CHUNK_BYTES = 1 << 18

Progress = Callable[[int, int], None]  # bytes there, bytes in all


@dataclass(frozen=True, slots=True)
class Jar:
    digest: str  # SHA-256
    size_bytes: int
    spark: str  # the minor version of PySpark that it is for
    set: str
    path: str  # in a Maven repository

    @property
    def kept(self) -> Path:
        return user_cache("jars") / Path(self.path).name

    @property
    def is_cached(self) -> bool:
        """By its size: it was checked when it was fetched."""
        try:
            return self.kept.stat().st_size == self.size_bytes
        except OSError:
            return False


def installed_spark() -> str | None:
    """PySpark's version, known without importing it."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None


def locked_jars(sets: Iterable[str]) -> list[Jar]:
    """The jars of sets for the PySpark that is installed; for the newest locked when none is."""
    jars = [_entry(line) for line in _LOCK.read_text(encoding="utf-8").splitlines()]
    spark = installed_spark() or max(jar.spark for jar in jars)
    minor = ".".join(spark.split(".")[:2])
    wanted = []
    for name in sets:
        found = [jar for jar in jars if jar.set == name]
        fitting = [jar for jar in found if jar.spark == minor]
        if not found:
            known = ", ".join(sorted({jar.set for jar in jars}))
            raise InvalidInput(f"there is no set of jars {name!r}", hint=f"the sets are: {known}")
        if not fitting:
            known = ", ".join(sorted({jar.spark for jar in found}))
            raise UnsupportedFeature(
                f"the {name} are locked for PySpark {known}; installed is {spark}",
                hint="pip install 'lakebed[spark]' brings the PySpark that fits",
            )
        wanted += fitting
    return wanted


def cached_jars(sets: Iterable[str] = (CONNECTORS,)) -> list[Path] | None:
    """Where they are; None unless all of them are there."""
    jars = locked_jars(sets)
    return [jar.kept for jar in jars] if all(jar.is_cached for jar in jars) else None


def fetch_jars(sets: Iterable[str] = (CONNECTORS,), progress: Progress | None = None) -> list[Path]:
    """Each is checked, and fetched if it is not there or not whole; offline when all are."""
    jars = locked_jars(sets)
    done = _Tally(sum(jar.size_bytes for jar in jars), progress)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda jar: _fetch(jar, done), jars))


class _Tally:
    """Bytes that are there; whatever thread adds to it, the sum only grows."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._there: dict[str, int] = {}

    def say(self, jar: Jar, size_bytes: int) -> None:
        self._there[jar.path] = max(size_bytes, self._there.get(jar.path, 0))
        if self._progress is not None:
            self._progress(sum(list(self._there.values())), self._total)


def _entry(line: str) -> Jar:
    digest, size_bytes, spark, name, path = line.split()
    return Jar(digest, int(size_bytes), spark, name, path)


def _fetch(jar: Jar, done: _Tally) -> Path:
    if not (jar.is_cached and _digest(jar.kept.read_bytes()) == jar.digest):
        content = _download(jar, done)
        if _digest(content) != jar.digest:
            raise _corrupt(jar, content)
        put_whole(content, jar.kept)
    done.say(jar, jar.size_bytes)
    return jar.kept


def _download(jar: Jar, done: _Tally) -> bytes:
    url = (os.environ.get(MIRROR) or _CENTRAL).rstrip("/") + f"/{jar.path}"
    problem: Exception | None = None
    for attempt in range(_ATTEMPTS):
        try:
            return _read(url, jar, done)
        except (OSError, ValueError) as error:
            problem = error
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if refused or isinstance(error, ValueError):
                break
        time.sleep(_PAUSE_S * 2**attempt)
    raise JarsUnreachable(
        f"cannot fetch {url}: {problem}",
        hint=f"name a Maven repository that this machine reaches as {MIRROR},"
        f" or put the jar into {jar.kept.parent}",
        url=url,
    ) from problem


def _read(url: str, jar: Jar, done: _Tally) -> bytes:
    content = bytearray()
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the user's choice
        while chunk := answer.read(_CHUNK_BYTES):
            content += chunk
            done.say(jar, min(len(content), jar.size_bytes))
    if len(content) < jar.size_bytes:
        raise OSError(f"it ended after {len(content)} of {jar.size_bytes} bytes")
    return bytes(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _corrupt(jar: Jar, content: bytes) -> JarCorrupt:
    return JarCorrupt(
        f"{jar.path} has {len(content)} bytes with SHA-256 {_digest(content)},"
        f" but the lock file says {jar.size_bytes} bytes with {jar.digest}; it was not kept",
        hint=f"check the mirror that {MIRROR} names" if os.environ.get(MIRROR) else "try again",
        path=jar.path,
    )
