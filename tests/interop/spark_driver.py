"""A process of its own: one session for a whole test run, asked over FOLDER/socket.

A question is JSON: format, location, version, columns, where, and changes (first and last version)
for the change feed of a Delta table. Its answer is two messages: b"rows"
and an Arrow stream, or b"error" and a text. It ends when the last of those who asked has gone.
"""

import functools
import json
import os
import shutil
import sys
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from lakebed.engines.spark.jars import cached_jars
from lakebed.engines.spark.java import find_java

FIRST_ASKER_S = 60
CONFIGURATION = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,"
    "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Small tables: what costs is starting, planning and the number of tasks.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.ui.showConsoleProgress": "false",
}


def main(folder: Path) -> None:
    session = start(folder)
    askers = Askers(session)
    with Listener(str(folder / "socket"), "AF_UNIX") as listener:
        Thread(target=askers.welcome, args=[listener], daemon=True).start()
        askers.wait_until_gone()
    session.stop()
    shutil.rmtree(folder, ignore_errors=True)


def start(folder: Path) -> Any:
    os.environ["JAVA_HOME"] = str(find_java().home)
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):  # another Spark's
        os.environ.pop(name, None)
    builder = SparkSession.builder.master("local[2]").config(map={**CONFIGURATION})
    # On the class path of the program itself: cheaper than a copy through `spark.jars`. All of
    # them, as every session of ours has them: what is known of one class path serves the other.
    jars = [*(cached_jars() or ()), *(cached_jars(("jdbc",)) or ())]
    builder = builder.config("spark.driver.extraClassPath", os.pathsep.join(map(str, jars)))
    builder = builder.config("spark.local.dir", str(folder / "local"))
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


class Askers:
    """Everybody who is connected, each served by a thread."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._load = functools.lru_cache(maxsize=8)(self._load_once)
        self._changed = Condition()
        self._here = 0
        self._seen = 0

    def welcome(self, listener: Listener) -> None:
        while True:
            connection = listener.accept()
            with self._changed:
                self._here += 1
                self._seen += 1
                self._changed.notify_all()
            Thread(target=self._serve, args=[connection], daemon=True).start()

    def wait_until_gone(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._seen > 0, FIRST_ASKER_S)
            self._changed.wait_for(lambda: self._here == 0)

    def _serve(self, connection: Connection) -> None:
        try:
            connection.send_bytes(b"ready")
            while True:
                question = json.loads(connection.recv_bytes())
                for part in self._answer(question):
                    connection.send_bytes(part)
        except (EOFError, OSError):
            pass  # gone
        finally:
            with self._changed:
                self._here -= 1
                self._changed.notify_all()

    def _answer(self, question: dict[str, Any]) -> tuple[bytes, bytes]:
        try:
            frame = self._changes(question) or self._frame(
                question["format"], question["location"], question["version"]
            )
            frame = frame.where(question["where"]) if question["where"] else frame
            columns = question["columns"]
            return b"rows", stream((frame.selectExpr(*columns) if columns else frame).toArrow())
        except Exception as error:  # whatever Spark says is the answer
            return b"error", reasons(error).encode()

    def _changes(self, question: dict[str, Any]) -> Any:
        if "changes" not in question:
            return None
        first, last = question["changes"]
        reader = self._session.read.format("delta").option("readChangeFeed", "true")
        reader = reader.option("startingVersion", first).option("endingVersion", last)
        return reader.load(question["location"])

    def _frame(self, format: str, location: str, version: str | None) -> Any:
        """What cannot change is kept: loading a Delta version takes Spark several jobs."""
        fixed = version is not None or location.endswith(".json")
        return (self._load if fixed else self._load_once)(format, location, version)

    def _load_once(self, format: str, location: str, version: str | None) -> Any:
        reader = self._session.read.format(format)
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(location)


def stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def reasons(error: Any) -> str:
    """Spark's message, and those of its causes in Java, where the reason often stands."""
    found, cause = [str(error)], getattr(error, "java_exception", None)
    cause = cause or getattr(error, "_origin", None)
    while cause is not None:
        found.append(str(cause.toString()))
        cause = cause.getCause()
    return "\n".join(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
