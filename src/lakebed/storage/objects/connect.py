"""From a place and options to a client: keys, endpoint and region of the call or the environment.

Keys are handed on and never kept, shown or logged here.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple, cast

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from lakebed.model.errors import InvalidSetting
from lakebed.storage.place import Place

Client = S3Store | GCSStore | AzureStore
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL", "STORAGE_EMULATOR_HOST"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_ENDPOINT_OPTION = {"s3": "endpoint", "gs": "base_url", "az": "endpoint"}
_TIMEOUT = timedelta(seconds=60)
_CONNECT_TIMEOUT = timedelta(seconds=5)


class Clients(NamedTuple):
    """`once` never repeats a request by itself: only its caller knows what a repeat would mean."""

    repeating: Client
    once: Client


def connect(place: Place, options: Mapping[str, str], *, retry_s: float) -> Clients:
    """Clients for the bucket; no request is made."""
    config = {name.lower(): str(value) for name, value in options.items()}
    endpoint = config.pop("endpoint", "") or _named(_ENDPOINTS[place.service])
    if endpoint:
        config[_ENDPOINT_OPTION[place.service]] = endpoint
    if place.account:
        config["account_name"] = place.account
    patient = {"backoff": {"max_backoff": timedelta(seconds=5)}, "max_retries": 12}
    return Clients(
        _client(place, config, {**patient, "retry_timeout": timedelta(seconds=retry_s)}),
        _client(place, config, {"max_retries": 0}),
    )


def _client(place: Place, config: Mapping[str, str], retry: Mapping[str, object]) -> Client:
    kind = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}[place.service]
    http = any(value.startswith("http://") for value in config.values())
    timeouts = {"timeout": _TIMEOUT, "connect_timeout": _CONNECT_TIMEOUT}
    try:
        # obstore's types list every option of each service; ours come from the user.
        made = kind(
            place.bucket,
            config=config,
            client_options={"allow_http": http, **timeouts},
            retry_config=retry,
        )
    except (BaseError, ValueError) as error:
        raise _refused(place, config, error) from None
    return cast(Client, made)


def _refused(place: Place, config: Mapping[str, str], error: Exception) -> InvalidSetting:
    reason = str(error).partition("\n")[0]
    for value in sorted(config.values(), key=len, reverse=True):
        reason = reason.replace(value, "…") if value else reason
    return InvalidSetting(
        f"the options for {place.uri} are refused: {reason}",
        hint="docs/guides/object-stores.md lists the options and variables of each service",
        name="storage_options",
    )


def _named(variables: tuple[str, ...]) -> str:
    return next((found for name in variables if (found := os.environ.get(name))), "")
