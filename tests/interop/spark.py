"""Spark reads what we publish: `spark_rows("delta", table.location)` and the like.

All workers of a test run share one Spark session, in a process of its own (spark_driver.py). The
first to ask starts it; it ends with the last of them.
"""

import contextlib
import fcntl
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from lakebed.engines.spark.jars import cached_jars
from tests.lean import lean_environment

DRIVER = Path(__file__).parent / "spark_driver.py"
START_S = 300  # a busy machine
_started: list[subprocess.Popen[bytes]] = []  # kept: nobody waits for it
Row = dict[str, Any]
Format = Literal["delta", "iceberg"]


class SparkRefused(Exception):
    """Spark gave an error instead of rows; the text has its causes in Java too."""


def spark_rows(
    format: Format,
    location: str | Path,
    *,
    version: int | None = None,
    ref: str | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> list[Row]:
    """The rows that a stock Spark with delta-spark and iceberg-spark-runtime returns.

    `location` is a table's folder (its newest state), or an Iceberg metadata file (the state of
    that file). `version` is a Delta version or an Iceberg snapshot id, `ref` an Iceberg branch or
    tag. `columns` are SQL expressions, so `"_row_id"` and `"_last_updated_sequence_number"` show
    the lineage of an Iceberg v3 table, `"_metadata.file_path"` and `"_file"` where rows stand;
    `where` is a SQL condition, which Spark pushes into the reader. It raises `SparkRefused`.
    """
    found: list[Row] = spark_table(
        format, location, version=version, ref=ref, columns=columns, where=where
    ).to_pylist()
    return found


def spark_table(
    format: Format,
    location: str | Path,
    *,
    version: int | None = None,
    ref: str | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> pa.Table:
    """As `spark_rows`, in Arrow: for values that Python's own types cannot hold."""
    question = {
        "format": format,
        "location": str(metadata_file(location) if format == "iceberg" else location),
        "version": ref if version is None else str(version),
        "columns": list(columns or ()),
        "where": where,
    }
    return _ask(question)


def spark_changes(location: str | Path, first: int, last: int) -> pa.Table:
    """A Delta table's change feed, both versions included."""
    question = {
        "format": "delta",
        "location": str(location),
        "version": None,
        "columns": [],
        "where": None,
        "changes": [first, last],
    }
    return _ask(question)


def _ask(question: dict[str, Any]) -> pa.Table:
    connection = _connection()
    try:
        connection.send_bytes(json.dumps(question).encode())
        outcome, content = connection.recv_bytes(), connection.recv_bytes()
    except (EOFError, OSError):
        pytest.fail(f"Spark is gone\n{_log()}", pytrace=False)
    if outcome == b"error":
        raise SparkRefused(content.decode())
    return pa.ipc.open_stream(content).read_all()


def metadata_file(location: str | Path) -> Path:
    """The newest of a folder: by its path, Spark opens only what a Hadoop catalog has named."""
    path = Path(location)
    if path.suffix == ".json":
        return path
    return path / f"metadata/{(path / 'metadata/version-hint.text').read_text()}.metadata.json"


@functools.cache
def _connection() -> Connection:
    """Of this worker, to the one session; it is an error, never a skip, when there is none."""
    if cached_jars() is None:
        pytest.fail("no connectors: run `lakebed spark jars`", pytrace=False)
    folder = _folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _attach() or _start()


def _folder() -> Path:
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    return Path(tempfile.gettempdir()) / f"lakebed-spark-{run[:12]}"


def _attach() -> Connection | None:
    with contextlib.suppress(OSError, EOFError):
        connection = Client(str(_folder() / "socket"), "AF_UNIX")
        assert connection.recv_bytes() == b"ready"
        return connection
    return None


def _start() -> Connection:
    folder = _folder()
    (folder / "socket").unlink(missing_ok=True)
    with (folder / "log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, DRIVER, folder],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=lean_environment(),
            start_new_session=True,  # it outlives the worker that happened to start it
        )
    _started.append(driver)
    deadline = time.monotonic() + START_S
    while driver.poll() is None and time.monotonic() < deadline:
        if (connection := _attach()) is not None:
            return connection
        time.sleep(0.1)
    driver.kill()
    text = _log()
    shutil.rmtree(folder, ignore_errors=True)
    pytest.fail(f"Spark did not start; `lakebed doctor` may say why\n{text}", pytrace=False)


def _log() -> str:
    log = _folder() / "log"
    return log.read_text()[-3000:] if log.exists() else ""
