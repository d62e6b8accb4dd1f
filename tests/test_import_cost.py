"""Importing lakebed and asking for help stay cheap: no heavy module, little CPU."""

import subprocess
import sys

import pytest

HEAVY = {
    "datafusion",
    "duckdb",
    "numpy",
    "obstore",
    "pandas",
    "polars",
    "psycopg",
    "pyarrow",
    "pyspark",
    "sqlglot",
}
LIMIT_S = 0.3
COMMANDS = {"import": ["-c", "import lakebed"], "help": ["-m", "lakebed", "--help"]}
# Runs the rest of its arguments as a child and prints the child's CPU seconds.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_no_heavy_module_is_loaded(command: list[str]) -> None:
    traced = [sys.executable, "-X", "importtime", *command]

    answer = subprocess.run(traced, capture_output=True, text=True, check=True)

    lines = [line for line in answer.stderr.splitlines() if line.startswith("import time:")]
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert "lakebed" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_cpu_time_is_under_the_limit(command: list[str]) -> None:
    measured = [sys.executable, "-c", MEASURE, sys.executable, *command]

    seconds = min(float(subprocess.check_output(measured)) for _ in range(5))

    assert seconds < LIMIT_S
