"""A standalone cluster of the installed PySpark on loopback: a master, and workers to be killed."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyspark

from lakebed.engines.spark.java import find_java
from tests.lean import lean

WAIT_S = 180.0
HOSTS = ("127.0.0.1", "127.0.0.2")  # a second copy of a task runs on another host only
# Run by every Python of the workers before anything else: for them a database is out of reach, and
# extras are not installed.
GUARD = '''
import sys

class NoDatabase:
    """Refuses to import what a database is opened with, and what lakebed itself does not bring."""

    def find_spec(self, name, path=None, target=None):
        refused = ("psycopg", "sqlite3", "lakebed.meta.postgres", "lakebed.meta.sqlite")
        if name.startswith(refused) or name in ("pandas", "polars", "datafusion", "grpc"):
            raise ImportError(f"{name} is not for executors")

sys.meta_path.insert(0, NoDatabase())
'''
_Found = TypeVar("_Found")
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"


def wait_until(look: Callable[[], _Found | None], what: str) -> _Found:
    """What `look` finds in the end: anything but None and False."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        found = look()
        if found is not None and found is not False:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {WAIT_S:.0f} s: {what}")


def parent_of(pid: int) -> int:
    # The name in brackets may hold anything; the parent stands two words behind it.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Cluster:
    """Processes with settings, logs and an environment of their own; all end with `stop`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "guard").mkdir()
        (folder / "guard" / "sitecustomize.py").write_text(GUARD)
        self._started: list[subprocess.Popen[bytes]] = []
        self._workers: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}  # by host
        _, log = self._start("master.Master", "127.0.0.1")
        self.url = wait_until(lambda: _found(_MASTER, log), "a master")
        self.heal()

    def environment(self) -> dict[str, str]:
        """Of a driver: as the tests', with no settings of another Spark."""
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        return {**ours, "SPARK_CONF_DIR": str(self.folder / "conf"), "SPARK_LOCAL_IP": "127.0.0.1"}

    def settings(self) -> dict[str, str]:
        """What an application needs to be small, and to be found by its executors."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": lean(connectors=False),
            "spark.executor.extraJavaOptions": lean(connectors=False),
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "1",
            "spark.local.dir": str(self.folder / "local"),
        }

    def kill_worker_of(self, task: int) -> None:
        """As when a machine is lost: the worker and the executor that this Python belongs to."""
        hosts = {process.pid: host for host, (process, _) in self._workers.items()}
        executor = task
        while (above := parent_of(executor)) not in hosts:
            executor = above
            assert executor > 1, f"{task} belongs to no worker"
        lost, _ = self._workers.pop(hosts[above])
        lost.kill()  # first, or it would start another executor at once
        lost.wait()
        os.kill(executor, signal.SIGKILL)

    def heal(self) -> None:
        """Workers in the places of those that were killed."""
        for host in HOSTS:
            if host not in self._workers:
                self._workers[host] = self._start_worker(host)
        for _, log in self._workers.values():
            wait_until(partial(_says, log, _REGISTERED), "a worker")

    def executors(self) -> list[int]:
        """Process ids of executors that live."""
        workers = {process.pid for process, _ in self._workers.values()}
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                said = (place / "cmdline").read_bytes()
                if b"ExecutorBackend" in said and parent_of(int(place.name)) in workers:
                    found.append(int(place.name))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
        return found

    def stop(self) -> None:
        """Workers end their executors when they are asked to end."""
        for process in reversed(self._started):
            process.terminate()
        for process in reversed(self._started):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start_worker(self, host: str) -> tuple["subprocess.Popen[bytes]", Path]:
        work = str(self.folder / "work")
        small = ("--cores", "1", "--memory", "1g", "--work-dir", work)
        return self._start("worker.Worker", host, *small, self.url)

    def _start(self, what: str, host: str, *more: str) -> tuple["subprocess.Popen[bytes]", Path]:
        home = Path(pyspark.__file__).parent
        log = self.folder / f"{what}-{host}-{len(self._started)}.log"
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}"]
        command += ["--host", host, "--port", "0", "--webui-port", "0", *more]
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, env=self._bare(home), stdout=out, stderr=subprocess.STDOUT, cwd=self.folder
            )
        self._started.append(process)
        return process, log

    def _bare(self, home: Path) -> Mapping[str, str]:
        """Nothing of the driver's environment: above all, no address of a database."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(home),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": lean(connectors=False),
            "PYTHONPATH": str(self.folder / "guard"),
        }


def _says(log: Path, text: str) -> bool:
    return text in log.read_text()


def _found(pattern: re.Pattern[str], log: Path) -> str | None:
    found = pattern.search(log.read_text())
    return found[1] if found else None
