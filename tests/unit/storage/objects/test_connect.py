"""Options of an object store, from the call or the environment; no request is made."""

import pytest

from lakebed.model.errors import InvalidSetting
from lakebed.storage.objects.connect import connect
from lakebed.storage.place import parse_place

KEYS = {"access_key_id": "key", "secret_access_key": "hush", "region": "eu-west-1"}


def test_an_endpoint_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")

    clients = connect(parse_place("s3://bucket"), KEYS, retry_s=1)

    assert dict(clients.once.config)["endpoint"] == "http://127.0.0.1:1"
    assert str(dict(clients.once.client_options or {})["allow_http"]) == "true"


def test_an_option_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")

    options = {**KEYS, "endpoint": "https://127.0.0.1:2"}
    clients = connect(parse_place("s3://bucket"), options, retry_s=1)

    assert dict(clients.once.config)["endpoint"] == "https://127.0.0.1:2"
    assert str(dict(clients.once.client_options or {})["allow_http"]) == "false"


def test_the_account_of_an_azure_uri_is_used() -> None:
    place = parse_place("abfss://c@here.dfs.core.windows.net/x")

    clients = connect(place, {"account_key": "aGlkZQ=="}, retry_s=1)

    assert dict(clients.once.config)["account_name"] == "here"


def test_an_unknown_option_is_refused_and_no_value_is_shown() -> None:
    with pytest.raises(InvalidSetting, match="frobnicate") as caught:
        connect(parse_place("s3://bucket"), {**KEYS, "frobnicate": "hush"}, retry_s=1)

    assert "hush" not in caught.value.message
