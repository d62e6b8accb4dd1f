"""What servers share: ports, the cache of their programs, and processes known by their id."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
READY_S = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def cache(name: str) -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "lakebed" / name


def pip_install(requirement: str, target: Path, *options: str) -> None:
    own = REPO / ".venv/bin/python"
    python = str(own) if own.exists() else sys.executable
    install = [python, "-m", "pip", "install", "--quiet", "--upgrade", "--no-deps", *options]
    subprocess.call([*install, "--target", str(target), requirement], stdout=sys.stderr)


def spawn(command: Sequence[str], port: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Start a server with its data in `{folder}`; its record once it listens."""
    folder = tempfile.mkdtemp(prefix="lakebed-test-")
    Path(folder, "data").mkdir()
    with Path(folder, "log").open("w") as log:
        process = subprocess.Popen(
            [part.format(folder=f"{folder}/data") for part in command],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    server = {"folder": folder, "pid": str(process.pid), "port": str(port)}
    limit = time.monotonic() + READY_S
    while not listens(port):
        if process.poll() is not None or time.monotonic() > limit:
            details = Path(folder, "log").read_text()
            end(server)
            sys.exit(f"test-env: {command[0]} did not start\n{details}")
        time.sleep(0.05)
    return server


def is_alive(server: Mapping[str, str]) -> bool:
    try:
        os.kill(int(server["pid"]), 0)
    except ProcessLookupError:
        return False
    # Another process may have the id by now.
    return listens(int(server["port"]))


def end(server: Mapping[str, str]) -> None:
    if is_alive(server):
        os.killpg(int(server["pid"]), signal.SIGTERM)
    shutil.rmtree(server["folder"], ignore_errors=True)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
