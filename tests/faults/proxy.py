"""A door between lakebed and PostgreSQL that can be shut at the worst moment."""

import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """`cut` loses the connection that speaks next: "before" the server hears it, or "after"."""

    def __init__(self, server_url: str) -> None:
        parts = urlsplit(server_url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.url = urlunsplit(parts._replace(netloc=f"{parts.username}@{host}:{port}"))
        self.cut: str | None = None
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def drop_all(self) -> None:
        for end in self._open:
            _shut(end)
        self._open.clear()

    def close(self) -> None:
        self._listener.close()
        self.drop_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                _shut(client)
                continue
            self._open += [client, server]
            for source, target in ((client, server), (server, client)):
                pump = threading.Thread(target=self._pump, args=(source, target), daemon=True)
                pump.start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self.cut is not None:
                    self._cut(source, target, data)
                    return
                target.sendall(data)
        _shut(source)
        _shut(target)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        how, self.cut = self.cut, None
        _shut(client)
        if how == "after":
            server.sendall(data)
            time.sleep(0.2)  # the server acts, and finds nobody to tell
        _shut(server)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
