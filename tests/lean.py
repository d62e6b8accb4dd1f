"""Javas that start cheaply: tests are small, so compiling well and loading classes are what costs.

`lean(connectors)` gives a JVM's options. Its classes come from an archive, made once for the Java,
the Spark and the class path at hand; a Java that cannot have one goes without.
"""

import fcntl
import functools
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from lakebed.engines.spark.jars import cached_jars
from lakebed.engines.spark.java import find_java

C1 = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_FOLDER = Path(sys.prefix) / "spark-classes"  # goes with the environment
_MAKE_S = 900  # a busy machine
_QUIET = "-Xlog:disable"  # it warns of classes that it leaves out, on stdout
# As mapped: moving it to a random address costs more than it protects a test from.
_USED = "-Xshare:auto -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"

_WARM_UP = """
import sys
from pathlib import Path

import lakebed
from lakebed.engines.spark.session import has_iceberg

folder, options = Path(sys.argv[1]), sys.argv[2]
with lakebed.open(folder / "lake", create=True) as lake:
    table = lake.create_table("a.t", "id long, p string, l array<long>", partition_by=["p"])
    sp = lake.spark(
        master="local[2]",
        memory="512m",
        config={
            "spark.driver.extraJavaOptions": options,
            "spark.local.dir": str(folder),
            "spark.sql.warehouse.dir": str(folder / "spark"),
            "spark.sql.shuffle.partitions": "2",
        },
    )
    session = sp.session
    rows = session.range(10).selectExpr("id", "string(id % 2) AS p", "array(id) AS l")
    sp.append(rows.mapInArrow(lambda batches: batches, rows.schema), "a.t")
    merge = sp.merge("a.t", rows.where("id > 5"), "t.id = s.id").when_matched_update({"p": "'2'"})
    merge.when_not_matched_insert_all().execute()
    sp.delete("a.t", "id < 4")
    assert sp.table("a.t").groupBy("p").count().count() == 3
    stream = session.readStream.format("lakebed").option("lake", lake.uri)
    query = stream.option("skipChangeCommits", True).load("a.t").writeStream.format("noop")
    query = query.option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    if has_iceberg(session):
        lake.publish()
        assert session.read.format("delta").load(table.location).count() == 6
java = session.sparkContext._gateway.proc
session.stop()
java.stdin.close()
java.wait()
"""


@functools.cache
def lean(*, connectors: bool = True) -> str:
    """For a class path that begins with the jars of `lakebed spark jars`, or has none of them."""
    jars = [*(cached_jars() or ()), *(cached_jars(("jdbc",)) or ())] if connectors else []
    java = find_java()
    known = [pyspark.__version__, str(java.home), str(java.version), *map(str, jars)]
    known += [str(path.stat().st_mtime_ns) for path in (java.home / "bin" / "java", *jars)]
    archive = _FOLDER / f"{hashlib.sha256(repr(known).encode()).hexdigest()[:16]}.jsa"
    none = archive.with_suffix(".none")
    _FOLDER.mkdir(exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other worker may be making it
        if not archive.exists() and not none.exists() and not _made(archive, connectors=connectors):
            none.touch()
    return f"{C1} {_QUIET} -XX:SharedArchiveFile={archive} {_USED}" if archive.exists() else C1


def lean_environment(*, connectors: bool = True) -> dict[str, str]:
    """For programs that start Spark themselves; without the connectors their cache is empty."""
    made = {**os.environ, "JDK_JAVA_OPTIONS": lean(connectors=connectors)}
    return made if connectors else {**made, "XDG_CACHE_HOME": str(_FOLDER / "no-cache")}


def _made(archive: Path, *, connectors: bool) -> bool:
    partial = archive.with_suffix(f".{os.getpid()}")
    given = {} if connectors else {"XDG_CACHE_HOME": str(_FOLDER / "no-cache")}
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "JDK_"))}
    with tempfile.TemporaryDirectory() as folder:
        options = f"{C1} {_QUIET} -XX:ArchiveClassesAtExit={partial}"
        subprocess.run(
            [sys.executable, "-c", _WARM_UP, folder, options],
            env={**ours, **given},
            capture_output=True,
            text=True,
            check=True,
            timeout=_MAKE_S,
        )
    if partial.exists():
        partial.replace(archive)
    return archive.exists()
