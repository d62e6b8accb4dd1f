"""An S3 of a few lines that can misbehave: refuse, cut off, lose answers, ignore conditions.

It checks no signatures and keeps objects in memory; `requests` lists what was asked of it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit

from lakebed.storage.objects.storage import ObjectStorage
from lakebed.storage.place import parse_place

KEYS = {"access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1"}


@dataclass
class SmallS3:
    endpoint: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    overloaded: int = 0  # so many requests are answered 503
    lost_answers: int = 0  # so many writes are done, and the connection is cut instead of an answer
    cut_parts: int = 0  # so many parts are cut off while they are sent
    ignores_conditions: bool = False
    denies: bool = False
    denied_folder: str = ""  # writes below a folder of this name are refused

    def storage(self, *, retry_s: float = 20.0) -> ObjectStorage:
        options = {**KEYS, "endpoint": self.endpoint}
        return ObjectStorage(parse_place("s3://bucket/w"), options, retry_s=retry_s)

    def take(self, counter: str) -> bool:
        with self.lock:
            left: int = getattr(self, counter)
            setattr(self, counter, max(0, left - 1))
        return left > 0


@contextmanager
def small_s3() -> Iterator[SmallS3]:
    state = SmallS3()

    class Handler(_Handler):
        s3 = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    state.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    s3: SmallS3
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Silent: `requests` tells."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def do_PUT(self) -> None:
        query = self._query()
        if "partNumber" in query and self.s3.take("cut_parts"):
            self.rfile.read(1000)
            return self._cut()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self._refused():
            return None
        if "uploadId" in query:
            self.s3.uploads[query["uploadId"]][int(query["partNumber"])] = body
        elif not self._put(body):
            return self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        return self._written({"ETag": _etag(body)})

    def do_POST(self) -> None:
        query = self._query()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self._refused():
            return None
        if "delete" in query:
            return self._delete(re.findall("<Key>(.*?)</Key>", body.decode()))
        if "uploads" in query:
            name = f"upload-{len(self.s3.requests)}"
            self.s3.uploads[name] = {}
            xml = f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
            return self._answer(200, f"{xml}</InitiateMultipartUploadResult>".encode())
        parts = self.s3.uploads.pop(query["uploadId"], None)
        if parts is None:
            return self._answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
        whole = b"".join(parts[number] for number in sorted(parts))
        self.s3.objects[self._path()] = whole
        xml = f"<CompleteMultipartUploadResult><ETag>{_etag(whole)}</ETag>"
        return self._written({}, f"{xml}</CompleteMultipartUploadResult>".encode())

    def do_DELETE(self) -> None:
        if self._refused():
            return
        if upload := self._query().get("uploadId"):
            self.s3.uploads.pop(upload, None)
        else:
            self.s3.objects.pop(self._path(), None)
        self._answer(204, b"")

    def _delete(self, keys: list[str]) -> None:
        for key in keys:
            self.s3.objects.pop(f"{self._path().rstrip('/')}/{key}", None)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def do_HEAD(self) -> None:
        self._read(with_body=False)

    def do_GET(self) -> None:
        if "list-type" in self._query():
            return self._list(self._query().get("prefix", ""))
        return self._read(with_body=True)

    def _list(self, prefix: str) -> None:
        if self._refused():
            return None
        bucket, now = self._path().rstrip("/"), "2026-01-01T00:00:00.000Z"
        start = f"{bucket}/{prefix}"
        listed = "".join(
            f"<Contents><Key>{unquote(path).removeprefix(bucket + '/')}</Key>"
            f"<LastModified>{now}</LastModified><Size>{len(body)}</Size></Contents>"
            for path, body in sorted(self.s3.objects.items())
            if unquote(path).startswith(start)
        )
        xml = f"<ListBucketResult><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>"
        return self._answer(200, xml.encode())

    def _read(self, *, with_body: bool) -> None:
        if self._refused():
            return None
        found = self.s3.objects.get(self._path())
        if found is None:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>" if with_body else b"")
        headers = {"ETag": _etag(found), "Last-Modified": formatdate(usegmt=True)}
        if not with_body:
            return self._answer(200, b"", {**headers, "Content-Length": str(len(found))})
        asked = self.headers.get("Range", "").removeprefix("bytes=")
        if not asked:
            return self._answer(200, found, headers)
        first, _, last = asked.partition("-")
        start = int(first) if first else max(0, len(found) - int(last))
        stop = min(len(found), int(last) + 1) if first and last else len(found)
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(found)}"
        return self._answer(206, found[start:stop], headers)

    def _put(self, body: bytes) -> bool:
        path = self._path()
        conditional = "If-None-Match" in self.headers and not self.s3.ignores_conditions
        with self.s3.lock:
            if conditional and path in self.s3.objects:
                return False
            self.s3.objects[path] = body
        return True

    def _refused(self) -> bool:
        self.s3.requests.append(f"{self.command} {self.path}")
        folder, writes = self.s3.denied_folder, self.command in ("PUT", "POST")
        if self.s3.denies or (folder and writes and f"/{folder}/" in self.path):
            self._answer(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
            return True
        if self.s3.take("overloaded"):
            self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
            return True
        return False

    def _written(self, headers: dict[str, str], body: bytes = b"") -> None:
        if self.s3.take("lost_answers"):
            return self._cut()
        return self._answer(200, body, headers)

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.close()

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _path(self) -> str:
        return urlsplit(self.path).path

    def _query(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[0] for name, values in found.items()}


def _etag(body: bytes) -> str:
    return f'"{md5(body).hexdigest()}"'
