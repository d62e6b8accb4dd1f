"""Object stores for tests: which servers there are, and a fresh bucket on one of them.

A server is named by a URL with its keys: `http://KEY:SECRET@127.0.0.1:PORT`.
"""

import base64
import hmac
import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import pytest
from pyarrow.fs import S3FileSystem

REPO = Path(__file__).resolve().parent.parent
S3 = "LAKEBED_TEST_S3"
# Servers that are tested too when they are named.
OTHERS = {
    "azure": "LAKEBED_TEST_AZURE",
    "gcs": "LAKEBED_TEST_GCS",
    "minio": "LAKEBED_TEST_MINIO",
    "rustfs": "LAKEBED_TEST_RUSTFS",
    "garage": "LAKEBED_TEST_GARAGE",
}
REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A place for a warehouse, and what opens it."""

    uri: str
    endpoint: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """The usual variables, for programs that take nothing else."""
        return {
            "AWS_ACCESS_KEY_ID": self.options["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": self.options["secret_access_key"],
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": self.options["region"],
        }


def value_of(variable: str) -> str | None:
    return os.environ.get(variable) or _in(".env", variable) or _in(".test-env/env", variable)


def kinds() -> list[str]:
    """S3 always, the others where they are named."""
    return ["s3", *(kind for kind, variable in OTHERS.items() if value_of(variable))]


def new_bucket(kind: str = "s3") -> Bucket:
    """A fresh bucket; it is an error, never a skip, when the server is not there."""
    variable = {"s3": S3, **OTHERS}[kind]
    server = value_of(variable)
    if not server:
        pytest.fail(f"no {kind}: run `scripts/test-env start` or set {variable}", pytrace=False)
    name = f"lakebed-{uuid.uuid4().hex}"
    parts = urlsplit(server)
    endpoint = f"{parts.scheme}://{parts.hostname}:{parts.port}"
    if kind == "gcs":
        return _on_gcs(name, endpoint)
    key, secret = parts.username or "", unquote(parts.password or "")
    if kind == "azure":
        return _on_azure(name, endpoint, key=key, secret=secret)
    return _on_s3(name, endpoint, key=key, secret=secret)


def _on_s3(name: str, endpoint: str, *, key: str, secret: str) -> Bucket:
    options = {"access_key_id": key, "secret_access_key": secret, "region": REGION}
    S3FileSystem(
        access_key=key,
        secret_key=secret,
        endpoint_override=endpoint,
        region=REGION,
        allow_bucket_creation=True,
    ).create_dir(name)
    return Bucket(f"s3://{name}/ware/house", endpoint, {**options, "endpoint": endpoint})


def _on_azure(name: str, endpoint: str, *, key: str, secret: str) -> Bucket:
    date = formatdate(usegmt=True)
    version = "2021-12-02"
    headers = f"x-ms-date:{date}\nx-ms-version:{version}\n"
    to_sign = "PUT" + "\n" * 12 + headers + f"/{key}/{key}/{name}\nrestype:container"
    signature = hmac.digest(base64.b64decode(secret), to_sign.encode(), "sha256")
    asked = Request(f"{endpoint}/{key}/{name}?restype=container", method="PUT")
    asked.add_header("x-ms-date", date)
    asked.add_header("x-ms-version", version)
    asked.add_header("Authorization", f"SharedKey {key}:{base64.b64encode(signature).decode()}")
    with urlopen(asked):
        pass
    options = {"account_name": key, "account_key": secret, "endpoint": f"{endpoint}/{key}"}
    return Bucket(f"az://{name}/ware/house", endpoint, options)


def _on_gcs(name: str, endpoint: str) -> Bucket:
    body = f'{{"name": "{name}"}}'.encode()
    asked = Request(f"{endpoint}/storage/v1/b?project=test", body, method="POST")
    asked.add_header("Content-Type", "application/json")
    with urlopen(asked):
        pass
    account = {"gcs_base_url": endpoint, "disable_oauth": True, "client_email": ""}
    key = json.dumps({**account, "private_key": "", "private_key_id": ""})
    return Bucket(f"gs://{name}/ware/house", endpoint, {"service_account_key": key})


def _in(file: str, variable: str) -> str | None:
    path = REPO / file
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, value = line.partition("=")
        if name.strip() == variable:
            return value.strip()
    return None
