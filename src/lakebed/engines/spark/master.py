"""Where Spark runs: the URL of a master, checked before Spark is asked."""

import os
import re
import socket
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from lakebed.model.errors import InvalidInput, SparkError

_MASTER = re.compile(
    r"local|local\[(\*|\d+)(,\s*\d+)?\]|local-cluster\[[\d,\s]+\]|yarn|(spark|k8s|sc)://.+"
)
_PORTS = {"spark": 7077, "sc": 15002}  # unless the URL says otherwise
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_TLS = re.compile(r";(token|use_ssl)=", re.IGNORECASE)
_ANSWER_S = 10.0
_GREETING_S = 30.0  # of a server that may be busy
# What a client of HTTP/2 says first, with no settings of its own; the answer is settings too.
_HEADER, _KIND, _SETTINGS = 9, 3, 4
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0))


def check_master(master: str | None) -> None:
    """Spark's own complaint is a page of Java."""
    if master is not None and not _MASTER.fullmatch(master):
        raise InvalidInput(
            f"{master!r} names no Spark master",
            hint="write local[*], spark://HOST:PORT, yarn, k8s://URL or, for Spark Connect, sc://HOST",
        )


def refuse_silent(master: str) -> None:
    """Spark itself asks for minutes, and then says something else."""
    failure: OSError | None = None
    for host, port in _addresses(master):
        try:
            with socket.create_connection((host, port), _ANSWER_S) as there:
                if master.startswith("sc://") and not _TLS.search(master):
                    _refuse_other(there, master)
        except OSError as error:
            failure = error
        else:
            return
    if failure is not None:
        raise SparkError(
            f"no Spark answers at {master}: {failure.strerror or failure}",
            hint="check the address, and that it can be reached from here",
        )


def _refuse_other(there: socket.socket, master: str) -> None:
    """A server of Spark Connect greets as HTTP/2 does; its client tries any other for minutes."""
    there.settimeout(_GREETING_S)
    greeting = b""
    try:
        there.sendall(_PREFACE)
        while len(greeting) < _HEADER and (more := there.recv(_HEADER - len(greeting))):
            greeting += more
    except OSError:
        greeting = b""  # it let go, or says nothing
    if len(greeting) < _HEADER or greeting[_KIND] != _SETTINGS:
        raise SparkError(
            f"what listens at {master} is no server of Spark Connect",
            hint="check the port: 15002 unless the server was told another",
        )


def _addresses(master: str) -> list[tuple[str, int]]:
    """Where somebody must listen, as far as the URL tells; masters may be several."""
    kind, _, rest = master.partition("://")
    if kind not in _PORTS:
        return []
    found = []
    for place in rest.partition("/")[0].split(","):
        try:
            parts = urlsplit(f"//{place}")
            host, port = parts.hostname, parts.port or _PORTS[kind]
        except ValueError:
            host, port = None, 0
        if not host:
            raise InvalidInput(
                f"{place!r} in {master!r} is no address", hint=f"write {kind}://HOST:PORT"
            )
        found.append((host, port))
    # Spark Connect goes through the proxies that the environment names.
    proxied = kind == "sc" and any(os.environ.get(name) for name in _PROXIES)
    return [] if proxied and not proxy_bypass(found[0][0]) else found
