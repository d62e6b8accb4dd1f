"""`lakebed doctor`: what is here of all that lakebed can use; or whether a warehouse works."""

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

import lakebed
from lakebed.cli.call import LAKE_VARIABLE, Call, Command, pass_call
from lakebed.cli.failures import ERROR, OK
from lakebed.cli.output import show_json, show_table
from lakebed.model.errors import LakebedError

_LIBRARIES = {"pandas": "pandas", "polars": "polars", "datafusion": "datafusion"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is there or not; `fix` is the command that brings it."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@click.command(cls=Command)
@click.argument("warehouse", required=False, metavar="[URI]")
@click.pass_context
@pass_call
def doctor(call: Call, context: click.Context, warehouse: str | None) -> None:
    """Tell what is here: Java, Spark, connectors, PostgreSQL, FUSE, engines, and the lake if named.

    Everything but the base is optional. Exits 1 only when the lake that was named cannot be opened.
    With the URI of a warehouse (a folder, s3://bucket/prefix), tries that instead: a race of two
    writers, a table, rows, a check; all is removed again. Exits 1 when a step fails.
    """
    if warehouse is not None:
        tried = list(_tried(warehouse))
        _show(tried, as_json=call.json, absent="failed")
        context.exit(OK if all(each.ok for each in tried) else ERROR)
    lake = _lake(call)
    _show([*_findings(), *([lake] if lake else [])], as_json=call.json, absent="missing")
    context.exit(OK if lake is None or lake.ok else ERROR)


def _show(findings: list[Finding], *, as_json: bool, absent: str) -> None:
    if as_json:
        show_json([asdict(each) for each in findings])
    else:
        rows = ([f.name, "ok" if f.ok else absent, f.detail, f.fix] for f in findings)
        show_table(["what", "state", "detail", "fix"], rows)


def _tried(warehouse: str) -> Iterator[Finding]:
    from lakebed.api.trial import Trial

    trial = Trial(warehouse)
    for name, step in trial.steps().items():
        done = _step(name, step)
        yield done
        if not done.ok:
            break
    yield _step("clean-up", trial.clean_up)


def _step(name: str, step: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, step())
    except LakebedError as error:
        return Finding(name, False, f"{error.code}: {error.message}", error.hint)


def _findings() -> Iterator[Finding]:
    yield Finding("python", True, platform.python_version())
    yield Finding("lakebed", True, lakebed.__version__)
    yield _java()
    yield _pyspark()
    yield _connectors()
    yield _library("postgresql driver", "psycopg", "postgres")
    yield _library("object stores", "obstore", "objects")
    yield _fuse()
    for name, extra in _LIBRARIES.items():
        yield _library(name, name, extra)


def _java() -> Finding:
    from lakebed.engines.spark.java import INSTALL, find_java

    try:
        java = find_java()
    except LakebedError as error:
        return Finding("java", False, error.message, INSTALL)
    return Finding("java", True, f"{java.version} from {java.origin}: {java.home}")


def _pyspark() -> Finding:
    from lakebed.engines.spark.jars import installed_spark

    found = installed_spark()
    return Finding(
        "pyspark", found is not None, found or "not installed", _install("spark", found is None)
    )


def _connectors() -> Finding:
    from lakebed.engines.spark.jars import cached_jars

    try:
        jars = cached_jars()
    except LakebedError as error:
        return Finding("spark connectors", False, error.message, error.hint)
    if jars is None:
        return Finding("spark connectors", False, "not in the cache", "lakebed spark jars")
    return Finding("spark connectors", True, f"{len(jars)} jars in {jars[0].parent}")


def _library(name: str, package: str, extra: str) -> Finding:
    try:
        return Finding(name, True, version(package))
    except PackageNotFoundError:
        return Finding(name, False, "not installed", _install(extra, True))


def _install(extra: str, needed: bool) -> str:
    return f"pip install 'lakebed[{extra}]'" if needed else ""


def _fuse() -> Finding:
    device = Path("/dev/fuse")
    if not device.exists():
        return Finding("fuse", False, "there is no /dev/fuse", "modprobe fuse")
    if not os.access(device, os.R_OK | os.W_OK):
        return Finding("fuse", False, "/dev/fuse may not be opened", "chmod a+rw /dev/fuse")
    program = shutil.which("fusermount3")
    if program is None:
        return Finding("fuse", False, "there is no fusermount3", "apt-get install fuse3")
    return Finding("fuse", True, program)


def _lake(call: Call) -> Finding | None:
    """The lake that was named; one that happens to be around the current folder does not count."""
    if not (call.lake or os.environ.get(LAKE_VARIABLE)):
        return None
    try:
        with call.open() as opened:
            return Finding("lake", True, f"{opened.uri}, {len(opened.tables())} tables")
    except LakebedError as error:
        return Finding("lake", False, f"{error.code}: {error.message}", error.hint)
