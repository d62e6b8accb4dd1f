"""DuckDB 1.5.5 reads what we publish: it has an interpreter of its own (duckdb_driver.py)."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).parent / "duckdb_driver.py"
PYTHON = "LAKEBED_DUCKDB155_PYTHON"


def asked_of_duckdb(queries: Sequence[str], *, setup: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The answer to each query, in one process; it is an error, never a skip, without one."""
    python = os.environ.get(PYTHON)
    if not python:
        pytest.fail(f"set {PYTHON}, or run `make interop`", pytrace=False)
    done = subprocess.run(
        [python, str(DRIVER)],
        input=json.dumps({"setup": setup, "queries": queries}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
