"""Azure: npm's Azurite, for the storage suite; where there is no npm, those tests are left out."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from servers.process import cache, end, free_port, is_alive, spawn

NAME = "azure"
VARIABLE = "LAKEBED_TEST_AZURE"
AZURITE = "3.37.0"
# Every Azurite has this account, with this key.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def launch() -> dict[str, str] | None:
    program = azurite()
    if program is None:
        print("test-env: no npm, so storage on Azure is NOT tested", file=sys.stderr)
        return None
    port = free_port()
    blobs = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", "{folder}"]
    return spawn(["node", str(program), "--silent", "--skipApiVersionCheck", *blobs], port, {})


def is_running(server: Mapping[str, str]) -> bool:
    return is_alive(server)


def remove(server: Mapping[str, str]) -> None:
    end(server)


def url(server: Mapping[str, str]) -> str:
    return f"http://{ACCOUNT}:{quote(KEY, safe='')}@127.0.0.1:{server['port']}"


def azurite() -> Path | None:
    folder = cache("servers") / f"azurite-{AZURITE}"
    program = folder / "node_modules/azurite/dist/src/blob/main.js"
    if not program.exists() and shutil.which("npm") and shutil.which("node"):
        print("test-env: installing Azurite, once", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts"]
        subprocess.call([*install, f"azurite@{AZURITE}"], cwd=folder, stdout=sys.stderr)
    return program if program.exists() else None
