"""A place in an object store, taken from a URI: which service, which bucket, which prefix."""

import re
from dataclasses import dataclass
from typing import Literal

from lakebed.model.errors import InvalidUri

Service = Literal["s3", "gs", "az"]
_SERVICES: dict[str, Service] = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "az": "az",
    "abfs": "az",
    "abfss": "az",
}
SCHEMES = tuple(_SERVICES)
# Nothing that any reader of a published location would decode, or split, in its own way.
_PREFIX = re.compile(r"(?:/[A-Za-z0-9_=+-][A-Za-z0-9_=+.-]*)*/?", re.ASCII)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_ACCOUNT = re.compile(r"([a-z0-9]+)\.(?:dfs|blob)\.[a-z0-9.-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """`account` is Azure's, where the URI names it; `prefix` has no '/' at either end."""

    uri: str
    service: Service
    bucket: str
    prefix: str
    account: str = ""


def parse_place(uri: str) -> Place:
    """The place of `s3://bucket/prefix`, `gs://…`, `az://container/…` or `abfss://container@…`."""
    scheme, _, rest = uri.partition(":")
    scheme = scheme.lower().replace("s3a", "s3")
    if not rest.startswith("//"):
        raise _malformed(scheme, f"Write {scheme}://BUCKET/prefix")
    authority, slash, path = rest.removeprefix("//").partition("/")
    if not _PREFIX.fullmatch(slash + path):
        raise _malformed(scheme, "The prefix has letters, digits and _ = + - . between its slashes")
    bucket, account = authority, ""
    if scheme in ("abfs", "abfss"):
        bucket, _, host = authority.partition("@")
        found = _ACCOUNT.fullmatch(host)
        if found is None:
            raise _malformed(scheme, "Write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/prefix")
        account = found[1]
    if not _BUCKET.fullmatch(bucket):
        raise _malformed(scheme, f"Write {scheme}://BUCKET/prefix; keys go into the environment")
    plain = f"{scheme}://{authority}{slash}{path}".rstrip("/")
    return Place(plain, _SERVICES[scheme], bucket, path.strip("/"), account)


def _malformed(scheme: str, hint: str) -> InvalidUri:
    # The URI itself is not shown: it may hold a key.
    return InvalidUri(f"not a place for a warehouse: {scheme}://…", hint=hint, scheme=scheme)
