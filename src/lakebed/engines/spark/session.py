"""A Spark session tuned for the lake, and what can be known of one that somebody else made."""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import cast

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from lakebed.engines.spark.jars import DRIVERS, cached_jars
from lakebed.engines.spark.java import find_java
from lakebed.engines.spark.master import check_master, refuse_silent
from lakebed.model.errors import InvalidInput, SparkError, UnsupportedFeature

ICEBERG_EXTENSION = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_LOGGING = Path(__file__).parent / "log4j2.properties"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# They log what the exception says, with pages of Java, before it is raised.
_TELLS_TWICE = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_OLDEST = (4, 0)
_GIB = 1 << 30
_MOST_GIB = 8
_starting = Lock()  # the environment is changed while a session starts

# What a session of a Spark Connect server can have for itself.
_PER_SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 has no statistics
    "spark.sql.parquet.compression.codec": "zstd",
}
_TUNED = {
    **_PER_SESSION,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",  # tables are the lake's; no Derby folder
    "spark.ui.showConsoleProgress": "false",
}


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """`connectors`: None means when their jars are in the cache. `config` has the last word."""

    app_name: str = "lakebed"
    master: str | None = None
    connectors: bool | None = None
    ui: bool = False
    memory: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)


def start_session(options: SessionOptions) -> SparkSession:
    """A new session, or the one that lives in this process, which is left as it is."""
    with _starting:
        for name in _TELLS_TWICE:
            PySparkLogger.getLogger(name).disabled = True
        live = _live_session()
        if live is not None:
            _check_live(live, options)
            return live
        check_master(options.master)
        if options.master is not None:
            refuse_silent(options.master)
        if options.master is not None and options.master.startswith("sc://"):
            return _connected(options)
        with _environment():
            return _started(options)


def check_session(session: object) -> SparkSession:
    """A session that somebody else made, Spark Connect's included."""
    if not (isinstance(session, SparkSession) or _is_connect(session)):
        raise InvalidInput(
            f"{type(session).__name__} is no Spark session",
            hint="give a SparkSession, or nothing to have one started",
        )
    minor = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if minor < _OLDEST:
        raise UnsupportedFeature(
            f"PySpark {pyspark.__version__} is too old", hint="pip install 'lakebed[spark]'"
        )
    return cast(SparkSession, session)


def is_connect(session: SparkSession) -> bool:
    """Is it a client of a Spark Connect server, without a JVM of its own?"""
    return _is_connect(session)


def _is_connect(session: object) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


def has_iceberg(session: SparkSession) -> bool:
    """Can it read Iceberg tables? Asked by a look at its settings, which every session answers."""
    extensions = session.conf.get("spark.sql.extensions", "") or ""
    return ICEBERG_EXTENSION in extensions


def has_table(session: SparkSession, parts: Sequence[str]) -> bool:
    """Does Spark know a table or view of its own by this name?"""
    name = ".".join(f"`{part.replace('`', '``')}`" for part in parts)
    try:
        return session.catalog.tableExists(name)
    except PySparkException:
        return False  # a catalog that is none


def _live_session() -> SparkSession | None:
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # Known to every thread; a stopped one has no context any more.
    made = SparkSession._instantiatedSession  # noqa: SLF001 - there is no public way
    return made if made is not None and made._sc._jsc is not None else None  # noqa: SLF001 - as above


def _check_live(session: SparkSession, options: SessionOptions) -> None:
    if options.connectors and not has_iceberg(session):
        raise SparkError(
            "this process has a Spark session without the Iceberg connector already",
            hint="stop that session first, or start it with lake.spark(connectors=True)",
        )


def _connected(options: SessionOptions) -> SparkSession:
    given: dict[str, bool | float | int | str | None] = {**_PER_SESSION, **options.config}
    builder = SparkSession.builder.remote(str(options.master)).config(map=given)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise _failed(error) from error


def _started(options: SessionOptions) -> SparkSession:
    configuration: dict[str, bool | float | int | str | None] = {**_configuration(options)}
    builder = SparkSession.builder.appName(options.app_name).config(map=configuration)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise _failed(error) from error


def _failed(error: Exception) -> SparkError:
    # What Java says stands behind a colon, below the call that failed.
    lines = str(error).strip().splitlines()
    said = next((line[2:] for line in lines if line.startswith(": ")), lines[0])
    if "stopped SparkContext" in said:  # it says more only in its log
        said = "the cluster did not take the application"
    return SparkError(
        f"Spark did not start: {said}",
        hint="`lakebed doctor` says what is missing; what Spark printed says more",
    )


def _configuration(options: SessionOptions) -> dict[str, str]:
    # spark-submit and cluster platforms name the master themselves.
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    master = options.master or (None if submitted else "local[*]")
    made = dict(_TUNED)
    made["spark.ui.enabled"] = str(options.ui).lower()
    made["spark.driver.memory"] = options.memory or f"{_memory_gib()}g"
    # Only tables of Spark's own go there; its default is a folder where one happens to stand.
    made["spark.sql.warehouse.dir"] = str(Path(tempfile.gettempdir()) / "lakebed-spark-warehouse")
    if master is not None:
        made["spark.master"] = master
    local = master is not None and (master == "local" or master.startswith("local["))
    if local:
        made["spark.driver.host"] = made["spark.driver.bindAddress"] = "127.0.0.1"
    made |= _connectors(options, local=local)
    given = {name: str(value) for name, value in options.config.items()}
    quiet = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    made[_JAVA_OPTIONS] = f"{quiet} {given.pop(_JAVA_OPTIONS, '')}".strip()
    return made | given


def _connectors(options: SessionOptions, *, local: bool) -> dict[str, str]:
    if options.connectors is False:
        return _class_path((), local=local)
    try:
        jars = cached_jars()
    except UnsupportedFeature:
        if options.connectors:
            raise
        return _class_path((), local=local)
    if jars is None:
        if options.connectors:
            raise SparkError(
                "the connectors' jars are not in the cache", hint="run `lakebed spark jars`"
            )
        return _class_path((), local=local)
    return {
        **_class_path(jars, local=local),
        "spark.sql.extensions": f"{ICEBERG_EXTENSION},{_DELTA_EXTENSION}",
        "spark.sql.catalog.spark_catalog": _DELTA_CATALOG,
    }


def _class_path(jars: Sequence[Path], *, local: bool) -> dict[str, str]:
    """The jars, and drivers of databases where they have been fetched."""
    try:
        every = [*jars, *(cached_jars((DRIVERS,)) or ())]
    except (InvalidInput, UnsupportedFeature):  # none are locked for this Spark
        every = list(jars)
    # On the class path of the program itself: cheaper than a copy for executors there are none of.
    name, between = ("spark.driver.extraClassPath", os.pathsep) if local else ("spark.jars", ",")
    return {name: between.join(map(str, every))} if every else {}


def _memory_gib() -> int:
    """Half of the machine's, within bounds: the driver of a local session does all the work."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1
    return max(1, min(_MOST_GIB, total // (2 * _GIB)))


@contextmanager
def _environment() -> Iterator[None]:
    """What Spark takes from the environment alone: its Java, and the Python of its workers."""
    given = {"JAVA_HOME": str(find_java().home)}
    if "PYSPARK_PYTHON" not in os.environ:
        given["PYSPARK_PYTHON"] = sys.executable
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
